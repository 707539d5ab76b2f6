"""Constants that a model quantises: types from an attribute or a zero point; and versions of operators."""

import numpy as np
import pytest
from onnx import TensorProto

from support.network import refusal
from tilewright.network import ModelError
from tilewright.network.reader import read_model
from tilewright.verify.random.model import SCALE, ZERO, Form

S = np.float32(0.02)


def integers(form, floats, output_dtype=TensorProto.INT8, scale=S, **attributes):
    """A constant as the floats of its integers, without a zero point."""
    quantised = form.node("QuantizeLinear", floats, scale, output_dtype=output_dtype, **attributes)
    return form.node("DequantizeLinear", quantised, scale, **attributes)


@pytest.mark.parametrize("opset", [21, 23, 25])
@pytest.mark.parametrize("dtype", [TensorProto.INT8, TensorProto.UINT8])
@pytest.mark.parametrize("kind", ["Conv", "ConvTwoScales", "MatMul", "Gemm", "Add", "Mul"])
def test_types_without_zero_points(kind, dtype, opset, agree):
    """Negative weights of int8 stay negative, as ONNX Runtime's."""
    shape = {"Conv": (1, 4, 6, 5), "ConvTwoScales": (1, 4, 6, 5)}.get(kind, (3, 12))
    form = Form(*shape, opset=opset)
    x = form.both("x")
    if kind.startswith("Conv"):
        several = {"scale": np.float32([0.02, 0.015]), "axis": -4} if kind == "ConvTwoScales" else {}
        y = form.node("Conv", x, integers(form, form.numbers(2, 4, 3, 3), dtype, **several))
    elif kind in ("MatMul", "Gemm"):
        y = form.node(kind, x, integers(form, form.numbers(12, 5), dtype))
    else:
        y = form.node(kind, x, integers(form, np.float32([-0.7]), dtype))
    agree(form.model(form.quantise(y, np.float32(0.0317), np.uint8(100))))


@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_a_number_without_dimensions(kind, agree):
    form = Form(3, 12, opset=21)
    y = form.node(kind, form.both("x"), integers(form, np.float32(-0.7)))
    agree(form.model(form.quantise(y, np.float32(0.0317), np.uint8(100))))


@pytest.mark.parametrize("constant", [False, True])
def test_a_type_that_contradicts_the_zero_point(constant):
    form = Form(3, 12, opset=21)
    x = form.numbers(3, 12) if constant else "x"
    y = form.node("QuantizeLinear", x, SCALE, ZERO, output_dtype=TensorProto.INT8)
    said = f"its output type is int8, and its zero point {'c2' if constant else 'c1'!r} is uint8"
    assert refusal(form.model(y)) == f"node 't0.0' (QuantizeLinear): {said}"


@pytest.mark.parametrize("constant", [False, True])
def test_types_that_are_not_supported(constant):
    form = Form(3, 12, opset=21)
    y = form.node("QuantizeLinear", form.numbers(3, 12) if constant else "x", SCALE, output_dtype=TensorProto.INT16)
    with pytest.raises(ModelError, match=r"its output type 5 is not supported: only uint8 and int8 are$"):
        read_model(form.model(y))


@pytest.mark.parametrize("axis", [0, -3])
def test_scales_of_a_kernel_of_one_dimension(axis, agree):
    form = Form(1, 2, 5)
    kernel = np.arange(-9, 9, dtype=np.int8).reshape(3, 2, 3)
    weights = form.node("DequantizeLinear", kernel, np.float32([0.01, 0.02, 0.03]), axis=axis)
    agree(form.model(form.quantise(form.node("Conv", form.both("x"), weights), S, np.uint8(128))))


@pytest.mark.parametrize(
    ("scales", "zeros", "said"),
    [
        ([0.1, 0.2], [0], "it has 2 scales and 1 zero points"), ([0.1], [0, 0], "it has 1 scales and 2 zero points"),
        ([0.1, 0.2, 0.3], [0] * 3, "it has 3 scales along dimension 1 of [3, 2]"),
    ],
)  # fmt: skip
def test_scales_and_zero_points_that_do_not_fit(scales, zeros, said):
    """ONNX Runtime refuses them too."""
    form = Form(3, 2)
    y = form.node("QuantizeLinear", form.numbers(3, 2), np.float32(scales), np.int8(zeros))
    assert refusal(form.model(y)) == f"node 't0.0' (QuantizeLinear): {said}"


@pytest.mark.parametrize(("before", "shape", "allowed"), [((2, 6), [3, 4], True), ((2, 6), [0, 6], False)])
def test_a_shape_that_may_have_zeros(before, shape, allowed, agree):
    """torch writes ``allowzero`` whether there is a 0 or not."""
    form = Form(*before, dtype="uint8", opset=18)
    model = form.model(form.node("Reshape", "x", np.int64(shape), allowzero=1))
    if allowed:
        agree(model)
        return
    said = "its shape [0, 6] with allowzero is one without elements, which is not supported"
    assert refusal(model) == f"node 't0.0' (Reshape): {said}"


@pytest.mark.parametrize("opset", [6, 1000])
def test_versions_that_are_not_known(opset):
    form = Form(2, 6, dtype="uint8", opset=opset)
    with pytest.raises(ModelError, match=rf"^the operators are of opset {opset}: 7 to \d+ are supported$"):
        read_model(form.model(form.node("MaxPool", "x")))


@pytest.mark.parametrize(("kind", "inputs", "opset", "said"), [
    ("Squeeze", {"axes": [0]}, 13, "its attribute 'axes' does not exist in opset 13"),
    ("Clip", (np.uint8(1), np.uint8(2)), 10, "it has 3 inputs, and there are at most 1 in opset 10"),
    ("Relu", ("x",), 13, "it has 2 inputs, and there are at most 1 in opset 13"),
    ("HardSwish", {}, 13, "the operator does not exist in opset 13"),
])  # fmt: skip
def test_what_is_of_another_version(kind, inputs, opset, said):
    form = Form(1, 6, dtype="uint8", opset=opset)
    y = form.node(kind, "x", **inputs) if isinstance(inputs, dict) else form.node(kind, "x", *inputs)
    assert refusal(form.model(y)) == f"node 't0.0' ({kind}): {said}"


def test_an_input_that_no_reader_uses():
    form = Form(1, 6)
    y = form.node("Gelu", form.both("x"), "x", domain="com.microsoft")
    with pytest.raises(ModelError, match=r"\(Gelu\): its input 'x', number 1, is not supported$"):
        read_model(form.model(form.quantise(y)))
