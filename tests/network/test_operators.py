"""Each operator alone, compared with ONNX Runtime, with attributes and inputs that random networks rarely have."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.network import compile as compile_network
from tilewright.network import evaluate
from tilewright.network.reader import read_model
from tilewright.network.witness import run_witness

MS = "com.microsoft"
NAMES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "float32": TensorProto.FLOAT}


def model(kind, inputs, *, domain="", dtype="uint8", out=None, opset=19, **attributes):
    """A model of one node: arrays are constants, tuples are shapes of inputs, and None is a missing input."""
    given, constants, names = [], [], []
    for value in inputs:
        names.append("" if value is None else f"i{len(names)}")
        if isinstance(value, tuple):
            given.append(helper.make_tensor_value_info(names[-1], NAMES[dtype], value))
        elif value is not None:
            constants.append(numpy_helper.from_array(np.asarray(value), names[-1]))
    node = helper.make_node(kind, names, ["y"], "node", domain=domain, **attributes)
    made = [helper.make_tensor_value_info("y", NAMES[out or dtype], None)]
    graph = helper.make_graph([node], "one", given, made, constants)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def f(*values):
    return np.float32(values[0] if len(values) == 1 else values)


def weights(shape, dtype="int8", seed=0, low=-64, high=64):
    middle = 0 if dtype == "int8" else 128
    return np.random.default_rng(seed).integers(middle + low, middle + high, shape).astype(dtype)


def conv(shape=(1, 6, 9, 7), kernel=(4, 6, 3, 3), dtype="uint8", wtype="int8", zero=130, bias=None, **attributes):
    x_zero, w_zero = (
        np.array(zero if dtype == "uint8" else zero - 128, dtype),
        np.array(attributes.pop("w_zero", 0), wtype),
    )
    w_scale = attributes.pop("w_scale", f(0.01))
    inputs = [shape, f(0.03), x_zero, weights(kernel, wtype), w_scale, w_zero, f(0.05), np.array(7, dtype)]
    return model("QLinearConv", [*inputs, bias], dtype=dtype, **attributes)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    "options",
    [
        {}, {"pads": [1, 2, 0, 1]}, {"strides": [2, 3]}, {"dilations": [2, 3], "shape": (2, 6, 15, 14)},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"auto_pad": "VALID"}, {"group": 6, "kernel": (6, 1, 3, 3)}, {"group": 6, "kernel": (12, 1, 3, 3)},
        {"group": 3, "kernel": (9, 2, 1, 3)}, {"group": 2, "kernel": (2, 3, 5, 5), "pads": [2, 2, 2, 2]},
        {"kernel": (3, 6, 1, 1)}, {"kernel": (3, 6, 9, 7)}, {"shape": (3, 6, 1, 1), "kernel": (5, 6, 1, 1)},
        {"w_scale": f(0.01, 0.02, 0.005, 0.1)}, {"bias": np.int32([-5000, 0, 1, 9000])}, {"w_zero": 3},
        {"bias": np.int32([2**31 - 1, -(2**31), 2**31 - 900, -(2**31) + 900])},
        {"strides": [4, 4], "kernel": (2, 6, 1, 1), "auto_pad": "SAME_UPPER"},
    ],
    ids=str,
)  # fmt: skip
def test_conv(options, dtype, agree):
    agree(conv(dtype=dtype, **options))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("options", [{}, {"pads": [1, 2], "strides": [2]}, {"group": 6, "dilations": [2]}], ids=str)
def test_conv_of_one_dimension(options, dtype, agree):
    agree(conv((2, 6, 17), (12, 6 // options.get("group", 1), 3), dtype=dtype, **options))


def test_conv_with_unsigned_weights(agree):
    agree(conv(wtype="uint8", w_zero=120))
    agree(conv(wtype="uint8", w_zero=255, group=6, kernel=(6, 1, 3, 3)))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("zeros", [(0, 0, 0), (100, -128, 127), (-128, 127, -1)])
@pytest.mark.parametrize("scales", [(0.1, 0.1, 0.1), (0.5, 1e-7, 0.01), (1e-3, 3.0, 2.5), (0.25, 0.5, 1.0)], ids=str)
def test_add(scales, zeros, dtype, agree):
    a, b, y = ((f(s), np.array(z + 128 * (dtype == "uint8"), dtype)) for s, z in zip(scales, zeros, strict=True))
    shape = (2, 3, 40, 41)
    agree(model("QLinearAdd", [shape, *a, shape, *b, *y], domain=MS, dtype=dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("number", [0, 1, 77, -128])
def test_mul(number, dtype, agree):
    shift = 128 * (dtype == "uint8")
    b = np.array(number + shift, dtype)
    zeros = [np.array(z + shift, dtype) for z in (5, -7, 10)]
    for operand in (b, b.reshape(1), b.reshape(1, 1, 1, 1)):
        inputs = [(1, 3, 16, 16), f(0.03), zeros[0], operand, f(0.02), zeros[1], f(0.04), zeros[2]]
        agree(model("QLinearMul", inputs, domain=MS, dtype=dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("zero", [10, 7])
def test_mul_with_halves(zero, dtype, agree):
    shift = 128 * (dtype == "uint8")
    z = [np.array(z + shift, dtype) for z in (-5, 77, 76, zero)]
    agree(model("QLinearMul", [(1, 3, 16, 16), f(0.5), z[0], z[1], f(1), z[2], f(1), z[3]], domain=MS, dtype=dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("across", [0, 1])
@pytest.mark.parametrize("rows", [1, 5])
def test_gemm(rows, across, dtype, agree):
    z = [np.array(z + 128 * (dtype == "uint8"), dtype) for z in (3, -9)]
    matrix = weights((11, 300) if across else (300, 11))
    for bias in (None, np.arange(-5, 6, dtype=np.int32) * 1000, np.arange(11, dtype=np.int32).reshape(1, 11)):
        scale = np.linspace(0.001, 0.02, 11, dtype=np.float32)
        inputs = [(rows, 300), f(0.02), z[0], matrix, scale, np.zeros(11, np.int8), bias, f(0.05), z[1]]
        agree(model("QGemm", inputs, domain=MS, dtype=dtype, transB=across))
        agree(model("QGemm", inputs[:-2], domain=MS, dtype=dtype, out="float32", transB=across))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("shape", [(5, 64), (1, 5, 64), (1, 2, 3, 64), (2, 3, 64)])
def test_matmul(shape, dtype, agree):
    z = [np.array(z + 128 * (dtype == "uint8"), dtype) for z in (3, -9)]
    inputs = [shape, f(0.02), z[0], weights((64, 10)), f(0.01), np.int8(0), f(0.05), z[1]]
    agree(model("QLinearMatMul", inputs, dtype=dtype))


WINDOWS = [
    {"kernel_shape": [3, 3]}, {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, {"kernel_shape": [9, 10]},
    {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1},
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    ("windows", "counted"), [(each, n) for each in WINDOWS for n in (0, 1) if not (n and "ceil_mode" in each)], ids=str
)
def test_average(windows, counted, dtype, agree):
    z = [np.array(z + 128 * (dtype == "uint8"), dtype) for z in (3, -9)]
    inputs = [(2, 5, 9, 10), f(0.02), z[0], f(0.0173), z[1]]
    agree(model("QLinearAveragePool", inputs, domain=MS, dtype=dtype, count_include_pad=counted, **windows))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("windows", [*WINDOWS, {"kernel_shape": [2, 3], "dilations": [2, 3]}], ids=str)
def test_max(windows, dtype, agree):
    agree(model("MaxPool", [(2, 5, 9, 10)], dtype=dtype, **windows))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_pad(dtype, agree):
    widths, value = np.int64([0, 1, 2, 0, 0, 4, 0, 3]), np.array(77, dtype)
    agree(model("Pad", [(1, 3, 4, 5), widths, value], dtype=dtype))
    agree(model("Pad", [(1, 3, 4, 5), widths], dtype=dtype, mode="constant"))
    agree(model("Pad", [(1, 3, 4, 5), np.int64([1, 2, 3, 0]), value, np.int64([-1, 1])], dtype=dtype))
    agree(model("Pad", [(6,), np.int64([1, 2]), None, np.int64([0])], dtype=dtype))
    agree(model("Pad", [(1, 3, 4, 5), widths, value], dtype=dtype, opset=13))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_ends(dtype, agree):
    rng, zero = np.random.default_rng(0), np.array(17, dtype)
    x = np.concatenate([rng.normal(0, 3, 9000), np.arange(-200, 200) * 0.5 * 0.037, [np.inf, -np.inf, 1e38, 0]])
    x = {"i0": x.astype(np.float32)}
    agree(model("QuantizeLinear", [x["i0"].shape, f(0.037), zero], dtype="float32", out=dtype), x)
    agree(model("DequantizeLinear", [(3, 7), f(0.037), zero], dtype=dtype, out="float32"))


def test_zero_points_that_are_left_out(agree):
    agree(model("QuantizeLinear", [(50,), f(0.037)], dtype="float32", out="uint8"))
    agree(model("DequantizeLinear", [(3, 7), f(0.037)], out="float32"))


@pytest.mark.parametrize("zero", [0, 3, 131])
def test_halves_of_averages(zero):
    """A quarter of the averages of four elements are halves; few of them are rounded the other way."""
    quantity = [f(0.05), np.uint8(zero)]
    made = model("QLinearAveragePool", [(1, 16, 32, 32), *quantity, *quantity], domain=MS, kernel_shape=[2, 2],
                 strides=[2, 2])  # fmt: skip
    graph, inputs = (
        read_model(made),
        {"i0": np.random.default_rng(0).integers(0, 256, (1, 16, 32, 32)).astype(np.uint8)},
    )
    ours, theirs = evaluate(graph, inputs)["y"], run_witness(made, graph, inputs, ["y"])["y"]
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    assert (ours != theirs).mean() < 0.06
    np.testing.assert_array_equal(compile_network(graph, "unit").run(inputs)["y"], ours)
