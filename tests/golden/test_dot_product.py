"""Dot products: against the text's steps done one by one, against exact sums, and against ordinary arithmetic."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tilewright.golden.dot_product import WINDOW, dot
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.sim.pysim.dot_rows import dot_rows

SEED = 14
ROWS = 4000
ELEMENTS = 4
FLOATS = {MmType.F16: np.float16, MmType.BF16: ml_dtypes.bfloat16}
INTEGERS = [kind for kind in MmType if not kind.is_float]
FP32 = (8, 23)
FORMATS = {MmType.F16: (5, 10), MmType.BF16: (8, 7)}
NAN, INFINITY = 0x7FC00000, 0x7F800000


# --- docs/pe.md, "Numbers", step by step ----------------------------------------------------------------------------


def unpack(bits, fmt):
    """Sign, M, the exponent of M's last place; "nan" or "infinite" instead of M."""
    exponent_bits, mantissa_bits = fmt
    sign = -1 if bits >> exponent_bits + mantissa_bits & 1 else 1
    exponent, mantissa = bits >> mantissa_bits & (1 << exponent_bits) - 1, bits & (1 << mantissa_bits) - 1
    if exponent == (1 << exponent_bits) - 1:
        return sign, "nan" if mantissa else "infinite", 0
    bias = (1 << exponent_bits - 1) - 1
    if exponent:
        mantissa += 1 << mantissa_bits
    return sign, mantissa, max(exponent, 1) - bias - mantissa_bits


def terms_of(accumulator, a, b, fmt):
    """(sign, M, exponent, place of the top); step 1's outcome as a string if there is one."""
    terms = [(*unpack(accumulator, FP32), FP32[1])]
    for x, y in zip(a, b, strict=True):
        (x_sign, x_size, x_exponent), (y_sign, y_size, y_exponent) = unpack(x, fmt), unpack(y, fmt)
        sizes = {x_size, y_size}
        if "nan" in sizes or sizes == {"infinite", 0}:
            size = "nan"
        else:
            size = "infinite" if "infinite" in sizes else x_size * y_size
        terms.append((x_sign * y_sign, size, x_exponent + y_exponent, 2 * fmt[1] + 1))
    return terms


def by_the_text(accumulator, a, b, kind):
    terms = terms_of(accumulator, a, b, FORMATS[kind])
    infinities = {sign for sign, size, _, _ in terms if size == "infinite"}
    if any(size == "nan" for _, size, _, _ in terms) or len(infinities) == 2:
        return NAN
    if infinities:
        return INFINITY if infinities == {1} else INFINITY | 1 << 31
    there = [term for term in terms if term[1]]
    if not there:
        return 1 << 31 if all(sign < 0 for sign, _, _, _ in terms) else 0
    highest = max(exponent + place for _, _, exponent, place in there)
    unit = Fraction(2) ** (highest - WINDOW)  # of the place below the window
    total = 0
    for sign, size, exponent, _ in there:
        exact = size * Fraction(2) ** exponent / unit
        cut = 2 * int(exact / 2)
        total += sign * (cut + (cut != exact))
    return round_fp32(total * unit)


def round_fp32(number):
    """To nearest even; +0 for 0, and the sign of what becomes 0."""
    size, sign = abs(number), (1 << 31 if number < 0 else 0)
    if not size:
        return 0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    last = max(exponent - 23, -149)
    mantissa = round(size / Fraction(2) ** last)  # Python's is to nearest even
    if mantissa == 1 << 24:
        mantissa, last = mantissa >> 1, last + 1
    if last > 104:
        return sign | INFINITY
    return sign | (mantissa if mantissa < 1 << 23 else (last + 150 << 23) + mantissa - (1 << 23))


@pytest.mark.parametrize("elements", [1, 2, ELEMENTS, 16])
@pytest.mark.parametrize("kind", FLOATS)
def test_by_the_text(kind, elements):
    rows = dot_rows(np.random.default_rng(SEED), kind, ROWS, elements)
    for accumulator, a, b, came in zip(*rows, dot(*rows, kind), strict=True):
        expected = by_the_text(int(accumulator), a.tolist(), b.tolist(), kind)
        assert came == expected, f"{accumulator:#x}, {a}, {b}: {expected:#x}, not {came:#x}"


