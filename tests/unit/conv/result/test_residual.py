"""Multiply and add with one rounding, against exact integers: any exponents, cancellation, ties, infinity."""

import random

import numpy as np
import pytest

from tilewright.golden.conv.results import add_residual
from tilewright.hw.conv.result.residual import FusedMultiplyAdd, ResidualAdder
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import run_pipeline

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


RESIDUAL_SEED = 17
TYPES = {"u8": (0, 0, 255), "s8": (1, -128, 127), "u8-narrow": (0, 7, 90)}
#: Cycles in which the constants hold after the last operand, so that all of its results are out.
RESIDUAL_HOLD = ResidualAdder.LATENCY


def bits(number):
    return int(np.float32(number).view(np.uint32))


def residual_check(jobs, kind):
    """``jobs`` has (first ratio, second ratio, offset, pairs of operands)."""
    signed, low, high = TYPES[kind]
    dut, rows, expected = elaborated(ResidualAdder), [], []
    for first_ratio, second_ratio, offset, pairs in jobs:
        static = {"first_ratio": first_ratio, "second_ratio": second_ratio, "offset": offset, "is_signed": signed}
        static |= {"minimum": low & 255, "maximum": high & 255}
        before, after = [{}] * dut.FIRST, [{}] * RESIDUAL_HOLD
        firsts = [*before, *({"first": first & 255} for first, _ in pairs), *after]
        seconds = [*({"second": second & 255} for _, second in pairs), *before, *after]
        rows += [static | first | second for first, second in zip(firsts, seconds, strict=True)]
        wanted = add_residual(*np.array(pairs).T, (first_ratio, second_ratio), offset, (low, high)) & 255
        expected += [None] * dut.FIRST + wanted.tolist() + [None] * RESIDUAL_HOLD
    for row, (result, wanted) in enumerate(zip(run_pipeline(dut, rows), expected, strict=True)):
        assert wanted is None or result["o"] == wanted, f"row {row}: {rows[row]}: {wanted}, not {result['o']}"


def operands(rng, kind, count):
    low, high = (-128, 127) if TYPES[kind][0] else (0, 255)
    pick = [low, high, 0, 1]
    return [tuple(rng.choice([rng.randint(low, high), rng.choice(pick)]) for _ in "ab") for _ in range(count)]


@pytest.mark.parametrize("kind", TYPES)
def test_usual_factors(kind):
    """As of quantised networks: results in range."""
    rng = random.Random(RESIDUAL_SEED)
    jobs = [(bits(rng.uniform(-1.5, 1.5)), bits(rng.uniform(-1.5, 1.5)), bits(rng.uniform(-40, 80))) for _ in range(8)]
    residual_check([(*job, operands(rng, kind, 40)) for job in jobs], kind)


def test_any_factors():
    """Any finite numbers; many of similar size, so that one does not hide the other."""
    rng = random.Random(RESIDUAL_SEED)
    jobs = []
    for _ in range(25):
        place = rng.choice([rng.randrange(255), 254, 0])
        near = [min(max(place + rng.randrange(-12, 13), 0), 254) for _ in range(3)]
        jobs.append([rng.getrandbits(1) << 31 | exponent << 23 | rng.getrandbits(23) for exponent in near])
    residual_check([(*job, operands(rng, "s8", 12)) for job in jobs], "s8")


def test_infinite_inner_sum():
    """It outweighs what the first operand could take away."""
    largest, minus = 0x7F7FFFFF, 0xFF7FFFFF
    pairs = [(127, 127), (-128, 127), (127, -128), (-128, -128), (0, 2), (5, 0)]
    residual_check([(first, second, offset, pairs) for first in (largest, minus) for second in (largest, minus)
           for offset in (0, largest, minus)], "s8")  # fmt: skip


def test_residual_ties():
    """Halves, quarters, and what makes a tie of binary32 tip over."""
    tiny = [bits(sign * 2.0**-exponent) for sign in (1, -1) for exponent in (17, 18, 19, 40, 149)]
    pairs = [(first, second) for first in (-128, -3, -1, 0, 1, 2, 101, 127) for second in (-5, -1, 0, 1, 4)]
    half, quarter, odd = bits(0.5), bits(0.25), bits(0.5 + 2.0**-24)
    residual_check([(half, half, 0, pairs), (half, quarter, quarter, pairs)], "s8")
    residual_check([(first, second, 0, pairs) for first in (half, odd) for second in tiny], "s8")
    residual_check([(first, 0, offset, pairs) for first in (half, odd) for offset in tiny], "s8")


def test_inner_sum_that_cancels():
    """Whatever its terms were, nothing is left of it, and the first operand stays."""
    residual_check([(bits(0.5), bits(2.0**place), bits(-5 * 2.0**place), [(first, 5) for first in (-128, -3, 1, 100)])
           for place in (0, 20, 60, 100, 120)], "s8")  # fmt: skip


def test_latency():
    assert (ResidualAdder.FIRST, ResidualAdder.LATENCY) == (7, 12)
