"""Functions of one tensor, element by element, in every form that models have; and Softmax."""

import numpy as np
import pytest

from support.network import compare_program, refusal
from tilewright import network
from tilewright.network.evaluation import evaluate
from tilewright.network.functions import FUNCTIONS
from tilewright.network.reader import read_model
from tilewright.network.witness import run_witness
from tilewright.verify.random.model import MICROSOFT, Form

#: Of float32 x: about -6 to 6, and 0.
SCALE = np.float32(0.047)
#: Operators of negative numbers of which some are none.
POSITIVE = ("Log", "Sqrt")


def numbers(dtype):
    """All of a type of 8 bits, as a small feature map."""
    return np.arange(256, dtype=np.uint8).view(dtype).reshape(1, 4, 8, 8)


def start(dtype="uint8", zero=None, opset=22):
    """A model of integers so far, and the name of the floats that they stand for."""
    form = Form(1, 4, 8, 8, dtype=dtype, opset=opset)
    zero = np.array(100 if dtype == "uint8" else -20, dtype) if zero is None else zero
    return form, form.floats("x", SCALE, zero)


def finish(form, y, scale=0.02, dtype="uint8"):
    """The model, whose output is ``y`` as integers."""
    return form.model(form.quantise(y, np.float32(scale), np.array(60, dtype)))


@pytest.fixture
def check(check_model):
    """Compares all 256 results with ONNX Runtime, and the program with the evaluation."""
    return lambda model, dtype="uint8": check_model(model, {"x": numbers(dtype)})


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("kind", FUNCTIONS)
def test_every_function(kind, dtype, check):
    info = np.iinfo(dtype)
    form, x = start(dtype, np.array(info.min, dtype) if kind in POSITIVE else None)
    check(finish(form, form.node(kind, x), dtype=dtype), dtype)


@pytest.mark.parametrize(("kind", "attributes"), [
    ("LeakyRelu", {"alpha": 0.3}), ("Elu", {"alpha": 0.7}), ("HardSigmoid", {"alpha": 0.17, "beta": 0.4}),
    ("Gelu", {"approximate": "tanh"}), ("ThresholdedRelu", {"alpha": 2.0}), ("Selu", {"alpha": 1.5, "gamma": 0.9}),
])  # fmt: skip
def test_attributes(kind, attributes, check):
    form, x = start()
    check(finish(form, form.node(kind, x, **attributes)))


def silu(form, x, between):
    return form.node("Mul", x, between(form.node("Sigmoid", x), 1 / 256))


def hard_swish(form, x, between):
    """As PyTorch writes it, with constants in floats."""
    sum_of = between(form.node("Add", x, np.float32(3)), 0.04)
    clipped = between(form.node("Clip", sum_of, np.float32(0), np.float32(6)), 6 / 255)
    return form.node("Div", between(form.node("Mul", clipped, x), 0.1), np.float32(6))


def gelu(form, x, between):
    """As it is taken apart where there is no operator."""
    share = between(form.node("Erf", form.node("Div", x, np.float32(2**0.5))), 2 / 255)
    return form.node("Mul", np.float32(0.5), form.node("Mul", x, form.node("Add", np.float32(1), share)))


def others(form, x, between):
    """Numbers on either side, largest and least of two, a power, a slope."""
    y = form.node("PRelu", form.node("Sub", np.float32(1.5), x), np.float32([[[0.2]]]))
    y = between(form.node("Max", form.node("Min", y, np.float32(4)), form.node("Pow", x, np.float32(2))), 0.2)
    return form.node("Div", np.float32(3), form.node("Add", form.node("Abs", y), form.node("Exp", form.node("Neg", x))))


@pytest.mark.parametrize("quantised", [False, True], ids=["floats", "integers"])
@pytest.mark.parametrize("function", [silu, hard_swish, gelu, others])
def test_functions_of_several_nodes(function, quantised, check):
    """With integers between the nodes, as tools quantise them, and without."""

    def between(y, scale):
        return form.both(y, np.float32(scale), np.uint8(130)) if quantised else y

    form, x = start()
    check(finish(form, function(form, x, between)))


def test_what_no_output_needs_is_left_out():
    """Of a product of x and integers of its sigmoid one table is left, unless every tensor is wanted."""
    form, x = start()
    model = finish(form, form.node("Mul", x, form.both(form.node("Sigmoid", x), np.float32(1 / 256), np.uint8(0))))
    graph = read_model(model)
    assert len(network.compile(graph, "unit").plan.layers) == 1
    whole = network.compile(graph, "unit", every_tensor=True)
    inputs = {"x": numbers("uint8")}
    expected = evaluate(graph, inputs)
    names = [node.output for node in graph.nodes]
    for name, value in whole.run(inputs, names=names).items():
        np.testing.assert_array_equal(value, expected[name])


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("kind", "attributes"), [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2})])
def test_functions_of_integers(kind, attributes, dtype, check):
    form = Form(1, 4, 8, 8, dtype=dtype)
    quantities = SCALE, np.array(7, dtype), np.float32(0.03), np.array(40, dtype)
    check(form.model(form.node(kind, "x", *quantities, domain=MICROSOFT, **attributes)), dtype)


