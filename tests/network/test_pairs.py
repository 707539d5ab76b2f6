"""Functions of two tensors, and sums of functions, that no tool quantises."""

import numpy as np
import pytest

from tilewright import network
from tilewright.network import ModelError
from tilewright.network.drawn import NetworkMaker
from tilewright.network.reader import read_model
from tilewright.verify.random.model import Form

#: In positions where none of the functions below has a root of a negative number.
X, Z = (np.float32(0.02), np.uint8(0)), (np.float32(0.013), np.uint8(0))


def power(form, x, z):
    return form.node("Pow", form.node("Add", x, np.float32(0.1)), z)


def of_functions(form, x, z):
    return form.node("Sub", form.node("Tanh", x), form.node("Div", z, form.node("Exp", z)))


def of_results(form, x, z):
    """A function of two tensors goes on, with one of them again, and is clamped."""
    difference = form.node("Max", form.node("Sub", form.node("Sqrt", x), form.node("Abs", z)), np.float32(-1))
    return form.node("Relu", form.node("Mul", form.node("Sigmoid", difference), form.node("Add", x, np.float32(0.1))))


def largest(form, x, z):
    return form.node("Max", x, z)


@pytest.mark.parametrize("function", [power, of_functions, of_results, largest])
@pytest.mark.parametrize("shapes", [((3, 40), (3, 40)), ((2, 6, 5, 7), (1, 6, 1, 1)), ((4, 1), (1, 300))], ids=str)
def test_functions_of_two_tensors(check_model, function, shapes):
    form = Form(*shapes[0])
    form.give("z", shapes[1])
    y = function(form, form.both("x", *X), form.both("z", *Z))
    graph = check_model(form.model(form.quantise(y, np.float32(0.0137), np.uint8(20))), presets=("default",))
    assert [node.kind for node in graph.nodes if node.operator in ("Pow", "Sub", "Mul", "Max")].count("Pairs") == 1


@pytest.mark.parametrize("kind", ["ReduceMean", "ReduceSum"])
@pytest.mark.parametrize(("function", "axes"), [("Abs", [1]), ("Square", [0, 2]), ("Exp", [1, 2, 3]), ("Tanh", [3])])
def test_sums_of_functions(check_model, kind, function, axes):
    form = Form(2, 5, 6, 7)
    x = form.both("x", np.float32(0.02), np.uint8(100))
    y = form.node("Pow", x, np.float32(2)) if function == "Square" else form.node(function, x)
    # ReduceSum takes its dimensions as an input.
    y = form.node(kind, y, np.int64(axes)) if kind == "ReduceSum" else form.node(kind, y, axes=axes)
    scale = np.float32(0.0317 * (len(axes) * 20 if kind == "ReduceSum" else 1))
    graph = check_model(form.model(form.quantise(y, scale, np.uint8(30))), presets=("unit",))
    assert "Conv" in [node.kind for node in graph.nodes]


@pytest.mark.parametrize("preset", ["default", "full"])
def test_tables_of_pairs(check_program, preset):
    maker = NetworkMaker(21)
    a, b = maker.input((3, 7, 41), "int8"), maker.input((3, 7, 41))
    maker.matrix(maker.pairs(a, b), 9)
    compiled = check_program(maker, preset, every_tensor=True, races=True)
    assert [layer.kernel.name for layer in compiled.plan.layers if layer.kernel] == ["pairs"]


def test_what_is_refused():
    form = Form(3, 40)
    for name in "zw":
        form.give(name, (3, 40))
    x, z, w = (form.both(name) for name in "xzw")
    three = form.both(form.node("Pow", form.node("Sub", form.node("Abs", x), form.node("Abs", z)), w))
    with pytest.raises(ModelError, match="computed from more than two tensors, which is not supported on floats"):
        read_model(form.model(form.quantise(form.node("MatMul", three, form.weights(40, 900, axis=1)[0]))))
    maker = NetworkMaker(22)
    maker.matrix(maker.pairs(maker.input((3, 40)), maker.input((3, 40))), 900)
    with pytest.raises(ModelError, match="its table of 65,536 results does not fit 16,256 bytes of shared memory"):
        network.compile(maker.graph(), "unit")
