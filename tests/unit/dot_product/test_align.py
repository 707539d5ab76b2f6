"""Alignment: the cut of docs/pe.md, "Numbers", step 3, at every distance and for either sign."""

import random

import pytest

from tilewright.hw.dot_product.align import Aligner
from tilewright.hw.dot_product.terms import ACCUMULATOR_PLACES, PRODUCT_PLACES
from tilewright.sim.pysim.pipelines import run_pipeline

#: Bits of M, and W.
TERM_BITS, WINDOW = 32, 48


def cut(term, distance):
    """``term`` cut to W places and one more, written from the text."""
    size = abs(term) << WINDOW - TERM_BITS
    kept, lost = size >> distance, size & (1 << distance) - 1
    places = 2 * kept + (lost != 0)
    return -places if term < 0 else places


@pytest.mark.parametrize("places", [PRODUCT_PLACES, ACCUMULATOR_PLACES])
def test_cut(places):
    rng = random.Random(3)
    lowest = TERM_BITS - places
    terms = [1 << 31, (1 << 32) - (1 << lowest), 1 << lowest, 3 << lowest]
    terms += [rng.getrandbits(TERM_BITS) & -1 << rng.choice([lowest, 12, 16, 25]) for _ in range(7)]
    distances = [*range(70), 127, 128, 255, 256, 506]
    work = [(sign * term, distance) for term in terms for sign in (1, -1) for distance in distances]
    rng.shuffle(work)
    rows = []
    for term, distance in work:
        top = rng.randrange(1, 511 - distance)
        rows.append({"term": term, "integer": 0, "top": top, "highest": top + distance})
    results = run_pipeline(Aligner(places), rows)
    assert [result["o"] for result in results] == [cut(*each) for each in work]


def test_integers_come_to_bit_0():
    rng = random.Random(4)
    terms = [0, 1, -1, (1 << 32) - 1, -(1 << 31), 12345, *(rng.getrandbits(33) - (1 << 32) for _ in range(100))]
    rows = [{"term": term, "integer": 1, "top": 0, "highest": rng.randrange(512)} for term in terms]
    results = run_pipeline(Aligner(PRODUCT_PLACES), rows)
    assert [result["o"] for result in results] == terms


def test_zero_stays_zero():
    rows = [{"term": 0, "integer": 0, "top": 0, "highest": highest} for highest in (0, 1, 47, 48, 63, 64, 511)]
    assert all(result["o"] == 0 for result in run_pipeline(Aligner(ACCUMULATOR_PLACES), rows))
