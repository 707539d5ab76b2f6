"""Operators that take elements of a tensor, also repeatedly: of integers, and of floats between nodes."""

import numpy as np
import pytest

from support.network import refusal
from tilewright.verify.random.model import SCALE, ZERO, Form

SHAPE = (2, 24, 9, 10)


@pytest.fixture
def check(check_model):
    """Compares every tensor with ONNX Runtime, and the programs of two cores with the evaluation."""
    return lambda model: check_model(model, presets=("unit", "default"))


def slices(form, x):
    """Channels, rows and columns with a step; images; from the end; of a tensor that was sliced before."""
    yield form.node("Slice", x, *(np.int64(each) for each in ([3, 1, 2], [22, 9, 2**31 - 1], [1, 2, 3], [1, 2, 3])))
    yield form.node("Slice", x, np.int64([-1]), np.int64([2**40]), np.int64([0]))
    part = form.node("Slice", x, np.int64([16]), np.int64([-3]), np.int64([1]))
    yield form.node(
        "Slice", form.node("MaxPool", part, kernel_shape=[2, 2]), np.int64([1]), np.int64([5]), np.int64([-1])
    )
    yield form.node("Slice", x, *(np.int64([each]) for each in (23, -(2**31), 1, -1)))


def splits(form, x):
    """Of channels and of rows; one part is not used, and one is read by two."""
    first = form.node("Split", x, np.int64([5, 8, 11]), outputs=3, axis=1)
    yield form.node("Concat", first.replace(".0", ".2"), first, axis=1)
    yield first
    yield form.node("Split", x, np.int64([4, 5]), outputs=2, axis=2).replace(".0", ".1")


def gathers(form, x):
    """One channel, whose dimension goes; channels and rows in any order, some twice."""
    yield form.node("Gather", x, np.int64(-2), axis=1)
    yield form.node("Gather", x, np.int64([2, 3, 4]), axis=2)
    yield form.node("Gather", x, np.int64([7, 0, 0, 3, 5, 1]), axis=2)
    yield form.node("Gather", x, np.int64([7, 0, 0, 3, 22, 5, 5, 5]), axis=1)


def resizes(form, x):
    """Twice and three times as many rows and columns, half as many more; fewer; any sizes."""
    none = form.constant(np.float32([]))
    for scales, options in (
        ([1, 1, 2, 2], {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
        ([1, 1, 3, 1], {}),
        ([1, 1, 1.5, 2.5], {}),
        ([1, 1, 1, 0.5], {"nearest_mode": "round_prefer_ceil"}),
    ):
        yield form.node("Resize", x, none, np.float32(scales), mode="nearest", **options)
    yield form.node("Resize", x, none, none, np.int64([2, 24, 3, 20]), mode="nearest")


def blocks(form, x):
    """Channels as pixels, and pixels as channels."""
    yield form.node("SpaceToDepth", form.node("DepthToSpace", x, blocksize=2), blocksize=2)
    yield form.node("DepthToSpace", x, blocksize=2, mode="CRD")


def largest(form, x):
    """Of all pixels."""
    yield form.node("GlobalMaxPool", x)


@pytest.mark.parametrize(("operators", "quantised"), [
    *((operators, kind) for operators in (slices, splits, gathers, resizes, blocks) for kind in (False, True)),
    (largest, True),
])  # fmt: skip
def test_operators(operators, quantised, check):
    form = Form(*SHAPE, dtype="float32" if quantised else "uint8", opset=13)
    x = form.both("x") if quantised else "x"
    made = list(operators(form, x))
    check(form.model(*(form.quantise(y, SCALE, ZERO) if quantised else y for y in made)))


def test_between_convolutions(check):
    """Half of the channels is convolved, a map is made larger, and both are joined: what detectors do."""
    form = Form(1, 16, 8, 12)
    x = form.both("x")
    half = form.node("Split", x, np.int64([7, 9]), outputs=2, axis=1)
    y = form.node("Conv", half.replace(".0", ".1"), form.weights(12, 9, 3, 3)[0], strides=[2, 2], pads=[1] * 4)
    y = form.node("Resize", form.both(y), form.constant(np.float32([])), np.float32([1, 1, 2, 2]), mode="nearest")
    y = form.node("Concat", form.both(y), form.both(half), axis=1)
    check(form.model(form.quantise(form.node("Conv", form.both(y), form.weights(5, 19, 1, 1)[0]), np.float32(0.2))))


def test_of_a_matrix(check):
    form = Form(5, 40, dtype="uint8")
    rows = form.node("Slice", "x", np.int64([1]), np.int64([4]), np.int64([0]))
    check(form.model(form.node("Slice", rows, np.int64([3]), np.int64([37]), np.int64([1]), np.int64([2]))))


def test_at_the_end_of_a_network(check):
    form = Form(1, 40)
    y = form.node("Gemm", form.both("x"), form.weights(40, 12, axis=1)[0])
    check(
        form.model(
            form.node("Gather", form.node("Slice", y, np.int64([2]), np.int64([9]), np.int64([1])), np.int64(3), axis=1)
        )
    )


@pytest.mark.parametrize(("kind", "inputs", "options", "sentence"), [
    ("Gather", [np.int64([24])], {"axis": 1}, "its indices are 24 to 24, and dimension 1 has 24 elements"),
    ("Gather", [np.int64([[1]])], {"axis": 1}, "its indices 'c0' are not a list of integers"),
    ("Slice", [np.int64([1]), np.int64([2, 3])], {}, "its starts are [1], its ends [2, 3] and its steps [1]"),
    ("Slice", [np.int64([5]), np.int64([5])], {}, "its output 't0.0' would be [0, 24, 9, 10], without elements"),
    ("Split", [np.int64([4, 4])], {"axis": 2, "outputs": 2}, "its parts are [4, 4], of 9 elements, for 2 outputs"),
    ("Resize", [np.float32([]), np.float32([1, 1, 2, 2])], {"mode": "cubic"},
     "its attribute 'mode' is 'cubic', and only 'nearest' and 'linear' are supported"),
    ("Resize", [np.float32([]), np.float32([1, 1, 2, 2])], {"coordinate_transformation_mode": "tf_crop_and_resize"},
     "its attribute 'coordinate_transformation_mode' is 'tf_crop_and_resize': align_corners, asymmetric, half_pixel, "
     "half_pixel_symmetric, pytorch_half_pixel, tf_half_pixel_for_nn are supported"),
    ("DepthToSpace", [], {"blocksize": 5}, "its 24 channels are not a multiple of 25"),
    ("SpaceToDepth", [], {"blocksize": 2}, "its input is 9 × 10, no multiple of 2"),
])  # fmt: skip
def test_refused(kind, inputs, options, sentence):
    form = Form(*SHAPE, dtype="uint8")
    y = form.node(kind, "x", *inputs, **options)
    assert refusal(form.model(y)) == f"node 't0.0' ({kind}): {sentence}"
