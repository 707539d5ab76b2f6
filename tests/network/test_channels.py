"""Numbers for each channel, phases of larger feature maps, reductions over any dimensions, and padding by elements."""

import numpy as np
import pytest

from support.network import refusal
from tilewright.verify.random.model import Form

Y = np.float32(0.05), np.uint8(117)


def drawn(*shape):
    return np.random.default_rng(5).normal(0, 1, shape).astype(np.float32)


def of_one(kind, shape, *constants, opset=13, **attributes):
    form = Form(*shape, opset=opset)
    return form.model(form.quantise(form.node(kind, form.both("x"), *constants, **attributes), *Y))


@pytest.mark.parametrize("shape", [(1, 12, 7, 5), (3, 12), (2, 12, 9)])
def test_batch_normalisation(shape, check_model):
    check_model(
        of_one("BatchNormalization", shape, drawn(12), drawn(12) / 2, drawn(12), np.abs(drawn(12)) + np.float32(0.1))
    )


def test_batch_normalisation_whose_gain_is_0(check_model):
    gain = np.float32([0, 1e-30, 1, -2])
    check_model(of_one("BatchNormalization", (1, 4, 5, 6), gain, drawn(4), drawn(4), np.ones(4, np.float32)))


@pytest.mark.parametrize("sign", ["positive", "any"])
@pytest.mark.parametrize(("shape", "slopes"), [((1, 12, 7, 5), (12, 1, 1)), ((2, 12, 9), (12, 1)), ((3, 12), (12,))])
def test_slopes(shape, slopes, sign, check_model):
    check_model(of_one("PRelu", shape, np.abs(drawn(*slopes)) if sign == "positive" else drawn(*slopes)))


def test_slopes_whose_products_are_halves(agree):
    """ONNX Runtime rounds each half as its floats fall: it is no reference there, and elsewhere it is."""
    form = Form(1, 4, 16, 16)
    y = form.node(
        "PRelu", form.both("x", np.float32(0.1), np.uint8(128)), np.float32([0.5, 0.25, 1, 1.1]).reshape(4, 1, 1)
    )
    model = form.model(form.quantise(y, np.float32(0.1) / np.float32(1.5), np.uint8(100)))
    x = np.tile(np.float32(0.1) * np.arange(-128, 128, dtype=np.float32).reshape(16, 16), (1, 4, 1, 1))
    agree(model, {"x": x})


@pytest.mark.parametrize(
    ("kernel", "options"),
    [
        ((4, 2, 2), {"strides": [2, 2]}), ((16, 2, 2), {"strides": [2, 2]}), ((5, 3, 3), {}),
        ((5, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        ((5, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}), ((5, 3, 2), {"strides": [3, 1], "pads": [1, 0, 0, 1]}),
        ((2, 3, 3), {"strides": [2, 2], "group": 3}), ((5, 3, 3), {"dilations": [2, 2], "strides": [2, 3]}),
        ((5, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}), ((5, 1, 1), {"strides": [2, 2]}),
        ((5, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
        ((5, 3, 3), {"output_shape": [9, 11], "strides": [2, 2]}),
    ],
    ids=str,
)  # fmt: skip
def test_transposed_convolutions(kernel, options, check_model):
    shape, groups = (1, 6, 5, 7), options.get("group", 1)
    form = Form(*shape)
    weights = form.weights(6, *kernel, axis=1)[0]
    if groups > 1:
        quantity = np.float32(0.02), np.int8(0)
        weights = form.floats(form.quantise(drawn(6, *kernel), *quantity), *quantity)
    y = form.node("ConvTranspose", form.both("x"), weights, drawn(kernel[0] * groups), **options)
    check_model(form.model(form.quantise(y, *Y)))


@pytest.mark.parametrize("integers", ["", "uint8", "int8"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
@pytest.mark.parametrize("size", [(12, 10), (24, 5), (6, 10), (3, 5), (18, 15), (48, 40)])
def test_linear_interpolation(size, coordinates, integers, check_model):
    form = Form(1, 8, 6, 5)
    none, sizes = np.float32([]), np.int64([1, 8, *size])
    options = {"mode": "linear", "coordinate_transformation_mode": coordinates}
    if integers:
        given = form.quantise("x", np.float32(0.02), np.array(3, integers))
        model = form.model(form.node("Resize", given, none, none, sizes, **options))
        if size == (18, 15) or (coordinates == "align_corners" and size != (3, 5)):
            assert "which floats do not hold exactly" in refusal(model)
            return
    else:
        model = form.model(form.quantise(form.node("Resize", form.both("x"), none, none, sizes, **options)))
    graph = check_model(model)
    assert coordinates == "align_corners" or not any(node.kind == "Floats" for node in graph.nodes)


@pytest.mark.parametrize("before", [(900, 4), (3, 770)])
def test_interpolated_elements_further_apart_than_a_stride(before, check_model):
    form = Form(1, 3, *before)
    none, sizes = np.float32([]), np.int64([1, 3, 3, 2])
    y = form.node("Resize", form.both("x"), none, none, sizes, mode="linear")
    check_model(form.model(form.quantise(y)))


def test_weights_that_a_byte_does_not_hold():
    form = Form(1, 8, 60, 50)
    none = np.float32([])
    y = form.both(form.node("Resize", form.both("x"), none, none, np.int64([1, 8, 67, 71]), mode="linear"))
    y = form.node("Conv", y, form.weights(8, 8, 1, 1)[0])
    assert "which a byte does not hold" in refusal(form.model(form.quantise(y)))


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((1, 8, 6, 5), [2, 3]), ((1, 8, 6, 5), [2]), ((1, 8, 6, 5), [1]), ((1, 8, 6, 5), [-1]), ((2, 7, 16), [1]),
     ((2, 7, 16), [2]), ((5, 12), [1]), ((1, 8, 6, 5), [1, 3]), ((1, 2, 700), [2])],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["ReduceMean", "ReduceMax", "ReduceSum"])
def test_reductions(kind, shape, axes, keep, check_model):
    inputs, options = ([np.int64(axes)], {}) if kind == "ReduceSum" else ([], {"axes": axes})
    check_model(of_one(kind, shape, *inputs, keepdims=keep, **options))


@pytest.mark.parametrize("preset", ["unit", "default"])
def test_an_average_of_more_rows_than_shared_memory_holds(preset, check_model):
    check_model(
        of_one("GlobalAveragePool", (1, 24, 120, 60) if preset == "default" else (1, 7, 40, 33)), presets=(preset,)
    )


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_padding_by_elements(mode, check_model):
    check_model(of_one("Pad", (1, 8, 6, 5), np.int64([0, 0, 2, 1, 0, 0, 1, 3]), mode=mode))


@pytest.mark.parametrize(
    ("kind", "shape", "constant"),
    [("Expand", (1, 8, 1, 1), [1, 8, 6, 5]), ("Expand", (8, 1), [3, 8, 5]), ("Tile", (1, 8, 3, 2), [1, 2, 2, 1]),
     ("Expand", (1, 1, 6, 5), [1, 16, 6, 5])],
)  # fmt: skip
def test_repeated_elements(kind, shape, constant, check_model):
    check_model(of_one(kind, shape, np.int64(constant)), presets=("unit", "default"))