@pytest.mark.parametrize("kind", ["QLinearAdd", "QLinearMul"])
def test_operands_of_integers(kind, check):
    """A number as first and as second operand, the tensor itself, and a table of it."""
    form = Form(1, 4, 8, 8, dtype="uint8")
    x, three, y = (SCALE, np.uint8(100)), (np.float32(0.1), np.uint8(3)), (np.float32(0.15), np.uint8(90))
    first = form.node(kind, np.uint8([33]), *three, "x", *x, *y, domain=MICROSOFT)
    second = form.node(kind, "x", *x, np.uint8(200), *three, *y, domain=MICROSOFT)
    twice = form.node(kind, "x", *x, "x", *x, *y, domain=MICROSOFT)
    sigmoid = form.node("QLinearSigmoid", "x", *x, np.float32(1 / 256), np.uint8(0), domain=MICROSOFT)
    product = form.node(kind, second, *y, sigmoid, np.float32(1 / 256), np.uint8(0), *y, domain=MICROSOFT)
    check(form.model(first, second, twice, product))


@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_a_number_with_a_scale(kind, check):
    form, x = start()
    number = form.floats(np.int8([40]), np.float32(0.05), np.int8(2))
    check(finish(form, form.node(kind, x, number), 0.1))


# At the end, on the host


def close(model, dtype="uint8"):
    """Floats at the end are those of ONNX Runtime but for last bits, and the program's those of the evaluation."""
    graph, inputs = read_model(model), {"x": numbers(dtype)}
    expected = run_witness(model, graph, inputs, list(graph.outputs))
    for name, value in evaluate(graph, inputs).items():
        if name in expected:
            np.testing.assert_allclose(value, expected[name], rtol=3e-6, atol=1e-7)
    compare_program(graph, inputs)
    return graph


def test_functions_at_the_end():
    form, x = start()
    model = form.model(form.node("Sigmoid", x), form.node("Clip", x, np.float32(-1.01), np.float32(2.02)))
    assert [node.kind for node in close(model).nodes] == ["Dequantize"] * 2


@pytest.mark.parametrize("then", ["Relu", "Sigmoid", "Softmax", "Reshape", "Transpose", "nothing"])
def test_behind_a_last_product(then):
    """What follows a product whose results stay float32, several of them."""
    form, x = start()
    rows = form.node("Reshape", x, np.int64([4, 64]))
    y = form.node("Gemm", rows, form.weights(64, 6, axis=1)[0])
    if then in ("Reshape", "Transpose"):
        y = form.node(
            "Relu", form.node("Reshape", y, np.int64([3, 8])) if then == "Reshape" else form.node("Transpose", y)
        )
    elif then != "nothing":
        y = form.node("Softmax", form.node("Clip", form.node(then, y), np.float32(0.1)))
    close(form.model(y))


@pytest.mark.parametrize(("opset", "axis", "share"), [(13, -1, 8), (13, 1, 4), (11, 2, 64), (11, 1, 256)])
def test_shares_of_floats(opset, axis, share):
    form, x = start(opset=opset)
    graph = close(form.model(form.node("Softmax", x, axis=axis)))
    (value,) = (evaluate(graph, {"x": numbers("uint8")})[name] for name in graph.outputs)
    np.testing.assert_allclose(value.sum(), 256 / share, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("scale", [1 / 256, 0.0037, 0.0008])
def test_shares_of_integers(scale, axis, dtype, check):
    """Between DequantizeLinear and QuantizeLinear, and as an operator on integers; floats follow."""
    form, x = start(dtype)
    y = np.float32(scale), np.array(np.iinfo(dtype).min + 3, dtype)
    shares = form.quantise(form.node("Softmax", x, axis=axis), *y)
    own = form.node("QLinearSoftmax", "x", SCALE, np.array(5, dtype), *y, domain=MICROSOFT, axis=axis, opset=13)
    check(form.model(shares, form.floats(shares, *y), own), dtype)


def test_nothing_is_done_behind_what_the_host_computes():
    form, x = start()
    shares = form.both(form.node("LogSoftmax", x))
    y = form.quantise(form.node("Conv", shares, form.weights(3, 4, 1, 1)[0]), np.float32(0.05))
    assert refusal(form.model(y)).endswith("(LogSoftmax): the operator is only at the end of a network supported")


@pytest.mark.parametrize(("nodes", "sentence"), [
    (lambda form, x: form.node("Log", x), "(Log): its results are not numbers for some of its inputs"),
    (lambda form, x: form.node("Sigmoid", "x"),
     "(Sigmoid): its input 'x' is uint8, not the DequantizeLinear of integers"),
    (lambda form, x: form.node("Gelu", x, approximate="erf"),
     "(Gelu): its attribute 'approximate' is 'erf', and only none and tanh are supported"),
])  # fmt: skip
def test_refused(nodes, sentence):
    form, x = start()
    assert refusal(finish(form, nodes(form, x))).endswith(sentence)


def test_a_rank_that_no_kernel_has_is_done_by_the_host(check_model):
    form, x = start()
    assert check_model(finish(form, form.node("Div", x, np.float32([[[[[2]]]]])))).tail
