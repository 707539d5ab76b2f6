"""Layers from arrays: results do not depend on the plan; refusals."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.golden import CONV_PRESETS, ConvLayer, PostProcessing, convolve
from tilewright.golden.arguments import shown
from tilewright.spec.conv import JOB
from tilewright.spec.pe import MM_FAMILIES

RNG = np.random.default_rng(3)
X = RNG.integers(0, 256, (2, 9, 11, 3), np.uint8)
K = RNG.integers(-128, 128, (5, 3, 5, 3), np.int8)
OF = "an array of shape"
LUT = np.random.default_rng(8).permutation(256).astype(np.uint8)


def direct(x, k, stride, padding, dtype=np.int64):
    """A convolution in numbers of ``dtype``, tap by tap."""
    top, bottom, left, right = padding
    x = np.pad(x.astype(dtype), ((0, 0), (top, bottom), (left, right), (0, 0)))
    rows, columns = (
        (size - taps) // step + 1 for size, taps, step in zip(x.shape[1:3], k.shape[1:3], stride, strict=True)
    )
    total = 0
    for row in range(k.shape[1]):
        for column in range(k.shape[2]):
            pixels = x[:, row : row + stride[0] * rows : stride[0], column : column + stride[1] * columns : stride[1]]
            total = total + pixels[:, :rows, :columns] @ k[:, row, column].astype(dtype).T
    return total


@pytest.mark.parametrize("preset", CONV_PRESETS)
@pytest.mark.parametrize(
    "plan",
    [
        "cost",
        "seed",
        {"block_bytes": 4, "merge": 5, "raster": True},
        {"block_bytes": 16, "merge": 2},
        {"block_bytes": 8, "merge": 9},
    ],
    ids=str,
)
def test_integers_do_not_depend_on_the_plan(preset, plan):
    result = convolve(X, K, "u8s8", stride=(2, 3), padding=(1, 2, 0, 3), params=CONV_PRESETS[preset], plan=plan)
    assert result.dtype == np.int32
    assert (result == direct(X, K, (2, 3), (1, 2, 0, 3))).all()


def test_floats_do_not_depend_on_the_engine():
    """Where blocks and merged columns are, the engine's sizes and the order of points change nothing."""
    x, k = X.astype(np.float16), (K / 7).astype(np.float16)
    results = [
        convolve(x, k, "f16", params=CONV_PRESETS[preset].replace(types=MM_FAMILIES),
                 plan={"block_bytes": 8, "merge": 5, "raster": raster})
        for preset in CONV_PRESETS for raster in (False, True)
    ]  # fmt: skip
    assert all((result == results[0]).all() for result in results)
    assert np.allclose(results[0], direct(x, k, (1, 1), (0,) * 4, np.float64), rtol=1e-5, atol=1e-2)
    other = convolve(x, k, "f16", params=CONV_PRESETS["full"], plan={"block_bytes": 64})
    assert (other != results[0]).any()
    assert np.allclose(other, results[0], rtol=1e-5, atol=1e-2)


def test_a_first_layer_at_full_size():
    """224 × 224 pixels, the photograph of a network, with requantisation."""
    x = RNG.integers(0, 256, (1, 224, 224, 3), np.uint8)
    k = RNG.integers(-128, 128, (64, 7, 7, 3), np.int8)
    scale = np.float32(2.0**-9)
    post = PostProcessing("u8", bias=np.arange(64) * 100, scale=np.full(64, scale), zero=128)
    result = convolve(x, k, "u8s8", stride=(2, 2), padding=(3, 3, 3, 3), zeros=(128, 0), post=post)
    acc = direct(x.astype(np.int64) - 128, k, (2, 2), (3, 3, 3, 3)) + np.arange(64) * 100
    assert (result == np.clip(np.rint(acc.astype(np.float32) * scale) + 128, 0, 255)).all()


def test_depthwise_and_pooling():
    kernel = RNG.integers(-128, 128, (3, 3, 3), np.int8)
    result = convolve(X, kernel, "u8s8", operation="depthwise", padding=(1, 1, 1, 1))
    whole = np.zeros((3, 3, 3, 3), np.int64)
    whole[range(3), :, :, range(3)] = kernel
    assert (result == direct(X, whole, (1, 1), (1, 1, 1, 1))).all()
    result = convolve(X, None, "u8", operation="sum_pool", kernel=(9, 11), zeros=(7, 0))
    assert (result[:, 0, 0] == X.astype(int).sum((1, 2)) - 7 * 99).all()
    result = convolve(X, None, "u8", operation="max_pool", kernel=(2, 2), stride=(2, 2))
    assert (result == X[:, :8, :10].reshape(2, 4, 2, 5, 2, 3).max((2, 4))).all()


def test_16_bit_results():
    x, k = X.astype(ml_dtypes.bfloat16), (K / 7).astype(ml_dtypes.bfloat16)
    params = CONV_PRESETS["full"]
    acc = convolve(x, k, "bf16", params=params, post=PostProcessing(bias=[0.5, 1, -1, 3, 1e6]))
    result = convolve(x, k, "bf16", params=params, post=PostProcessing("bf16", bias=[0.5, 1, -1, 3, 1e6]))
    assert (result.view(ml_dtypes.bfloat16) == acc.astype(ml_dtypes.bfloat16)).all()


