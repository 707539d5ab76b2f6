"""Shapes of terms: which types are integers, and where those land in a sum."""

import random
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from support.pe_operands import dot_rows
from tilewright.hw.dot_product.terms import ACCUMULATOR_PLACES, PRODUCT_PLACES, AccumulatorTerm, Aligner, LaneProduct
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.streams import run_pipeline

SEED = 5
ROWS = 1000
FLOATS = {MmType.F16: np.float16, MmType.BF16: ml_dtypes.bfloat16}
#: Highest place of a term's M, and what is added to the logarithm of its weight.
PLACE, BIAS = 31, 255


def outputs(dut):
    return {"top": 1, "flags": 1, "term": dut.LATENCY}


def exact(result):
    """The value of a float term; None if it is zero."""
    if not result["top"]:
        return Fraction(0)
    return result["term"] * Fraction(2) ** (result["top"] - BIAS - PLACE)


def flags_of(negative, infinite, nan):
    return {"nan": nan, "plus": infinite and not negative, "minus": infinite and negative, "positive": not negative}


def assert_flags(flags, expected):
    # Of what is NaN neither the sign matters, nor whether it is infinite.
    names = ["nan"] if expected["nan"] else expected
    assert {name: flags[name] for name in names} == {name: expected[name] for name in names}


@pytest.mark.parametrize("kind", FLOATS)
def test_float_products(kind):
    _, a, b = dot_rows(np.random.default_rng(SEED), kind, ROWS, 1)
    dut = LaneProduct()
    rows = [{"type": kind, "a": int(x), "b": int(y)} for x, y in zip(a[:, 0], b[:, 0], strict=True)]
    results = run_pipeline(dut, rows, **outputs(dut))
    # Products of these formats are exact in double precision.
    with np.errstate(invalid="ignore"):
        products = (a.view(FLOATS[kind]).astype(float) * b.view(FLOATS[kind]).astype(float))[:, 0]
    for x, y, product, result in zip(a[:, 0], b[:, 0], products, results, strict=True):
        negative = bool((x ^ y) >> 15)
        assert_flags(result["flags"], flags_of(negative, bool(np.isinf(product)), bool(np.isnan(product))))
        assert result["term"] % (1 << PLACE + 1 - PRODUCT_PLACES) == 0
        if np.isfinite(product):
            assert exact(result) == Fraction(product), f"{x:#x} times {y:#x}"
            assert bool(result["top"]) == bool(product)


def test_accumulators():
    accumulators, _, _ = dot_rows(np.random.default_rng(SEED), MmType.BF16, ROWS, 1)
    dut = AccumulatorTerm()
    rows = [{"integer": 0, "enable": 1, "i": int(word)} for word in accumulators]
    results = run_pipeline(dut, rows, **outputs(dut))
    for word, number, result in zip(accumulators, accumulators.view(np.float32), results, strict=True):
        assert_flags(result["flags"], flags_of(bool(word >> 31), bool(np.isinf(number)), bool(np.isnan(number))))
        if np.isfinite(number):
            assert exact(result) == Fraction(float(number)), f"{word:#x}"
            biased = int(word >> 23 & 0xFF)
            assert result["top"] == (max(biased, 1) - 127 + BIAS if number else 0)


#: Bits of M, and W.
TERM_BITS, WINDOW = 32, 48


def cut(term, distance):
    """``term`` cut to W places and one more, written from the text."""
    size = abs(term) << WINDOW - TERM_BITS
    quotient, lost = size >> distance, size & (1 << distance) - 1
    places = 2 * quotient + (lost != 0)
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
