"""Rounding to 16-bit floats and to clamped integers, and requantisation, against golden and exact fractions."""

import random
from fractions import Fraction

import numpy as np
import pytest

from tilewright.golden.conv.results import half_floats, requantise, requantise_zero_first
from tilewright.hw.conv.result.rounding import Clamp, HalfRounder, Requantiser
from tilewright.spec.conv import ConvOutput
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import run_pipeline

HALF_SEED = 18


def numbers(rng):
    for exponent in range(256):
        for mantissa in (0, 1, 0x7FFFFF, 1 << 22, rng.getrandbits(23)):
            yield rng.getrandbits(1) << 31 | exponent << 23 | mantissa
    for exponent in (*range(100, 115), 127, 141, 142, 143, 1, 0, 254):
        for place in (12, 13, 15, 16, 17, 20, 22):
            # A tie at this place, and its neighbours.
            mantissa = (rng.getrandbits(23) >> place << place) | (1 << place - 1)
            for near in (-1, 0, 1):
                yield rng.getrandbits(1) << 31 | exponent << 23 | mantissa + near
    yield from (0x477FEFFF, 0x477FF000, 0x477FF001, 0x7F7F7FFF, 0x7F7F8000, 0x7F800001, 0xFFFFFFFF, 0x80000000)


@pytest.mark.parametrize("output", [ConvOutput.F16, ConvOutput.BF16])
def test_numbers(output):
    work = list(numbers(random.Random(HALF_SEED)))
    rows = [{"i": number, "brain": output == ConvOutput.BF16} for number in work]
    results = run_pipeline(elaborated(HalfRounder), rows)
    for number, result, wanted in zip(work, results, half_floats(np.array(work), output), strict=True):
        assert result["o"] == wanted, f"{number:#010x}: {wanted:#06x}, not {result['o']:#06x}"


CLAMP_SEED = 14


def sizes(rng):
    """(size, places): any; ties of every length and their neighbours; the ends of the range."""
    for places in range(-60, 20):
        for size in (1 << 23, (1 << 24) - 1, 1 << 24, rng.getrandbits(23) | 1 << 23):
            yield size, places
    for places in range(-24, -13):
        for _ in range(12):
            whole = rng.randrange(1 << 23 >> -places, 1 << 24 >> -places)
            yield max(1 << 23, (whole << -places) + (1 << -places - 1) + rng.choice([-1, 0, 0, 1])), places
    for places in (-512, -300, 0, 300, 511):
        yield from ((0, places), (1 << 23, places))


def test_results():
    rng = random.Random(CLAMP_SEED)
    dut = elaborated(Clamp)
    work = list(sizes(rng))
    for signed, zero, low, high in (
        (0, 0, 0, 255),
        (0, 255, 3, 200),
        (1, -128, -128, 127),
        (1, 5, -7, 6),
        (0, 9, 7, 7),
    ):
        static = {"is_signed": signed, "zero": zero & 255, "minimum": low & 255, "maximum": high & 255}
        rows = [
            static | {"size": size, "places": places, "negative": rng.getrandbits(1), "infinite": rng.random() < 0.05}
            for size, places in work
        ]
        for row, result in zip(rows, run_pipeline(dut, rows), strict=True):
            value = 1000 if row["infinite"] else round(min(row["size"] * Fraction(2) ** row["places"], Fraction(1000)))
            expected = min(max((-value if row["negative"] else value) + zero, low), high) & 255
            assert result["o"] == expected, f"{row}: {expected}"


REQUANTISE_SEED = 15
ONE = 0x3F800000
#: Signed, zero point, least and largest result.
TYPES = {"u8": (0, 7, 0, 255), "s8": (1, -3, -128, 127), "u8-narrow": (0, 255, 20, 200), "s8-narrow": (1, 100, -5, 6)}


def check(work, kind):
    """``work`` has accumulators and scales; the zero point is added last, also where hardware has the choice, and
    first."""
    signed, zero, low, high = TYPES[kind]
    static = {"is_signed": signed, "zero": zero & 255, "minimum": low & 255, "maximum": high & 255}
    rows = [static | {"acc": acc & 0xFFFFFFFF, "scale": scale} for acc, scale in work]
    acc, scale = (np.array(column) for column in zip(*work, strict=True))
    for built, first in ((False, 0), (True, 0), (True, 1)):
        convert = requantise_zero_first if first else requantise
        expected = convert(acc[None], scale.astype(np.uint32), zero, (low, high))[0] & 255
        with_choice = [row | {"zero_first": first} for row in rows] if built else rows
        results = run_pipeline(elaborated(Requantiser, zero_first=built), with_choice)
        for (number, factor), result, wanted in zip(work, results, expected, strict=True):
            assert result["o"] == wanted, f"{number:#x}, {factor:#010x}, {first}: {wanted}, not {result['o']}"


