"""Rows against the golden model, and rounding against exact arithmetic."""

import random
import re

import numpy as np
import pytest

from support.dot_product import grouped_rows
from support.pe_operands import STYLES, dot_rows, join_elements
from tilewright.golden.dot_product import dot
from tilewright.hw.dot_product.row import DotRow, Normalizer
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import run_pipeline

SEED = 9
WIDTHS = (50, 53, 56)
#: ``top`` is the logarithm of the weight of bit 48, plus this.
BIAS, PLACE = 255, 48
#: Numbers are integers here, in units of 2 to the power of minus this.
UNIT = 400
INFINITY, NAN, MINUS = 0x7F800000, 0x7FC00000, 0x80000000


def fp32(number):
    """The fp32 number nearest to a number of units, by bisection; a zero is positive."""
    size = abs(number)
    low, high = 0, INFINITY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _value(middle) <= size else (low, middle)
    # The successor of the largest number decides where infinity begins.
    below, above = size - _value(low), _value(high) - size
    bits = high if above < below or (above == below and low & 1) else low
    return bits | MINUS if number < 0 else bits


def _value(bits):
    exponent, mantissa = bits >> 23, bits & 0x7FFFFF
    return mantissa + (bool(exponent) << 23) << max(exponent, 1) - 150 + UNIT


def row(total, top, **changes):
    return {"total": total, "top": top, "integer": 0, "special": {}} | changes


def sums(rng, width):
    """Totals and tops: random; ties and their neighbours; results near overflow and underflow."""
    for _ in range(500):
        bits = rng.randrange(1, width)
        yield rng.getrandbits(bits) | 1 << bits - 1, rng.randrange(4, 511)
    for _ in range(300):
        below = rng.randrange(1, width - 25)
        yield (rng.getrandbits(24) << below) + (1 << below - 1) + rng.choice([-1, 0, 0, 1]), rng.randrange(4, 511)
    for top in (*range(70, 180), *range(376, 390)):
        for total in (1 << 48, (1 << 49) - 1, rng.getrandbits(width - 1), 1 << 24, 3 << 20, (1 << 25) - 1 << 24):
            yield total % (1 << width - 1), top


@pytest.mark.parametrize("width", WIDTHS)
def test_rounding(width):
    rng = random.Random(SEED)
    work = [(rng.choice([1, -1]) * total, top) for total, top in sums(rng, width) if total]
    results = run_pipeline(elaborated(Normalizer, width), [row(*each) for each in work])
    for (total, top), result in zip(work, results, strict=True):
        expected = fp32(total << top - BIAS - PLACE + UNIT) | (MINUS if total < 0 else 0)
        assert result["o"] == expected, f"{total:#x}, {top}: {expected:#x}, not {result['o']:#x}"


@pytest.mark.parametrize("width", WIDTHS)
def test_integers(width):
    rng = random.Random(SEED)
    totals = [0, 1, -1, 0x7FFFFFFF, -0x80000000, *(rng.getrandbits(width) - (1 << width - 1) for _ in range(50))]
    rows = [row(total, rng.randrange(511), integer=1, special=special(rng.getrandbits(3))) for total in totals]
    results = run_pipeline(elaborated(Normalizer, width), rows)
    assert [result["o"] for result in results] == [total & 0xFFFFFFFF for total in totals]


def special(bits):
    return {"nan": bits & 1, "infinite": bits >> 1 & 1, "negative": bits >> 2}


@pytest.mark.parametrize(
    ("total", "flags", "expected"),
    [
        (0, {}, 0),
        (0, {"negative": 1}, MINUS),
        (-5, {"nan": 1}, NAN),
        (5, {"nan": 1, "infinite": 1, "negative": 1}, NAN),
        (-5, {"infinite": 1}, INFINITY),
        (5, {"infinite": 1, "negative": 1}, INFINITY | MINUS),
        (-5 << 20, {"negative": 1}, 0xB2A00000),
    ],
)
def test_special(total, flags, expected):
    (result,) = run_pipeline(elaborated(Normalizer, 53), [row(total, 255, special=flags)])
    assert result["o"] == expected


@pytest.mark.parametrize("width", [49, 65])
def test_wrong_width(width):
    with pytest.raises(ValueError, match=rf"^the width of a sum must be 50 to 64, not {width}$"):
        Normalizer(width)


ROW_SEED = 2
COUNT, UNIT_BYTES, SIZES = 5, 2, (1, 3, 5)


def test_groups():
    made = grouped_rows(np.random.default_rng(ROW_SEED), list(MmType), SIZES, 300, count=COUNT, unit_bytes=UNIT_BYTES)
    rows, expected = zip(*made, strict=True)
    results = run_pipeline(DotRow(count=COUNT, unit_bytes=UNIT_BYTES, sizes=SIZES), rows)
    for row, result, sums in zip(rows, results, expected, strict=True):
        size = SIZES[row["select"]]
        assert [result["o"][size * group] for group in range(len(sums))] == sums, row


