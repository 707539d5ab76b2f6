"""Models as exporters write them: nodes between operators, and forms of constants."""

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from support.network import compare_program, refusal
from tilewright import network
from tilewright.network.reader import read_model
from tilewright.network.witness import run_witness
from tilewright.verify.random.model import SCALE, ZERO, Form

#: The end of sentences about floats.
NEXT = ": quantise it first (docs/quantise.md)"


# Biases and weights


def biases(form, scale, kind):
    numbers = form.numbers(len(scale))
    if kind == "floats":
        return [numbers]
    if kind == "integers":  # without zero points
        counts = (numbers / (SCALE * scale)).astype(np.int32)
        return [form.node("DequantizeLinear", counts, SCALE * scale, axis=0)]
    # As PyTorch does it, with what it leaves to be worked out.
    own = form.node("Mul", form.constant(scale), form.constant(SCALE))
    zeros = form.node("ConstantOfShape", form.node("Shape", own), value=numpy_helper.from_array(np.int32([0])))
    counts = form.node("Cast", form.node("Div", numbers, own), to=TensorProto.INT32)
    return [form.node("DequantizeLinear", counts, own, zeros, axis=0)]


@pytest.mark.parametrize("kind", ["floats", "integers", "worked out"])
def test_bias_of_a_convolution(kind, check_model):
    form = Form(1, 6, 8, 7)
    weights, scale = form.weights(4, 6, 3, 3)
    y = form.node("Conv", form.both("x"), weights, *biases(form, scale, kind))
    check_model(form.model(form.both(y, np.float32(0.05), np.uint8(3))))


def test_a_bias_of_floats_is_rounded():
    form = Form(1, 12)
    scale = np.float32(0.01)
    weights = form.floats(np.ones((12, 6), np.int8), scale, np.int8(0))
    bias = np.float32([0.4, 0.6, -0.4, -0.6, 1e6, -1.2]) * (SCALE * scale)
    form.quantise(form.node("Gemm", form.both("x"), weights, bias))
    graph = read_model(form.model("t4.0"))
    assert graph.nodes[-1].attributes.bias.tolist() == [0, 1, 0, -1, 1_000_000, -1]


@pytest.mark.parametrize("shape", [(5, 12), (1, 5, 12), (1, 2, 5, 12)])
@pytest.mark.parametrize("first", [False, True])
def test_bias_that_is_added_behind_a_product(first, shape, check_model):
    form = Form(*shape)
    weights, scale = form.weights(12, 7, axis=1)
    y = form.node("MatMul", form.both("x"), weights)
    (bias,) = biases(form, scale, "floats")
    y = form.node("Add", *((bias, y) if first else (y, bias)))
    graph = check_model(form.model(form.quantise(form.node("Relu", y), np.float32(0.05))))
    assert [node.kind for node in graph.nodes] == ["Quantize", "Conv"]


@pytest.mark.parametrize(
    ("shape", "value", "said"),
    [((7,), np.nan, "has more than 32 bits at the scale of its products"), ((3,), 1, "has 3 numbers for 7 scales")],
)
def test_biases_that_are_refused(shape, value, said):
    form = Form(5, 12)
    y = form.node("MatMul", form.both("x"), form.weights(12, 7, axis=1)[0])
    y = form.quantise(form.node("Add", y, np.full(shape, value, np.float32)))
    assert refusal(form.model(y)) == f"node 't5.0' (Add): its bias 'c9' {said}"


@pytest.mark.parametrize(("shape", "relu"), [((7,), True), ((5, 7), False), ((1, 1, 7), False)])
def test_numbers_that_the_host_adds_to_a_product(shape, relu, check_model):
    form = Form(5, 12)
    y = form.node("MatMul", form.both("x"), form.weights(12, 7, axis=1)[0])
    y = form.node("Relu", y) if relu else y
    graph = check_model(form.model(form.quantise(form.node("Add", y, form.numbers(*shape)), np.float32(0.05))))
    assert [node.kind for node in graph.tail][-2:] == ["Floats", "Quantize"]


@pytest.mark.parametrize("kind", ["Gemm", "Gemm with bias", "MatMul", "Add"])
@pytest.mark.parametrize("shape", [(1, 12), (5, 12), (2, 5, 12)])
def test_a_last_product_that_stays_floats(shape, kind, check_model):
    """Bit for bit what ONNX Runtime computes, whose activations of MatMul must be uint8 for that."""
    form = Form(*shape)
    weights, scale = form.weights(12, 7, axis=1)
    (bias,) = biases(form, scale, "integers")
    operator = kind.split()[0] if len(shape) == 2 and kind.startswith("Gemm") else "MatMul"
    y = form.node(operator, form.both("x"), weights, *([bias] if operator == "Gemm" and "bias" in kind else []))
    if kind == "Add" and len(shape) == 2:
        y = form.node("Add", y, bias)
    graph = check_model(form.model(y))
    assert [node.kind for node in graph.nodes] == ["Quantize", "Conv", "Scale"]
    assert graph.tensors[graph.outputs[0]].dtype == "float32"


