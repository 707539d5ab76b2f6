"""Numbers to 24 significant bits: every length, ties and their neighbours, carries that lengthen."""

import random

import pytest

from tilewright.hw.conv.post.significand import Significand
from tilewright.sim.pysim.pipelines import run_pipeline
from tilewright.sim.pysim.simulate import elaborated

SEED = 13


def shortened(value):
    """The significand, its leading bit on top, and places."""
    places = value.bit_length() - 24
    if places <= 0:
        return value << -places, places
    kept, rest, half = value >> places, value & (1 << places) - 1, 1 << places - 1
    kept += rest > half or (rest == half and kept & 1)
    return (kept, places) if kept < 1 << 24 else (kept >> 1, places + 1)


def values(rng, width):
    yield from (1 << bit for bit in range(width))
    yield from ((1 << bit) - 1 for bit in range(1, width + 1))
    for bits in range(25, width + 1):
        cut = bits - 24
        for _ in range(12):
            kept = rng.choice([rng.getrandbits(24) | 1 << 23, (1 << 24) - 1, (1 << 24) - 2])
            yield (kept << cut) + (1 << cut - 1) + rng.choice([-1, 0, 0, 1])
    for _ in range(300):
        yield rng.getrandbits(rng.randrange(1, width + 1)) or 1


@pytest.mark.parametrize("width", [26, 32, 36])
def test_nearest_even(width):
    work = [value % (1 << width) or 1 for value in values(random.Random(SEED), width)]
    latencies = dict.fromkeys(("o", "places"), Significand.LATENCY)
    results = run_pipeline(elaborated(Significand, width), [{"i": value} for value in work], **latencies)
    for value, result in zip(work, results, strict=True):
        assert (result["o"], result["places"]) == shortened(value), f"{value:#x}"


def test_zero():
    assert run_pipeline(elaborated(Significand, 32), [{"i": 0}]) == [{"o": 0}]


@pytest.mark.parametrize("width", [25, 65])
def test_wrong_width(width):
    with pytest.raises(ValueError, match=rf"^width must be 26 to 64, not {width}$"):
        Significand(width)


@pytest.mark.parametrize("width", [True, 32.0])
def test_width_is_an_int(width):
    with pytest.raises(TypeError, match=rf"^width must be an int, not {width}$"):
        Significand(width)
