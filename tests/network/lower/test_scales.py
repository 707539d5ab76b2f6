"""Tables as products with one number."""

import numpy as np
import pytest

from tilewright.network.lower.scales import scale_of


def table(dtype, made, scale, x_zero, y_zero):
    x = np.arange(256).astype(np.uint8).view(dtype).astype(np.float32)
    limits = np.iinfo(made)
    return np.clip(np.rint((x - np.float32(x_zero)) * np.float32(scale)) + y_zero, limits.min, limits.max).astype(made)


@pytest.mark.parametrize("made", [np.uint8, np.int8])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_a_product_is_found(dtype, made):
    rng = np.random.default_rng(1)
    low, high = np.iinfo(dtype).min, np.iinfo(made).min
    for scale in [1.0, 0.5, 2.0, 0.003, 100.0, *rng.random(40) * 3]:
        zeros = int(rng.integers(low, low + 256)), int(rng.integers(high, high + 256))
        wanted = table(dtype, made, scale, *zeros)
        bits, x_zero, y_zero = scale_of(wanted, np.dtype(dtype))
        found = table(dtype, made, np.uint32(bits).view(np.float32), x_zero, y_zero)
        np.testing.assert_array_equal(np.clip(found, wanted.min(), wanted.max()), wanted)


@pytest.mark.parametrize(("low", "high"), [(60, 200), (0, 60), (20, 100)])
def test_a_product_with_a_clamp_is_found(low, high):
    for scale in (1.0, 0.3, 1.7):
        wanted = np.clip(table(np.uint8, np.uint8, scale, 40, 60), low, high)
        bits, *zeros = scale_of(wanted, np.dtype(np.uint8))
        found = table(np.uint8, np.uint8, np.uint32(bits).view(np.float32), *zeros)
        np.testing.assert_array_equal(np.clip(found, wanted.min(), wanted.max()), wanted)


def test_what_is_no_product_is_not_found():
    rng = np.random.default_rng(2)
    assert scale_of(rng.integers(0, 256, 256).astype(np.uint8), np.dtype(np.uint8)) is None
    almost = table(np.uint8, np.uint8, 0.7, 3, 5)
    almost[100] += 3
    assert scale_of(almost, np.dtype(np.uint8)) is None