def scale_for(rng, acc, spread=12):
    """A scale that makes some result in range or near to it, of any mantissa."""
    exponent = 127 - abs(acc).bit_length() + rng.randrange(-2, spread)
    return rng.getrandbits(1) << 31 | min(max(exponent, 0), 255) << 23 | rng.getrandbits(23)


def requantise_numbers(rng):
    """Any at all; results in range; accumulators at their ties."""
    yield from ((rng.getrandbits(32) - (1 << 31), rng.getrandbits(32)) for _ in range(100))
    for _ in range(400):
        acc = (rng.getrandbits(rng.randrange(1, 32)) or 1) * rng.choice([1, -1])
        yield acc, scale_for(rng, acc)
    for bits in range(25, 32):
        for _ in range(10):
            cut = bits - 24
            kept = rng.choice([rng.getrandbits(24) | 1 << 23, (1 << 24) - 1])
            acc = (kept << cut) + (1 << cut - 1) + rng.choice([-1, 0, 0, 1])
            yield acc * rng.choice([1, -1]), scale_for(rng, acc) & -1 << rng.randrange(24)


@pytest.mark.parametrize("kind", TYPES)
def test_requantise_numbers(kind):
    check(list(requantise_numbers(random.Random(REQUANTISE_SEED))), kind)


def test_every_exponent():
    rng = random.Random(REQUANTISE_SEED)
    accumulators = (-(1 << 31), (1 << 31) - 1, 0, 1, -1, 1 << 24)
    scales = [exponent << 23 | sign << 31 for exponent in range(256) for sign in (0, 1)]
    check([(acc, scale | rng.choice([0, 0x7FFFFF, 1])) for scale in scales for acc in accumulators], "s8")


def test_ties_of_integers():
    """k + 1/2 for all k in range, of both signs: products that are exact."""
    check([(2 * k + 1, ONE - (1 << 23) | sign << 31) for k in range(-300, 300) for sign in (0, 1)], "s8")


def ties_of_products(rng, count):
    """Accumulators and scales of which the product, of 26 to 32 bits, lies on both sides of a tie of integers: by less
    than what rounding to 24 bits takes away or adds, or a little more."""
    for _ in range(count):
        tie = 2 * rng.randrange(2, 255) + 1 << 23
        first = rng.randrange(1, 4) << tie.bit_length() - 24 | 1
        second = tie // first + rng.getrandbits(1)
        if second.bit_length() > 24:
            continue
        shift = 24 - second.bit_length()
        yield first * rng.choice([1, -1]), 126 - shift << 23 | (second << shift) & 0x7FFFFF


def test_products_are_rounded_before_integers():
    """Where rounding once gives another result: a product that is rounded onto a tie."""
    work = list(ties_of_products(random.Random(REQUANTISE_SEED), 400))
    check(work, "u8")
    once = [round(acc * ((scale & 0x7FFFFF | 1 << 23) * 2.0 ** ((scale >> 23) - 150))) for acc, scale in work]
    twice = requantise([[acc for acc, _ in work]], [scale for _, scale in work], 0, (-1000, 1000))[0]
    assert len(work) > 50 and (np.array(once) != twice).any()


@pytest.mark.parametrize("kind", TYPES)
def test_sums_are_rounded_before_integers(kind):
    """Products within some units of the last place of a half of the sum, of every size of both."""
    rng, (_, zero, *_), work = random.Random(REQUANTISE_SEED), TYPES[kind], []
    for _ in range(1500):
        half = rng.choice([rng.randint(-300, 300) - zero, rng.randint(-3, 2)]) + 0.5
        places = np.frexp(half)[1] - 24
        apart = rng.choice([rng.randint(-3, 3), rng.randint(-40, 40), rng.randint(-600, 600), 1 << rng.randrange(11)])
        work.append((int(half * 2.0**-places) + apart * rng.choice([1, -1]), 127 + int(places) << 23))
    check(work, kind)
    sums, last = (convert([[acc for acc, _ in work]], [scale for _, scale in work], zero, (-1000, 1000))
                  for convert in (requantise_zero_first, requantise))  # fmt: skip
    exact = np.rint([zero + acc * 2.0 ** ((scale >> 23) - 127) for acc, scale in work])
    assert (sums != exact).any() and (sums != last).any()