def test_a_last_product_and_its_integers():
    """Both are outputs: what others read of it is quantised as ever."""
    form = Form(5, 12)
    y = form.node("MatMul", form.both("x"), form.weights(12, 7, axis=1)[0])
    (floats, integers), _ = compare_program(read_model(form.model(y, form.quantise(y, np.float32(0.05)))))
    assert (floats.dtype, integers.dtype) == (np.float32, np.uint8)
    np.testing.assert_array_equal(np.clip(np.rint(floats / np.float32(0.05)) + ZERO, 0, 255), integers)


def test_a_bias_of_floats_is_added_to_floats():
    """ONNX Runtime multiplies floats then, in some order."""
    form = Form(5, 12)
    y = form.node("Gemm", form.both("x"), form.weights(12, 7, axis=1)[0], form.numbers(7))
    model, inputs = form.model(y), {"x": form.numbers(5, 12)}
    graph = read_model(model)
    (found,) = network.compile(graph, "unit").run(inputs).values()
    np.testing.assert_allclose(found, run_witness(model, graph, inputs, [y])[y], rtol=1e-5, atol=1e-5)
    assert graph.nodes[-1].attributes.bias is not None


@pytest.mark.parametrize("kind", ["Gemm", "MatMul"])
def test_weights_whose_places_change(kind, check_model):
    form = Form(2, 12)
    weights = form.node("Transpose", form.node("Cast", form.weights(7, 12)[0], to=1), perm=[1, 0])
    check_model(form.model(form.quantise(form.node(kind, form.both("x"), weights), np.float32(0.05))))


def test_a_kernel_out_of_a_matrix(check_model):
    form = Form(1, 6, 8, 7)
    weights = form.node("Reshape", form.weights(4, 6)[0], np.int64([4, 6, 1, 1]))
    weights = form.node("Unsqueeze", form.node("Squeeze", weights, np.int64([3])), np.int64([-1]))
    check_model(form.model(form.quantise(form.node("Conv", form.both("x"), weights), np.float32(0.05))))


def test_scales_that_are_no_longer_those_of_a_dimension():
    form = Form(1, 6)
    form.node("Reshape", form.weights(4, 6)[0], np.int64([2, 12]))
    assert refusal(form.model("x")) == (
        "node 't2.0' (Reshape): scales of its input 't1.0' no longer belong to one dimension"
    )


@pytest.mark.parametrize(
    ("kind", "inputs", "said"),
    [
        ("ConstantOfShape", [np.int64([1 << 20, 1 << 20])], "its output may have more than 16,777,216 elements"),
        ("Mul", [np.ones((1 << 13, 1)), np.ones(1 << 13)], "its output may have more than 16,777,216 elements"),
        ("Gather", [np.int64([1, 2]), np.int64([7])], "it cannot be computed from its constants: "),
    ],
)
def test_constants_that_cannot_be_worked_out(kind, inputs, said):
    form = Form(1, 6)
    form.node(kind, *inputs)
    assert refusal(form.model("x")).startswith(f"node 't0.0' ({kind}): {said}")


# What stands between operators

MOVES = {
    "flatten": lambda form, x: form.node("Flatten", x, axis=-3),
    "shape": lambda form, x: form.node("Reshape", x, form.node(
        "Concat", form.node("Slice", form.node("Shape", x), np.int64([0]), np.int64([1])), np.int64([-1]), axis=0)),
    "transpose": lambda form, x: form.node("Transpose", x, perm=[0, 2, 3, 1]),
    "two": lambda form, x: form.node("Flatten", form.node("Transpose", x, perm=[0, 2, 3, 1])),
    "unsqueeze": lambda form, x: form.node("Unsqueeze", x, np.int64([-2, 0])),
    "squeeze": lambda form, x: form.node("Squeeze", x, np.int64([])),
    "pool": lambda form, x: form.node("MaxPool", form.node("Relu", x), kernel_shape=[2, 2]),
    "relu": lambda form, x: form.node("Relu", form.node("MaxPool", x, kernel_shape=[2, 2])),
    "clip": lambda form, x: form.node("Clip", x, np.float32(0), np.float32(60)),
    "pad": lambda form, x: form.node("Pad", x, np.int64([0, 0, 1, 1, 0, 0, 1, 1])),
    "concat": lambda form, x: form.node("Concat", x, form.node("Relu", x), axis=1),
    "nothing": lambda form, x: form.node("Cast", form.node("Identity", form.node("Dropout", x, outputs=2)), to=1),
}  # fmt: skip


