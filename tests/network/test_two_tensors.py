"""Operators on two tensors: sums, products and extremes, with dimensions that are repeated, and with constants."""

import numpy as np
import pytest

from support.network import refusal
from tilewright.verify.random.model import Form

Y = np.float32(0.05), np.uint8(7)
OTHER = np.float32(0.02), np.uint8(100)
SHAPES = [
    ((2, 8, 6, 5), (1, 8, 1, 1)), ((1, 8, 6, 5), (8, 1, 1)), ((2, 8, 6, 5), (2, 8, 1, 1)), ((3, 40), (40,)),
    ((2, 7, 24), (24,)), ((1, 8, 6, 5), (1, 1, 1, 1)), ((1, 33, 4, 4), (1, 33, 1, 1)),
]  # fmt: skip


def of_two(kind, shape, other, *, constant=False, swapped=False, dtype="uint8"):
    form = Form(*shape)
    quantity = [(scale, np.array(int(zero) - 128 * (dtype == "int8"), dtype)) for scale, zero in (OTHER, Y)]
    if constant:
        numbers = np.random.default_rng(3).integers(0, 256, other).astype(np.uint8).view(dtype)
        b = form.floats(numbers, *quantity[0])
    else:
        form.give("b", other)
        b = form.both("b", *quantity[0])
    operands = (b, form.both("x")) if swapped else (form.both("x"), b)
    return form.model(form.quantise(form.node(kind, *operands), *quantity[1]))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["Add", "Mul", "Sub"])
def test_repeated_dimensions(kind, shapes, constant, swapped, check_model):
    if len(shapes[1]) == 1 and not constant:
        pytest.skip("an input of one dimension has no batch")
    check_model(of_two(kind, *shapes, constant=constant, swapped=swapped))


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("kind", ["Add", "Mul", "Sub"])
def test_a_number_for_each_pixel(kind, constant, check_model):
    check_model(of_two(kind, (1, 20, 6, 5), (1, 1, 6, 5), constant=constant))


@pytest.mark.parametrize("kind", ["Add", "Mul", "Sub", "Sum", "Max", "Min"])
def test_tensors_of_one_shape(kind, check_model):
    check_model(of_two(kind, (2, 8, 6, 5), (2, 8, 6, 5)), presets=("unit", "default"))


@pytest.mark.parametrize("count", [1, 3, 4])
@pytest.mark.parametrize("kind", ["Max", "Min", "Sum"])
def test_any_number_of_tensors(kind, count, check_model):
    """A kernel adds three or more, which are rounded once; or the host, if the engine has no room for the kernel."""
    if (kind, count) in (("Max", 1), ("Min", 1)):
        pytest.skip("a tensor alone")
    form = Form(1, 8, 6, 5)
    tensors = [form.both("x")]
    for number in range(1, count):
        form.give(f"b{number}", (1, 8, 6, 5))
        tensors.append(form.both(f"b{number}", np.float32(0.01 * number), np.uint8(100)))
    graph = check_model(form.model(form.quantise(form.node(kind, *tensors), *Y)))
    assert any(node.kind == "Arithmetic" for node in graph.nodes) == (kind == "Sum" and count > 2)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    "shapes", [((1, 8, 1, 5), (1, 8, 6, 1)), ((1, 1, 6, 5), (1, 8, 1, 1)), ((2, 7, 1), (1, 1, 24))], ids=str
)
@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_dimensions_of_both_are_repeated(kind, shapes, constant, check_model):
    check_model(of_two(kind, *shapes, constant=constant))


@pytest.mark.parametrize("shape", [(2, 33, 21), (3, 50), (1, 5, 41, 37), (1, 3, 4, 5, 6)], ids=str)
def test_products_of_one_shape(shape, check_model):
    """Elements are channels, of one image or of many; a function of the product is part of its jobs."""
    form = Form(*shape)
    form.give("b", shape)
    gate = form.both(form.node("Sigmoid", form.both("b", *OTHER)), np.float32(1 / 255), np.uint8(0))
    y = form.both(form.node("Mul", form.both("x"), gate), *Y)
    check_model(form.model(form.quantise(form.node("Tanh", y), np.float32(1 / 128), np.uint8(128))))


@pytest.mark.parametrize("name", ["b", "x"])
def test_squeeze_and_excitation(name, check_model):
    """The factors of channels are computed from the tensor that is multiplied, or from another one."""
    form = Form(1, 24, 9, 7)
    if name == "b":
        form.give("b", (1, 24, 9, 7))
    x, quantity = form.both("x"), (np.float32(1 / 255), np.uint8(0))
    pooled = form.both(form.node("GlobalAveragePool", x if name == "x" else form.both("b")), *OTHER)
    small = form.both(form.node("Relu", form.node("Conv", pooled, form.weights(8, 24, 1, 1)[0])), *Y)
    factors = form.both(form.node("HardSigmoid", form.both(form.node("Conv", small, form.weights(24, 8, 1, 1)[0]))),
                        *quantity)  # fmt: skip
    y = form.both(form.node("Mul", factors, x), *Y)
    check_model(
        form.model(form.quantise(form.node("Conv", y, form.weights(5, 24, 1, 1)[0]))), presets=("unit", "default")
    )


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_constants_among_tensors(axis, check_model):
    form, shape = Form(1, 8, 6, 16), [1, 8, 6, 16]
    shape[axis] = 4
    numbers = np.random.default_rng(2).integers(0, 256, shape).astype(np.uint8)
    plain = np.random.default_rng(3).normal(0, 1, shape).astype(np.float32)
    check_model(
        form.model(
            form.quantise(form.node("Concat", form.both("x"), form.floats(numbers, *OTHER), plain, axis=axis), *Y)
        )
    )


@pytest.mark.parametrize(
    ("shape", "other", "sentence"),
    [
        ((1, 8, 6, 5), (1, 8, 5, 5), "which do not fit"),
    ],
)  # fmt: skip
def test_refusals(shape, other, sentence):
    assert sentence in refusal(of_two("Mul", shape, other))