@pytest.mark.parametrize(
    ("unit_bytes", "sizes", "message"),
    [
        (3, (1,), "unit_bytes must be even and 2 or more, not 3"),
        (0, (1,), "unit_bytes must be even and 2 or more, not 0"),
        (8, (1, 9), "a group must have at most 64 bytes, not 72"),
    ],
)
def test_wrong_sizes(unit_bytes, sizes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        DotRow(count=16, unit_bytes=unit_bytes, sizes=sizes)


SUM_SEED = 77
WIDTH = 8
BYTES = [kind for kind in MmType if kind.bytes == 1]


def run(accumulators, a, b, kind):
    """The sums of a row of one unit."""
    rows = [
        {
            "type": kind,
            "a": [int.from_bytes(x, "little")],
            "b": [int.from_bytes(y, "little")],
            "accumulators": [int(word)],
        }
        for x, y, word in zip(join_elements(a), join_elements(b), accumulators, strict=True)
    ]
    dut = elaborated(DotRow, count=1, unit_bytes=WIDTH, sizes=(1,))
    return np.array([result["o"][0] for result in run_pipeline(dut, rows)], np.uint32)


def check(accumulators, a, b, kind):
    results, expected = run(accumulators, a, b, kind), dot(accumulators, a, b, kind)
    wrong = np.flatnonzero(results != expected)
    assert not len(wrong), [hex(x) for i in wrong[:1] for x in (accumulators[i], *a[i], *b[i], expected[i], results[i])]


@pytest.mark.parametrize("kind", BYTES)
def test_every_byte_with_some(kind):
    """All bytes of A with 16 of B; all pairs are multiplied in tests/integration/pe/test_dot_rows.py."""
    some = [0, 1, 2, 3, 5, 85, 126, 127, 128, 129, 130, 170, 250, 253, 254, 255]
    a, b = np.meshgrid(np.arange(256, dtype=np.uint8), np.array(some, np.uint8), indexing="ij")
    a, b = a.reshape(-1, WIDTH), b.reshape(-1, WIDTH)
    check(np.random.default_rng(SUM_SEED).integers(0, 1 << 32, len(a)), a, b, kind)


@pytest.mark.parametrize("kind", [kind for kind in MmType if kind not in BYTES])
def test_words(kind):
    accumulators, a, b = dot_rows(np.random.default_rng(SUM_SEED), kind, 50 * len(STYLES), WIDTH // kind.bytes)
    check(accumulators, a, b, kind)


ONE, LEAST = 0x3C00, 0x0001
F16_INFINITY, F16_NAN, F16_MINUS = 0x7C00, 0x7E00, 0x8000


@pytest.mark.parametrize(
    ("accumulator", "pairs", "expected"),
    [
        (0x80000000, [(0, F16_MINUS)] * 4, 0x80000000),  # all terms are -0
        (0x80000000, [(0, F16_MINUS)] * 3 + [(0, 0)], 0),
        (0, [(ONE, ONE), (ONE, ONE | F16_MINUS)] * 2, 0),  # x - x
        (0xBF800000, [(ONE, ONE)] + [(0, F16_MINUS)] * 3, 0),
        (0, [(F16_INFINITY, ONE)] + [(0, 0)] * 3, 0x7F800000),
        (0xFF800000, [(0, 0)] * 4, 0xFF800000),
        (0xFF800000, [(F16_INFINITY, ONE)] + [(0, 0)] * 3, 0x7FC00000),
        (0, [(F16_INFINITY, 0)] + [(0, 0)] * 3, 0x7FC00000),
        (0, [(F16_NAN, ONE)] + [(0, 0)] * 3, 0x7FC00000),
        (0xFFFFFFFF, [(0, 0)] * 4, 0x7FC00000),
        (0x7F7FFFFF, [(0x7BFF, 0x7BFF)] * 4, 0x7F7FFFFF),  # far below half a place
        (0x00000001, [(0, 0)] * 4, 0x00000001),  # subnormals are kept
        (0, [(LEAST, LEAST)] + [(0, 0)] * 3, 0x27800000),  # 2^-48
        (0x4B800000, [(ONE, ONE)] + [(0, 0)] * 3, 0x4B800000),  # 2^24 + 1: a tie, to even
        (0x4B800001, [(ONE, ONE)] + [(0, 0)] * 3, 0x4B800002),  # 2^24 + 2 + 1: a tie, to even
        (0x4B800000, [(ONE, ONE), (LEAST, LEAST)] + [(0, 0)] * 2, 0x4B800001),  # the cut bits break the tie
        (0x4B800000, [(ONE, ONE), (LEAST, LEAST | F16_MINUS)] + [(0, 0)] * 2, 0x4B800000),
        (0x4B800001, [(ONE, ONE), (LEAST, LEAST | F16_MINUS)] + [(0, 0)] * 2, 0x4B800001),
    ],
)
def test_directed_floats(accumulator, pairs, expected):
    a, b = np.array(pairs, np.uint16).T[:, np.newaxis]
    assert dot([accumulator], a, b, MmType.F16) == [expected]
    assert run([accumulator], a, b, MmType.F16) == [expected]