@pytest.mark.parametrize("where", ["input", "output", "scale", "product"])
@pytest.mark.parametrize("move", MOVES)
def test_moves_of_floats(move, where, check_model):
    form = Form(1, 6, 8, 7)
    y = MOVES[move](form, "x" if where == "input" else form.both("x"))
    if where == "product":
        columns = {"flatten": 336, "shape": 336, "two": 336, "transpose": 6, "pad": 9, "pool": 6, "relu": 6}
        y = form.node("MatMul", y, form.weights(columns.get(move, 7), 5, axis=1)[0])
    y = {"input": form.quantise, "output": str, "scale": lambda y: form.quantise(y, np.float32(0.021)),
         "product": lambda y: form.quantise(y, np.float32(0.05))}[where](y)  # fmt: skip
    check_model(form.model(y))


def test_moves_behind_a_convolution():
    """ONNX Runtime computes such convolutions with floats: the judge is the same model with integers in between."""
    answers = []
    for between in (False, True):
        form = Form(1, 6, 8, 7)
        quantity = np.float32(0.05), np.uint8(40)
        y = form.node("Relu", form.node("Conv", form.both("x"), form.weights(4, 6, 3, 3)[0]))
        y = form.both(y, *quantity) if between else y
        pooled = form.node("MaxPool", y, kernel_shape=[3, 3])
        padded = form.node("Pad", y, np.int64([0, 0, 1, 1, 0, 0, 0, 0]), np.float32(-1))
        pooled, padded = (form.both(y, *quantity) if between else y for y in (pooled, padded))
        y = form.node("Concat", form.node("Flatten", pooled), form.node("Flatten", padded), axis=1)
        answers.append(compare_program(read_model(form.model(form.quantise(y, *quantity))))[0])
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize("value", [0.04, -3.0, -np.inf])
@pytest.mark.parametrize("relu", ["none", "before", "after"])
def test_padding_that_is_no_integer_of_the_scale_before(value, relu, check_model):
    form = Form(1, 6, 8, 7)
    y = form.node("Relu", form.both("x")) if relu == "before" else form.both("x")
    y = form.node("Pad", y, np.int64([0, 0, 1, 1, 0, 0, 1, 1]), np.float32(value))
    y = form.node("Relu", y) if relu == "after" else y
    check_model(form.model(form.quantise(y, np.float32(0.0071), np.uint8(99))))


MISSING = "node 't5.0' (MatMul): its input 't2.0' is float32, without QuantizeLinear and DequantizeLinear" + NEXT


@pytest.mark.parametrize(
    ("kind", "inputs", "said"),
    [
        ("Clip", (np.float32(0), np.float32(1)), MISSING), ("Clip", (np.float32(0.01),), MISSING),
        ("Pad", (np.int64([0, 0, 1, 1]), np.float32(0.04)), MISSING),
        ("Pad", (np.int64([0, 0, 1, 1]), np.float32(np.nan)), MISSING),
    ],
)  # fmt: skip
def test_floats_that_no_integers_are(kind, inputs, said):
    form = Form(5, 12)
    y = form.node(kind, form.both("x"), *inputs)
    form.node("MatMul", y, form.weights(12, 7, axis=1)[0])
    assert refusal(form.model("x")) == said


def test_floats_of_different_scales_joined():
    form = Form(5, 6)
    y = form.node("Concat", form.both("x"), form.both("x", np.float32(0.02), ZERO), axis=1)
    form.node("MatMul", y, form.weights(12, 7, axis=1)[0])
    assert refusal(form.model("x")) == MISSING.replace("t5", "t7").replace("t2", "t4")


def test_what_changes_no_byte_is_no_node():
    form = Form(1, 6, 8, 7)
    y = form.quantise(form.node("Relu", MOVES["two"](form, form.both(form.both("x")))), SCALE, ZERO)
    y = form.quantise(MOVES["two"](form, form.node("Unsqueeze", form.floats(y), np.int64([2, 3]))))
    kinds = [node.kind for node in read_model(form.model(y)).nodes]
    assert kinds == ["Quantize", "Reshape", "Concat", "Transpose", "Reshape", "Reshape", "Transpose", "Reshape"]


def test_a_part_of_a_shape(check_model):
    form = Form(1, 6, 8, 7, opset=15)
    x = form.both("x")
    shape = form.node("Concat", np.int64([-1]), form.node("Shape", x, start=-1), axis=0)
    check_model(form.model(form.quantise(form.node("Reshape", x, shape))))


