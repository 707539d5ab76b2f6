"""Floats of the processing engine: many at once against one at a time, from exact integers and fractions."""

import re

import numpy as np
import pytest

from support.pe_floats import COMPARISONS, FLOATS, exact, golden, operands
from tilewright.golden.pe.floats import compare, compute
from tilewright.spec.arithmetic import Function

SEED = 56
COUNT = 15_000
MANY = 1_000_000


def check(function, count):
    a, b, c, part = operands(np.random.default_rng([SEED, function]), function, count)
    came = golden(function, a, b, c, part)
    for row, result in zip(zip(a, b, c, part, strict=True), came, strict=True):
        expected = exact(function, *row)
        assert result == expected, f"{function.name}{[hex(x) for x in row]}: {expected:#x}, not {int(result):#x}"


@pytest.mark.parametrize("function", FLOATS + COMPARISONS, ids=lambda function: function.name)
def test_function(function):
    check(function, COUNT)


@pytest.mark.long
@pytest.mark.parametrize("function", FLOATS + COMPARISONS, ids=lambda function: function.name)
def test_many(function):
    check(function, MANY)


def test_sums_and_products_are_fused_ones():
    """FADD and FSUB are numpy's, FMA is not: a million pairs connect them."""
    a, b, _, _ = operands(np.random.default_rng(SEED), Function.FADD, MANY)
    one, minus, zero = np.uint32(0x3F800000), np.uint32(1 << 31), np.uint32(0)
    assert np.array_equal(compute(Function.FADD, a, b), compute(Function.FMA, a, one, b))
    assert np.array_equal(compute(Function.FSUB, a, b), compute(Function.FMA, a, one, b ^ minus))
    signed_zero = np.where((a ^ b) & minus, minus, zero)  # of the product's sign: its zeros keep theirs
    assert np.array_equal(compute(Function.FMUL, a, b), compute(Function.FMA, a, b, signed_zero))


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize(
    ("widen", "narrow", "infinity", "nan"),
    [(Function.FH, Function.HF, 0x7C00, 0x7E00), (Function.FBF, Function.BFF, 0x7F80, 0x7FC0)],
    ids=["f16", "bf16"],
)
def test_halves_there_and_back(widen, narrow, infinity, nan, part):
    halves = np.arange(1 << 16, dtype=np.uint32)
    wide = compute(widen, halves << np.uint32(16 * part), part=part)
    back = compute(narrow, wide, c=0x12345678, part=part)
    expected = np.where(halves & 0x7FFF > infinity, np.uint32(nan), halves)
    other = 0x5678 if part else 0x12340000
    assert np.array_equal(back, np.uint32(other) | expected << np.uint32(16 * part))


def test_shapes():
    assert compute(Function.FADD, 0x3F800000, 0x3F800000) == 0x40000000
    assert compute(Function.FMUL, np.full((3, 1), 0x40000000), np.full(4, 0x40400000)).shape == (3, 4)
    assert compare(Function.FLT, 0, [1, 0x80000001]).tolist() == [True, False]


@pytest.mark.parametrize("function", [Function.ADD, Function.FEQ])
def test_wrong_function(function):
    message = f"the function must be one of unit f32 that writes a register, not {function!r}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        compute(function, 0)


def test_wrong_comparison():
    with pytest.raises(ValueError, match=r"^the function must be a comparison of floats, not <Function.FADD: 64>$"):
        compare(Function.FADD, 0, 0)
