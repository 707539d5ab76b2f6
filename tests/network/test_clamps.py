"""Relu and Clip, of floats between operators and of integers."""

from itertools import product

import numpy as np
import pytest
from onnx import helper, numpy_helper

from tilewright.network.evaluation import evaluate
from tilewright.network.reader import read_model
from tilewright.verify.random.forms import as_qdq
from tilewright.verify.random.model import MICROSOFT, DrawnModel

SHAPE = (1, 4, 9, 9)


def network(dtype, clamp=None, **options):
    """A convolution and a sum, each followed by ``clamp``, an operator and its limits."""
    net = DrawnModel(np.random.default_rng(0), dtype, small_weights=True)
    net.give("x", SHAPE, 0.02, 3)
    weights, _ = net.weights((4, 4, 3, 3), 4)
    inputs = [*net.of(net.tensors[0]), *weights, *net.quantity(0.03, 20)]
    net.add("QLinearConv", inputs, SHAPE, 0.03, 20, pads=[1] * 4)
    first = put_clamp(net, clamp)
    inputs = [*net.of(first), *net.of(net.tensors[0]), *net.quantity(0.04, -9 if dtype == "int8" else 9)]
    net.add("QLinearAdd", inputs, SHAPE, 0.04, -9 if dtype == "int8" else 9, MICROSOFT)
    last = put_clamp(net, clamp)
    return net.model([("x", dtype, SHAPE)], [(last.name, dtype, SHAPE)])


def put_clamp(net, clamp):
    for _ in range(2 if clamp else 0):  # the second one changes nothing
        before = net.tensors[-1]
        kind, *ends = clamp
        inputs = [before.name, *(net.constant(end, net.dtype) if end is not None else "" for end in ends)]
        net.add(kind, inputs, SHAPE, before.scale, before.zero)
    return net.tensors[-1]


CLAMPS = [("Relu",), ("Clip", 10, 50), ("Clip", None, 40), ("Clip", 25), ("Clip",)]


# ONNX has no Relu of uint8.
@pytest.mark.parametrize(("dtype", "clamp"), [*product(["int8"], CLAMPS), *product(["uint8"], CLAMPS[1:])], ids=str)
def test_of_integers(dtype, clamp, agree):
    graph, _ = agree(network(dtype, clamp))
    assert [node.kind for node in graph.nodes] == ["Conv", "Add"]
    assert len(graph.tensors) == 3


def test_a_result_that_others_take_stays_as_it_is(agree):
    model = network("int8", ("Clip", -5, 5))
    model.graph.output.append(helper.make_tensor_value_info("t1", 3, SHAPE))
    graph, _ = agree(model)
    assert [node.kind for node in graph.nodes] == ["Conv", "Concat", "Concat", "Add"]


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("low", "high"), [(0, None), (-0.3, 0.5), (None, 1.3)])
def test_of_floats(low, high, dtype):
    plain, model = read_model(network(dtype)), as_qdq(network(dtype))
    between(model, low, high)
    graph = read_model(model)
    assert [node.kind for node in graph.nodes] == ["Conv", "Add"]
    inputs = {"x": np.random.default_rng(1).integers(0, 120, SHAPE).astype(dtype)}
    sums = evaluate(plain, inputs)["t1"]
    ends = [None if end is None else round(end / 0.03) + 20 for end in (low, high)]
    np.testing.assert_array_equal(evaluate(graph, inputs)["t1"], np.clip(sums, *ends))


def between(model, low, high):
    """Inserts a clamp of floats before each QuantizeLinear."""
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type == "QuantizeLinear":
            result = f"{node.input[0]}.clamped"
            names = [node.input[0], "", ""]
            for i, end in enumerate((low, high)):
                if end is not None:
                    names[i + 1] = f"{result}.{i}"
                    model.graph.initializer.append(numpy_helper.from_array(np.float32(end), names[i + 1]))
            kind, names = ("Relu", names[:1]) if (low, high) == (0, None) else ("Clip", names)
            model.graph.node.append(helper.make_node(kind, names, [result], result))
            node.input[0] = result
        model.graph.node.append(node)


def test_between_two_tensors():
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["f"]),
        helper.make_node("Relu", ["f"], ["g"]),
        helper.make_node("QuantizeLinear", ["g", "t", "z"], ["y"]),
    ]
    constants = [numpy_helper.from_array(value, name) for name, value in
                 (("s", np.float32(0.5)), ("t", np.float32(0.25)), ("z", np.int8(10)))]  # fmt: skip
    ends = [[helper.make_tensor_value_info(name, 3, [256])] for name in "xy"]
    graph = read_model(helper.make_model(helper.make_graph(nodes, "three", *ends, constants)))
    x = np.arange(-128, 128).astype(np.int8)
    expected = np.clip(10 + 2 * np.maximum(x.astype(int) - 10, 0), -128, 127)
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], expected)
