"""A lane of requantisation against the golden model: every exponent, ties of all three roundings, both ends, clamps."""

import random

import numpy as np
import pytest

from tilewright.golden.conv.results import requantise
from tilewright.hw.conv.post.requantise import Requantiser
from tilewright.sim.pysim.pipelines import run_pipeline
from tilewright.sim.pysim.simulate import elaborated

SEED = 15
ONE = 0x3F800000
#: Signed, zero point, least and largest result.
TYPES = {"u8": (0, 7, 0, 255), "s8": (1, -3, -128, 127), "u8-narrow": (0, 255, 20, 200), "s8-narrow": (1, 100, -5, 6)}


def check(work, kind):
    """``work`` has accumulators and scales."""
    signed, zero, low, high = TYPES[kind]
    static = {"is_signed": signed, "zero": zero & 255, "minimum": low & 255, "maximum": high & 255}
    rows = [static | {"acc": acc & 0xFFFFFFFF, "scale": scale} for acc, scale in work]
    acc, scale = (np.array(column) for column in zip(*work, strict=True))
    expected = requantise(acc[None], scale.astype(np.uint32), zero, (low, high))[0] & 255
    results = run_pipeline(elaborated(Requantiser), rows)
    for (acc, scale), result, wanted in zip(work, results, expected, strict=True):
        assert result["o"] == wanted, f"{acc:#x}, {scale:#010x}: {wanted}, not {result['o']}"


def scale_for(rng, acc, spread=12):
    """A scale that makes some result in range or near to it, of any mantissa."""
    exponent = 127 - abs(acc).bit_length() + rng.randrange(-2, spread)
    return rng.getrandbits(1) << 31 | min(max(exponent, 0), 255) << 23 | rng.getrandbits(23)


def numbers(rng):
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
def test_numbers(kind):
    check(list(numbers(random.Random(SEED))), kind)


def test_every_exponent():
    rng = random.Random(SEED)
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
    work = list(ties_of_products(random.Random(SEED), 400))
    check(work, "u8")
    once = [round(acc * ((scale & 0x7FFFFF | 1 << 23) * 2.0 ** ((scale >> 23) - 150))) for acc, scale in work]
    twice = requantise([[acc for acc, _ in work]], [scale for _, scale in work], 0, (-1000, 1000))[0]
    assert len(work) > 50 and (np.array(once) != twice).any()


@pytest.mark.parametrize("kind", ["u8", "s8"])
def test_identity(kind):
    """A scale of one, in place."""
    check([(acc, ONE) for acc in range(-400, 400)], kind)