def test_a_layer_has_its_memory_and_its_plan():
    layer = ConvLayer(X, K, "u8s8")
    assert layer.plan.merge in (1, 5)
    assert not layer.result(layer.smem).any()
    assert (layer.smem[: X.size] == X.ravel()).all()


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((X, K, "f16"), {}, f"x must have 4 dimensions and elements of 2 bytes, not {OF} (2, 9, 11, 3) and uint8"),
        ((X[0], K, "u8s8"), {}, f"x must have 4 dimensions and elements of 1 bytes, not {OF} (9, 11, 3) and uint8"),
        ((X, K[..., :2], "u8s8"), {}, "k must have the 3 channels of x, not 2"),
        ((X, None, "u8"), {}, "k must be given for convolution"),
        ((X, K, "u8"), {"operation": "max_pool"}, "k must not be given for max_pool"),
        ((X, None, "u8"), {"operation": "max_pool"}, "kernel must be given if there is no K"),
        ((X, K, "u8s8"), {"post": PostProcessing("u8")}, "scale must be given for requantised results"),
        ((X, K, "u8s8"), {"post": PostProcessing("s8", scale=[1] * 5, maximum=128)},
         "maximum must be -128 to 127, not 128"),
        ((X, K, "u8s8"), {"post": PostProcessing("f16")}, "the engine refuses the job: OUTPUT, field output"),
        ((X, K, "u8s8"), {"post": PostProcessing(function=LUT)}, "the engine refuses the job: OUTPUT, field function"),
        ((X.astype("u2"), K.astype("i2"), "u16s16"), {"params": CONV_PRESETS["unit"]},
         "the engine refuses the job: UNSUPPORTED, field type"),
    ],
)  # fmt: skip
def test_refusals(arguments, options, sentence):
    with pytest.raises((TypeError, ValueError)) as caught:
        convolve(*arguments, **options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"zero_first": 2}, "zero_first must be True or False, not 2"),
        ({"function": [0] * 256}, f"function must be a numpy array, not {shown([0] * 256)}"),
        ({"function": LUT[1:]}, f"function must have 256 elements of a byte, not {OF} (255,) and uint8"),
        ({"function": LUT.astype("u2")}, f"function must have 256 elements of a byte, not {OF} (256,) and uint16"),
    ],
)
def test_refusals_of_post_processing(options, sentence):
    with pytest.raises((TypeError, ValueError)) as caught:
        PostProcessing("u8", **options)
    assert str(caught.value) == sentence


def test_functions():
    """Of requantised results after the addition, and of the largest elements."""
    addend = np.random.default_rng(9).integers(-128, 128, (1, 11, 11, 5), np.int8)
    plain = {"scale": 2.0**-9, "zero": 3, "addend": addend, "zero_first": True}
    padded = {"padding": (2, 2, 2, 2), "params": CONV_PRESETS["unit"]}
    results, changed = (
        convolve(X[:1], K, "u8s8", **padded, post=PostProcessing("s8", **plain, **options))
        for options in ({}, {"function": LUT.view(np.int8)})
    )
    assert (changed == LUT.view(np.int8)[results.view(np.uint8)]).all() and len(np.unique(changed)) > 50
    maximum = {"operation": "max_pool", "kernel": (2, 2)}
    largest = convolve(X, None, "u8", **maximum)
    assert (convolve(X, None, "u8", **maximum, post=PostProcessing(function=LUT)) == LUT[largest]).all()
    layer = ConvLayer(X, None, "u8", **maximum, post=PostProcessing(function=LUT))
    assert layer.shape.bytes_read == ConvLayer(X, None, "u8", **maximum).shape.bytes_read + 256


@pytest.mark.parametrize(("kind", "gap"), [("u8s8", 3), ("s16s16", 6)])
def test_gaps_between_pixels(kind, gap):
    """They change addresses in X, but no results."""
    generator, element = np.random.default_rng(5), np.int16 if "16" in kind else np.uint8
    x = generator.integers(0, 100, (1, 5, 6, 3), element)
    k = generator.integers(-9, 9, (4, 3, 3, 3)).astype(np.int16 if "16" in kind else np.int8)
    options = {"padding": (1, 1, 1, 1), "zeros": (5, 0)}
    job = ConvLayer(x, k, kind, gap=gap, **options)
    assert JOB.unpack(job.word)["x_pitch"][0] == 3 * x.itemsize + gap and not job.shape.adjoin
    assert (convolve(x, k, kind, gap=gap, **options) == convolve(x, k, kind, **options)).all()


def test_wrong_gaps():
    x, k = np.zeros((1, 2, 2, 1), np.int16), np.zeros((1, 1, 1, 1), np.int16)
    with pytest.raises(ValueError, match=r"^gap must be 0 to 65535, not -1$"):
        ConvLayer(x, k, "s16s16", gap=-1)
    with pytest.raises(ValueError, match=r"^gap must be a multiple of the 2 bytes of an element, not 3$"):
        ConvLayer(x, k, "s16s16", gap=3)
