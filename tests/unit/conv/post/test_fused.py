"""Multiply and add with one rounding, against exact integers: any exponents, cancellation, ties, infinity."""

import random

import pytest

from tilewright.hw.conv.post.fused import FusedMultiplyAdd
from tilewright.sim.pysim.pipelines import run_pipeline
from tilewright.sim.pysim.simulate import elaborated

SEED = 16
#: Numbers are integers here: of units of the least subnormal number.
LARGE = 1 << 128 + 149
#: Rows behind those of a ratio, in which it holds.
HOLD = FusedMultiplyAdd.ADDEND


def layout(bits):
    """binary32 as the addend's members."""
    exponent = bits >> 23 & 255
    significand = bits & 0x7FFFFF | (exponent > 0) << 23
    return {"negative": bits >> 31, "infinite": 0, "places": max(exponent, 1) - 150, "significand": significand}


def value(number):
    """In units, with its sign."""
    size = number["significand"] and number["significand"] << number["places"] + 172 >> 23
    return -size if number["negative"] else size


def rounded(total):
    """To 24 significant bits, in units; None if it is infinite."""
    cut = max(abs(total).bit_length() - 24, 0)
    half = 1 << cut >> 1
    kept, rest = abs(total) >> cut, abs(total) & (1 << cut) - 1
    kept += cut > 0 and (rest > half or (rest == half and kept & 1))
    return None if kept << cut >= LARGE else (kept << cut) * (-1 if total < 0 else 1)


def check(work):
    """``work`` has (ratio, list of (factor, addend)), where addends are binary32 or members."""
    rows, expected = [], []
    for ratio, pairs in work:
        pairs = [(factor, addend if isinstance(addend, dict) else layout(addend)) for factor, addend in pairs]
        late = [{}] * HOLD + [{"addend": addend} for _, addend in pairs]
        early = [{"factor": factor} for factor, _ in pairs] + [{}] * HOLD
        rows += [{"ratio": ratio} | a | b for a, b in zip(early, late, strict=True)]
        ratio = layout(ratio)
        expected += [(ratio, factor, addend) for factor, addend in pairs] + [None] * HOLD
    for case, result in zip(expected, run_pipeline(elaborated(FusedMultiplyAdd), rows), strict=True):
        if case is None:
            continue
        ratio, factor, addend = case
        o, wanted = result["o"], rounded(factor * value(ratio) + value(addend))
        if addend["infinite"] or wanted is None:
            minus = addend["negative"] if addend["infinite"] else factor * value(ratio) + value(addend) < 0
            assert (o["infinite"], o["negative"]) == (1, minus), case
            continue
        found = {name: o[name] for name in ("negative", "places", "significand")}
        assert not o["infinite"] and (o["significand"] == 0 or o["significand"] >> 23), case
        assert (value(found) if found["significand"] else 0) == wanted, (case, found)


def binary32(rng, exponent):
    mantissa = rng.getrandbits(23) & -1 << rng.choice([0, 0, 10, 20, 22])
    return rng.getrandbits(1) << 31 | min(max(exponent, 0), 254) << 23 | mantissa


def factor(rng):
    return rng.choice([rng.randrange(-255, 256), rng.choice([0, 1, -1, 255, -255, 128, -128])])


def test_any_exponents():
    rng = random.Random(SEED)
    check([
        (binary32(rng, rng.randrange(255)), [(factor(rng), binary32(rng, rng.randrange(255))) for _ in range(8)])
        for _ in range(40)
    ])  # fmt: skip


@pytest.mark.parametrize("place", [0, 1, 20, 127, 245, 254])
def test_near_exponents(place):
    """Products and addends that have places in common, at both ends of the range too."""
    rng = random.Random(SEED + place)
    check([
        (binary32(rng, place), [(factor(rng), binary32(rng, place + rng.randrange(-26, 36))) for _ in range(40)])
        for _ in range(5)
    ])  # fmt: skip


def test_every_distance():
    rng = random.Random(SEED)
    check([(binary32(rng, 100), [(factor(rng), binary32(rng, 100 + far)) for far in range(-60, 60)]) for _ in range(3)])


def test_cancellation():
    """The addend is the product rounded, or beside it: all that is left are the lowest places, or nothing."""
    rng = random.Random(SEED)
    work = []
    for place in (0, 1, 5, 120, 120, 240):
        ratio, pairs = binary32(rng, place) & 0x7FFFFFFF, []
        for _ in range(30):
            number = factor(rng)
            kept = abs(number * value(layout(ratio)))
            cut = max(kept.bit_length() - 24, 0)
            significand = max((kept >> cut) + rng.choice([-1, 0, 0, 1]), 0)
            bits = cut + (significand >> 23) << 23 | significand & 0x7FFFFF if significand >> 24 == 0 else 0
            pairs.append((number, bits | (number > 0) << 31))
        work.append((ratio, pairs))
    check(work)


def test_ties():
    """Half of the last place of the addend, and a little more or less where the product has room for it."""
    rng = random.Random(SEED)
    pairs = [(sign * number, binary32(rng, 150 + shift)) for number in (1, 2, 3, 128, 129, 255) for sign in (1, -1)
             for shift in range(-3, 13)]  # fmt: skip
    check([(mantissa | 126 << 23, pairs) for mantissa in (0, 1, 1 << 22, 0x7FFFFF)])


def test_infinity():
    largest, infinite = 0x7F7FFFFF, layout(0) | {"infinite": 1, "significand": 1 << 23, "places": 105}
    pairs = [(number, addend) for number in (0, 1, -1, 2, 255, -255) for addend in (0, largest, largest | 1 << 31)]
    pairs += [(number, infinite | {"negative": sign}) for number in (0, 255, -255) for sign in (0, 1)]
    # What is just below the middle between the largest number and infinity, and what lies there.
    check([(largest, pairs), (0x72FFFFFF, [(1, largest)]), (0x73000000, [(1, largest), (2, largest), (-1, largest)])])


def test_zeros():
    check(
        [(ratio, [(0, 0), (5, 0), (0, 0x80000000), (0, 1), (0, 0x00800000), (-7, 0)]) for ratio in (0, 1, 0x3F800000)]
    )


def test_zero_of_any_places():
    """As a sum leaves it that cancelled: it hides no product."""
    zeros = [{"negative": 0, "infinite": 0, "places": places, "significand": 0} for places in (-300, -50, 0, 104, 200)]
    check([(0x3F000001, [(number, zero) for number in (0, 1, -1, 255) for zero in zeros])])


def test_just_below_a_power_of_two():
    """The lowest product with its leading bit, less something far below: a place more is seen, and ties in it."""
    rng = random.Random(SEED)
    mantissas = (0, 1, 1 << 22, 3 << 21, 0x7FFFFF, rng.getrandbits(23))
    pairs = [(sign, (sign > 0) << 31 | 127 - far << 23 | mantissa) for sign in (1, -1) for far in range(1, 30)
             for mantissa in mantissas]  # fmt: skip
    check([(127 << 23 | mantissa, pairs) for mantissa in (0, 1)])