# --- exact sums -----------------------------------------------------------------------------------------------------


def exact_sum(accumulator, a, b, fmt):
    """The sum, and the size of the largest top; None if there is a number that is not finite."""
    terms = terms_of(accumulator, a, b, fmt)
    if any(isinstance(size, str) for _, size, _, _ in terms):
        return None
    tops = [exponent + place for _, size, exponent, place in terms if size]
    return sum(sign * size * Fraction(2) ** exponent for sign, size, exponent, _ in terms), max(tops, default=None)


@pytest.mark.parametrize("kind", FLOATS)
def test_error(kind):
    """The result lies within half a place of the exact sum, and what is cut off: below the window a place a term."""
    rows = dot_rows(np.random.default_rng(SEED), kind, ROWS, ELEMENTS)
    all_errors, kept_errors, differ = [], [], 0
    for accumulator, a, b, came in zip(*rows, dot(*rows, kind).tolist(), strict=True):
        exact = exact_sum(int(accumulator), a.tolist(), b.tolist(), FORMATS[kind])
        if exact is None or exact[1] is None or came & INFINITY == INFINITY:
            continue
        number, highest = exact
        sign, size, exponent = unpack(came, FP32)
        place = Fraction(2) ** exponent
        error = abs(sign * size * place - number)
        cuts = (ELEMENTS + 1) * Fraction(2) ** (highest - WINDOW)
        assert error <= place / 2 + cuts, f"{accumulator:#x}, {a}, {b}: {came:#x}"
        all_errors.append(error / place)
        differ += came & 0x7FFFFFFF != round_fp32(number) & 0x7FFFFFFF
        if abs(number) >= Fraction(2) ** (highest - WINDOW // 3):
            kept_errors.append(error / place)
    print(
        f"{kind.name}: {differ} of {len(all_errors)} sums are not the nearest number; largest error "
        f"{float(max(all_errors)):.6g} places, {float(max(kept_errors)):.6g} without cancellation"
    )
    assert len(kept_errors) > ROWS / 2
    # Five terms cut 2^-48 of the largest off; a place of the result is at least 2^-(16 + 23) of it.
    assert max(kept_errors) <= Fraction(1, 2) + (ELEMENTS + 1) * Fraction(2) ** (WINDOW // 3 + 23 - WINDOW)


@pytest.mark.parametrize("kind", FLOATS)
def test_sums_that_do_not_cancel_are_correctly_rounded(kind):
    """Positive terms of about one size: nothing is cut off, and double precision holds their sum."""
    rng = np.random.default_rng(SEED)
    a, b = (rng.uniform(1, 4, (ROWS, ELEMENTS)).astype(FLOATS[kind]) for _ in range(2))
    accumulators = rng.uniform(0, 4, ROWS).astype(np.float32)
    came = dot(accumulators.view(np.uint32), a.view(np.uint16), b.view(np.uint16), kind).view(np.float32)
    exact = accumulators.astype(float) + (a.astype(float) * b.astype(float)).sum(axis=1)
    assert np.array_equal(came, exact.astype(np.float32))


# --- integers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers(kind):
    accumulators, a, b = dot_rows(np.random.default_rng(SEED), kind, ROWS, ELEMENTS)
    a_numbers = a if kind & 2 else a.view(f"i{kind.bytes}")
    b_numbers = b if kind & 1 else b.view(f"i{kind.bytes}")
    for accumulator, x, y, came in zip(
        accumulators.tolist(), a_numbers.tolist(), b_numbers.tolist(), dot(accumulators, a, b, kind), strict=True
    ):
        assert came == (accumulator + sum(p * q for p, q in zip(x, y, strict=True))) % (1 << 32)


def test_shapes():
    a, b = np.arange(24, dtype=np.uint8).reshape(2, 3, 4), np.ones((2, 3, 4), np.uint8)
    sums = dot(np.ones((2, 3), np.uint32), a, b, MmType.U8U8)
    assert sums.dtype == np.uint32
    assert sums.tolist() == (1 + a.sum(axis=-1, dtype=int)).tolist()
