"""What the host computes at the end of a network, inputs of integers, and the list of refusals."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tilewright import network
from tilewright.network import ModelError
from tilewright.network.reader import read_model
from tilewright.network.reader.refusals import refusals_of
from tilewright.network.witness import run_witness
from tilewright.verify.random.model import Form
from tilewright.verify.random.networks import draw_inputs


def agrees(model, preset="unit"):
    """Compares the outputs of a model and of its program with those of ONNX Runtime, floats but for their last bits."""
    graph = read_model(model)
    inputs = draw_inputs(np.random.default_rng(0), graph)
    theirs = run_witness(model, graph, inputs, list(graph.outputs))
    ours, run = network.evaluate(graph, inputs), network.compile(graph, preset).run(inputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(run[name], ours[name])
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6)
        assert ours[name].dtype == theirs[name].dtype


def of_floats(*nodes, shape=(1, 6, 4, 5), opset=18):
    """A model whose operators follow a quantised convolution: each a kind, constants and attributes."""
    form = Form(*shape, opset=opset)
    y = form.both(form.node("Conv", form.both("x"), form.weights(6, 6, 1, 1)[0]))
    for kind, constants, attributes in nodes:
        y = form.node(kind, y, *constants, **attributes)
    return form, y


@pytest.mark.parametrize(
    "node",
    [("Add", [np.float32([[1, 2, 3, 4, 5]])], {}), ("Mul", [np.full((1, 6, 1, 1), 3, np.float32)], {}),
     ("Div", [np.float32(7)], {}), ("ReduceMean", [np.int64([1])], {}), ("ReduceL2", [np.int64([2, 3])], {}),
     ("LogSoftmax", [], {"axis": 1}), ("Softmax", [], {"axis": 2}), ("ArgMax", [], {"axis": 1}), ("Sigmoid", [], {}),
     ("Greater", [np.float32(0.5)], {}), ("LpNormalization", [], {"axis": 1}), ("Floor", [], {}), ("Neg", [], {}),
     ("GlobalAveragePool", [], {}), ("GlobalLpPool", [], {"p": 3}), ("LRN", [], {"size": 5, "alpha": 0.5}),
     ("Cast", [], {"to": TensorProto.INT32}), ("CumSum", [np.int64(1)], {}),
     ("Pad", [np.int64([0, 0, 1, 0, 0, 0, 0, 2]), np.float32(np.inf)], {})],
    ids=lambda node: node[0],
)  # fmt: skip
def test_an_operator_at_the_end(node):
    form, y = of_floats(node)
    agrees(form.model(y))


@pytest.mark.parametrize("how", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("size", [(64, 80), (7, 9), (3, 5)])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_feature_maps_are_resized_at_the_end(mode, size, how):
    """What the weights of a job do not hold, and cubic interpolation, as in segmentation and super-resolution."""
    options = {"mode": mode, "coordinate_transformation_mode": how}
    form, y = of_floats()
    agrees(form.model(form.node("Resize", y, "", "", np.int64([1, 6, *size]), **options)))


def test_boxes_are_decoded():
    """As in a detector: a product and a sum of parts of the result, joined, and the best of them."""
    form, y = of_floats(
        ("Sigmoid", [], {}), ("Reshape", [np.int64([1, 6, 20])], {}), ("Transpose", [], {"perm": [0, 2, 1]})
    )
    first, second = (
        form.node("Slice", y, np.int64([0]), np.int64([2]), np.int64([2])),
        form.node("Slice", y, np.int64([2]), np.int64([6]), np.int64([2])),
    )
    centre = form.node("Mul", form.node("Add", first, np.float32(-0.5)), np.float32([8, 16]))
    joined = form.node("Concat", centre, form.node("Pow", second, np.float32(2)), axis=2)
    agrees(form.model(joined, form.node("ReduceMax", second, np.int64([2]), keepdims=0)))


def test_two_results():
    form, y = of_floats(("Reshape", [np.int64([1, 120])], {}))
    values = form.node("TopK", y, np.int64([5]), outputs=2, axis=1)
    agrees(form.model(values, values.replace(".0", ".1")))


def test_non_maximum_suppression():
    form = Form(1, 4, 1, 30, opset=13)
    y = form.both(form.node("Conv", form.both("x"), form.weights(4, 4, 1, 1)[0]))
    boxes = form.node("Transpose", form.node("Reshape", y, np.int64([1, 4, 30])), perm=[0, 2, 1])
    scores = form.node(
        "Reshape", form.node("Slice", y, np.int64([0]), np.int64([1]), np.int64([1])), np.int64([1, 1, 30])
    )
    chosen = form.node("NonMaxSuppression", boxes, scores, np.int64([5]), np.float32([0.5]), np.float32([0]))
    numbers = form.node("Slice", chosen, np.int64([2]), np.int64([3]), np.int64([1]))
    first = form.node(
        "Gather", form.node("Reshape", boxes, np.int64([30, 4])), form.node("Squeeze", numbers, np.int64([1]))
    )
    quantised = form.both(form.node("Mul", first, np.float32([2, 2, 3, 3])))
    whole = form.node("Cast", form.node("Relu", quantised), to=TensorProto.INT32)
    agrees(form.model(chosen, first, form.node("Concat", quantised, first, axis=1), whole))


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_an_input_of_integers(kind):
    form = Form(1, 3, 8, 8)
    model = form.model(form.quantise(form.node("Conv", form.both(form.node("Cast", "x", to=TensorProto.FLOAT)),
                                               form.weights(4, 3, 3, 3)[0])))  # fmt: skip
    model.graph.input[0].type.tensor_type.elem_type = kind
    inputs = {"x": np.random.default_rng(1).integers(-5, 9, (1, 3, 8, 8)).astype(helper.tensor_dtype_to_np_dtype(kind))}
    graph = read_model(model)
    ours = network.evaluate(graph, inputs)
    theirs = run_witness(model, graph, inputs, list(graph.outputs))
    run = network.compile(graph, "unit").run(inputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(ours[name], theirs[name])
        np.testing.assert_array_equal(run[name], ours[name])


def test_integers_after_the_host():
    """As in a YOLO: a product follows a Softmax. The host does it, and the maximum after it."""
    form, y = of_floats(shape=(1, 6, 40, 50))
    y = form.node("Slice", y, np.int64([0, 0]), np.int64([3, 2]), np.int64([2, 3]))
    y = form.both(form.node("Softmax", y, axis=1), np.float32(1 / 255), np.uint8(0))
    y = form.both(form.node("Conv", y, form.weights(2, 6, 1, 1)[0]))
    model = form.model(form.quantise(form.node("MaxPool", y, kernel_shape=[2, 2])))
    agrees(model)
    assert [node.operator for node in read_model(model).tail if node.kind in ("Conv", "Pool")] == ["Conv", "MaxPool"]


@pytest.mark.parametrize("kind", ["Sigmoid", "Softmax"])
def test_functions_of_moved_elements(kind):
    """Integers as ONNX Runtime has them, although nothing quantises the elements between the two operators."""
    form, y = of_floats(("Slice", [np.int64([1]), np.int64([4]), np.int64([1])], {}))
    y = form.both(form.node(kind, y), np.float32(1 / 255), np.uint8(0))
    model = form.model(form.quantise(form.node("MaxPool", y, kernel_shape=[2, 2])))
    agrees(model)
    assert not any(node.kind == "Floats" for node in read_model(model).nodes)


def test_a_refused_operator_at_the_end():
    """The deviations of channels, which are sums of floats that nothing quantises."""
    form, y = of_floats(shape=(1, 6, 40, 50))
    mean = form.node("ReduceMean", y, np.int64([2, 3]))
    squares = form.node("ReduceMean", form.node("Pow", form.node("Sub", y, mean), np.float32(2)), np.int64([2, 3]))
    both = form.both(form.node("Concat", mean, form.node("Sqrt", squares), axis=1))
    agrees(form.model(form.quantise(form.node("Conv", both, form.weights(3, 12, 1, 1)[0]))))


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.FLOAT])
def test_pixels_are_prepared_by_the_host(kind):
    """What is computed before the first QuantizeLinear is also added at the end."""
    form = Form(1, 3, 8, 9)
    x = form.node("Cast", "x", to=TensorProto.FLOAT) if kind == TensorProto.UINT8 else "x"
    x = form.node("Div", form.node("Sub", x, np.full((3, 1, 1), 0.4, np.float32)), form.numbers(1, 3, 1, 1))
    y = form.node("Conv", form.both(x), form.weights(3, 3, 3, 3)[0], pads=[1, 1, 1, 1])
    model = form.model(form.node("Sub", x, form.both(y)))
    model.graph.input[0].type.tensor_type.elem_type = kind
    agrees(model)


def test_the_host_is_not_in_the_middle():
    form, y = of_floats(("LogSoftmax", [], {"axis": 1}))
    again = form.node("Conv", form.both(y), form.weights(2, 6, 1, 1)[0])
    with pytest.raises(ModelError, match="only at the end of a network"):
        network.compile(read_model(form.model(form.quantise(again))), "unit")


def test_every_refusal_is_listed():
    """Two operators that are not supported, one behind the other, and a wrong attribute in between."""
    form = Form(1, 6, 8, 8)
    y = form.both(form.node("LRN", form.both("x"), size=3))
    y = form.both(form.node("Conv", y, form.weights(6, 6, 3, 3)[0], pads=[1, 1, 1, 1]))
    y = form.both(form.node("AveragePool", y, kernel_shape=[2, 2], strides=[2, 2], pads=[2, 0, 0, 0]))
    y = form.node("LpPool", y, kernel_shape=[2, 2])
    reasons = refusals_of(form.model(form.quantise(y)))
    assert [reason.split("(")[1].split(")")[0] for reason in reasons] == ["LRN", "AveragePool", "LpPool"]
    form, y = of_floats()
    assert refusals_of(form.model(y)) == []


def test_help_of_a_refusal():
    form = Form(4, 1, 6)
    y = form.node("LRN", form.both("x"), size=3)
    (reason,) = refusals_of(form.model(form.node("MatMul", form.both(y), form.weights(6, 300, axis=1)[0])))
    assert "kernel of the processing engine" in reason
    assert isinstance(form.model(y), onnx.ModelProto)
