"""Post-processing: requantisation in integers against binary32 step by step, fma against exact sums, 16-bit floats."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tilewright.golden.conv.results import add_residual, half_floats, requantise, requantise_zero_first
from tilewright.spec.conv import ConvOutput

SEED = 7
MANY = 200_000
S8 = (-128, 127)


def in_binary32(acc, scale, zero, clamp):
    """y = sat(rne(fl(fl(acc) · s)) + zy), operation by operation."""
    with np.errstate(over="ignore", under="ignore"):
        product = acc.astype(np.float32) * np.asarray(scale, np.uint32).view(np.float32)
    return np.clip(np.rint(product).astype(np.float64) + zero, *clamp).astype(np.int64)


@pytest.mark.parametrize("span", [12, 20, 28, 31])
@pytest.mark.parametrize("zero", [0, 3, -128, 127])
def test_integers_equal_binary32(span, zero):
    rng = np.random.default_rng(SEED)
    acc = rng.integers(-(1 << span), 1 << span, (MANY // 100, 100), np.int64)
    # Products of about the size of a byte, where rounding is seen.
    scale = (rng.uniform(0.2, 2, 100) * 2.0 ** (6 - span)).astype(np.float32).view(np.uint32)
    assert (requantise(acc, scale, zero, S8) == in_binary32(acc, scale, zero, S8)).all()


def test_ties():
    """Scales that are powers of two, and sums decided by the bit after 24."""
    acc = np.concatenate([np.arange(-3000, 3000), (1 << 24) + np.arange(-9, 9), -(1 << 31) + np.arange(9)])[:, None]
    scale = np.array([2.0**-shift for shift in (0, 1, 2, 5, 9, 17, 20)], np.float32).view(np.uint32)
    expected = in_binary32(np.broadcast_to(acc, (len(acc), len(scale))), scale, 3, (0, 255))
    assert (requantise(np.broadcast_to(acc, expected.shape), scale, 3, (0, 255)) == expected).all()
    assert requantise([[256, 768, 1280, -256]], [0x3B000000] * 4, 0, S8).tolist() == [[0, 2, 2, 0]]  # 2^-9: 0.5, 1.5 …


def test_every_scale_has_a_meaning():
    rng = np.random.default_rng(SEED)
    scale = rng.integers(0, 1 << 32, 4000, np.uint64).astype(np.uint32)
    scale[:8] = [0, 0x80000000, 1, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F800000, 0xBF800000]
    acc = rng.integers(-(1 << 31), 1 << 31, (20, 4000), np.int64)
    acc[0] = 0
    results, special = requantise(acc, scale, 1, S8), (scale >> 23 & 0xFF) == 0xFF
    assert (results == in_binary32(acc, np.where(special, 0, scale), 1, S8))[:, ~special].all()
    # Infinities and NaN are numbers from 2^128 on.
    sign = np.where(scale[special] >> 31, -1, 1) * np.sign(acc[:, special])
    assert (results[:, special] == np.where(sign > 0, 127, np.where(sign < 0, -128, 1))).all()


def test_sums_wrap_to_32_bits():
    one = [0x3F800000]
    assert requantise([[(1 << 31) + 5]], one, 0, S8).tolist() == [[-128]]
    assert requantise([[(1 << 32) + 5], [-(1 << 32) + 7]], one, 0, S8).tolist() == [[5], [7]]


def in_binary32_zero_first(acc, scale, zero, clamp):
    """y = sat(rne(fl(fl(fl(acc) · s) + zy))), operation by operation."""
    with np.errstate(over="ignore", under="ignore"):
        product = acc.astype(np.float32) * np.asarray(scale, np.uint32).view(np.float32)
        return np.clip(np.rint(product + np.float32(zero)), *clamp).astype(np.int64)


ZEROS = [0, 1, 3, -1, -128, 127, 128, 255, 100, -77]


@pytest.mark.parametrize("span", [12, 20, 28, 31])
@pytest.mark.parametrize("zero", ZEROS)
def test_zero_first_equals_binary32(span, zero):
    rng = np.random.default_rng(SEED)
    acc = rng.integers(-(1 << span), 1 << span, (MANY // 100, 100), np.int64)
    scale = (rng.uniform(0.2, 2, 100) * 2.0 ** (rng.integers(-4, 8, 100) - span)).astype(np.float32).view(np.uint32)
    clamp = (0, 255) if zero > 127 else S8
    assert (requantise_zero_first(acc, scale, zero, clamp) == in_binary32_zero_first(acc, scale, zero, clamp)).all()


def near_halves(rng, zero, count):
    """Accumulators of a significand each, and scales of a power of two, whose products are within some units of the
    last place of numbers k + 1/2, of both signs and with every binade of the sum; some are cancelled by the zero
    point, and some are so small that nothing of them remains."""
    half = rng.integers(-300, 300, count) - zero + 0.5
    half[rng.random(count) < 0.2] = 0.5
    exponent = np.frexp(np.abs(half))[1] - 24
    size = np.round(np.abs(half) * 2.0 ** -exponent.astype(np.float64)).astype(np.int64)
    apart = np.where(rng.random(count) < 0.5, rng.integers(-4, 5, count), rng.integers(-600, 601, count))
    tiny = rng.random(count) < 0.02
    acc = np.sign(half).astype(np.int64) * (size + apart)
    scale = (np.where(tiny, rng.integers(1, 90, count), 127 + exponent)) << 23
    return acc, scale.astype(np.uint32)


@pytest.mark.parametrize("zero", ZEROS)
def test_zero_first_rounds_twice(zero):
    """Sums that are rounded onto a half, and then to an even integer."""
    acc, scale = near_halves(np.random.default_rng(SEED), zero, MANY)
    wide = (-1000, 1000)
    results = requantise_zero_first(acc, scale, zero, wide)
    assert (results == in_binary32_zero_first(acc, scale, zero, wide)).all()
    once = np.rint(acc * scale.view(np.float32).astype(np.float64) + zero).astype(np.int64)
    assert (results != once).any() == (zero != 0), "binary32 rounds the sum too"
    assert (results != requantise(acc, scale, zero, wide)).any() == (zero % 2 != 0 or abs(zero) > 3)


def test_zero_first_of_every_scale():
    """Subnormal scales, which leave the zero point; huge ones, which saturate; infinities and NaN as without."""
    rng = np.random.default_rng(SEED)
    scale = rng.integers(0, 1 << 32, 4000, np.uint64).astype(np.uint32)
    scale[:8] = [0, 0x80000000, 1, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F800000, 0xBF800000]
    acc = rng.integers(-(1 << 31), 1 << 31, (20, 4000), np.int64)
    acc[0] = 0
    for zero in (1, -128, 127):
        results, special = requantise_zero_first(acc, scale, zero, S8), (scale >> 23 & 0xFF) == 0xFF
        assert (results == in_binary32_zero_first(acc, np.where(special, 0, scale), zero, S8))[:, ~special].all()
        assert (results == requantise(acc, scale, zero, S8))[:, special].all()


def rounded(value):
    """An exact number to binary32, nearest even, as a Fraction; neither subnormal nor too large."""
    if not value:
        return value
    exponent = -200
    while abs(value) >= Fraction(2) ** (exponent + 24):
        exponent += 1
    return Fraction(round(value / Fraction(2) ** exponent)) * Fraction(2) ** exponent


def test_fma_rounds_once():
    rng = np.random.default_rng(SEED)
    for index in range(16):
        # Factors of many bits, and sums that end close to the middle between two numbers.
        ratio = (rng.uniform(0.3, 1.7, 2) * 2.0 ** rng.integers(-9, 2, 2)).astype(np.float32)
        offset = np.float32(rng.uniform(-40, 40) if index % 2 else rng.integers(-40, 40) + 0.5)
        a, b = rng.integers(0, 256, (2, 40))
        results = add_residual(a, b, ratio.view(np.uint32), int(offset.view(np.uint32)), (0, 255))
        for i in range(40):
            inner = rounded(int(b[i]) * Fraction(float(ratio[1])) + Fraction(float(offset)))
            outer = rounded(int(a[i]) * Fraction(float(ratio[0])) + inner)
            assert results[i] == min(255, max(0, round(outer))), (index, i)


def test_a_false_tie_of_float64():
    """3 · (1 + 2^-23) is a tie of binary32, and 2^-60 less is none, which float64 cannot tell."""
    ratio = np.array([-2.5 - 2.0**-22, 1 + 2.0**-23], np.float32).view(np.uint32)
    for offset, expected in ((0, 1), (-(2.0**-60), 0)):
        bits = int(np.float32(offset).view(np.uint32))
        assert add_residual([1], [3], ratio, bits, (0, 255)).tolist() == [expected]  # 0.5 + 2^-22, or 0.5


def test_factors_at_the_ends():
    largest, least = 0x7F7FFFFF, 1
    assert add_residual([1, -1], [0, 0], [largest, 0], 0, S8).tolist() == [127, -128]
    assert add_residual([1, 1], [255, -255], [largest, largest], 0, S8).tolist() == [127, -128]
    assert add_residual([255], [255], [least, least], least, S8).tolist() == [0]


def test_16_bit_floats():
    rng = np.random.default_rng(SEED)
    bits = np.concatenate([rng.integers(0, 1 << 32, MANY, np.uint64), [0x477FF000, 0x477FEFFF, 0x33000000, 0x33000001,
                           0x7F7FFFFF, 0x7F800000, 0xFF800000, 0, 1 << 31]]).astype(np.uint32)  # fmt: skip
    number = bits.view(np.float32)
    is_nan = np.isnan(number)
    with np.errstate(over="ignore", invalid="ignore"):
        half, brain = number.astype(np.float16), number.astype(ml_dtypes.bfloat16)
    assert (half_floats(bits, ConvOutput.F16) == np.where(is_nan, 0x7E00, half.view(np.uint16))).all()
    assert (half_floats(bits, ConvOutput.BF16) == np.where(is_nan, 0x7FC0, brain.view(np.uint16))).all()