def test_a_window_of_padding(check_model):
    windows = {"kernel_shape": [2, 1], "dilations": [8, 1], "pads": [1, 0, 1, 0]}
    form = Form(1, 6, 7, 7)
    y = form.node("MaxPool", form.both("x"), **windows)
    check_model(form.model(form.quantise(y, np.float32(0.0213))))
    missing = "its output 't2.0' is float32, which no QuantizeLinear makes integers" + NEXT
    assert refusal(form.model(y)) == f"node 't2.0' (MaxPool): {missing}"
    form.quantise(form.node("Relu", y))
    clamped = "a window lies wholly in padding, and what it gives is clamped"
    assert refusal(form.model("x")) == f"node 't2.0' (MaxPool): {clamped}"


def test_one_dimension_of_space(check_model):
    form = Form("batch", 6, 31)
    x = form.both("x")
    for weights, attributes in (((8, 6, 5), {"strides": [2], "pads": [1, 2]}),
                                ((8, 1, 3), {"group": 8, "auto_pad": "SAME_UPPER", "kernel_shape": [3]})):  # fmt: skip
        y = form.node("Conv", x, form.weights(*weights)[0], form.numbers(8), **attributes)
        x = form.both(form.node("Relu", y), np.float32(0.05), np.uint8(0))
    x = form.node("MaxPool", x, kernel_shape=[3], pads=[0, 2], dilations=[2])
    x = form.both(form.node("Conv", x, form.weights(5, 8, 1)[0]), np.float32(0.06), np.uint8(99))
    graph = check_model(form.model(form.quantise(form.node("GlobalAveragePool", x), np.float32(0.0313))))
    assert graph.tensors[graph.outputs[0]].shape == (1, 5, 1)


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("keep", [0, 1])
def test_a_mean_of_rows_and_columns(keep, opset, check_model):
    answers = []
    for kind in ("ReduceMean", "GlobalAveragePool"):
        form = Form(1, 6, 8, 7, opset=opset)
        inputs, attributes = [form.both("x")], {}
        if kind == "ReduceMean":
            inputs += [np.int64([-1, 2])] if opset == 18 else []
            attributes = {"keepdims": keep} | ({"axes": [-1, 2]} if opset == 13 else {})
        y = form.node(kind, *inputs, **attributes)
        if kind != "ReduceMean" and not keep:
            y = form.node("Flatten", y)
        answers.append(compare_program(read_model(form.model(form.quantise(y, np.float32(0.0123)))))[0])
    np.testing.assert_array_equal(*answers)


REFUSED = [
    (("Squeeze", np.int64([1])), {},
     "(Squeeze): its input is [1, 6, 8, 7], whose dimensions [1] are not all of one element"),
    (("Unsqueeze", np.int64([0, -6])), {}, "(Unsqueeze): its dimensions [0, -6] are not different ones"),
    (("Unsqueeze", np.int64([6])), {}, "(Unsqueeze): it has no dimension 6: its input has 5"),
    (("Cast",), {"to": -5},
     "(Cast): it changes the type of float32, which only QuantizeLinear and DequantizeLinear do"),
    (("Clip", np.array(["a"])), {}, "(Clip): its limit 'c4' is not a number"),
    (("Shape",), {"end": [1]}, "(Shape): its attribute 'end' is not of the right type"),
    (("Dropout", np.float32(0.5), np.bool_(True)), {},
     "(Dropout): training mode is not supported"),
    (("DynamicQuantizeLinear",), {},
     "(DynamicQuantizeLinear): the operator is not supported: quantise the model statically (docs/quantise.md)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "attributes", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_refused(call, attributes, said):
    form = Form(1, 6, 8, 7, opset=15)
    kind, *inputs = call
    form.node(kind, form.both("x"), *inputs, **attributes)
    assert refusal(form.model("x")) == f"node 't2.0' {said}"


# Ends


@pytest.mark.parametrize("size", ["batch", None, -1])
def test_a_batch_of_any_size_is_one(size, check_model):
    form = Form(size, 6, 8, 7)
    y = form.node("Conv", form.both("x"), form.weights(4, 6, 3, 3)[0])
    graph = check_model(form.model(form.quantise(MOVES["shape"](form, y))))
    assert graph.tensors["x"].shape == (1, 6, 8, 7)


def test_names_of_one_tensor():
    form = Form(1, 6, 8, 7, dtype="uint8")
    y = form.node("Identity", form.node("Identity", "x"))
    graph = read_model(form.model(y, "x"))
    (first, second), _ = compare_program(graph)
    np.testing.assert_array_equal(first, second)


def test_an_output_that_is_an_input_of_floats():
    form = Form(1, 6, 8, 7)
    y = form.node("Identity", "x")
    assert refusal(form.model(y)) == "output 't0.0' is input 'x', which is not computed"


def test_two_scales_behind_one_product(check_model):
    form = Form(1, 2, 5, 12)
    y = form.node("MatMul", form.both("x"), form.weights(12, 9, axis=1)[0])
    check_model(form.model(form.quantise(y, np.float32(0.05)), form.quantise(y, np.float32(0.02))))
