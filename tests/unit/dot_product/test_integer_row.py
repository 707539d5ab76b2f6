"""Rows without floats: products and sums of all integer types, and groups."""

import numpy as np
import pytest

from support.dot_product import grouped_rows
from support.pe_operands import dot_rows, join_elements
from tilewright.golden.dot_product import dot
from tilewright.hw.dot_product.integer_row import IntegerProduct, IntegerRow
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.streams import run_pipeline

SEED = 3
COUNT, UNIT_BYTES, SIZES = 5, 4, (1, 3, 5)
INTEGERS = [kind for kind in MmType if not kind.is_float]


def kinds_of(wide):
    return [kind for kind in INTEGERS if wide or kind.bytes == 1]


@pytest.mark.parametrize("wide", [True, False])
def test_products(wide):
    results, pairs = multiply(IntegerProduct(wide=wide), kinds_of(wide), "lower", "upper")
    for result, (kind, *product) in zip(results, pairs, strict=True):
        assert (result["lower"] & 0xFFFFFFFF, result["upper"]) == (product[0] & 0xFFFFFFFF, sum(product[1:])), kind


def multiply(dut, kinds, *outputs):
    """Results for random factors, and for each of them the type and its one or two products."""
    rows, expected = [], []
    rng = np.random.default_rng(SEED)
    for kind in kinds:
        _, a, b = dot_rows(rng, kind, 300, 2 // kind.bytes)
        numbers = [x if kind & bit else x.view(f"i{kind.bytes}") for x, bit in ((a, 2), (b, 1))]
        products = numbers[0].astype(int) * numbers[1].astype(int)
        for x, y, product in zip(a, b, products, strict=True):
            rows.append({"type": kind} | {n: int.from_bytes(v.tobytes(), "little") for n, v in (("a", x), ("b", y))})
            expected.append((kind, *product.tolist()))
    return run_pipeline(dut, rows, **dict.fromkeys(outputs, dut.LATENCY)), expected


@pytest.mark.parametrize(("wide", "free_adders"), [(True, True), (True, False), (False, True), (False, False)])
def test_groups(wide, free_adders):
    rng, rows, expected = np.random.default_rng(SEED), [], []
    for row, sums in grouped_rows(rng, kinds_of(wide), SIZES, 400, count=COUNT, unit_bytes=UNIT_BYTES):
        second = rng.integers(0, 2, COUNT)
        added = {name: (np.array(row["accumulators"]) * used).tolist()
                 for name, used in (("accumulators", 1 - second), ("others", second))}  # fmt: skip
        rows.append(row | added)
        expected.append(sums)
    dut = IntegerRow(count=COUNT, unit_bytes=UNIT_BYTES, sizes=SIZES, wide=wide, free_adders=free_adders)
    later = dict.fromkeys(("accumulators", "others"), dut.ACCUMULATORS_AFTER)
    for row, result, sums in zip(rows, run_pipeline(dut, rows, later), expected, strict=True):
        size = SIZES[row["select"]]
        assert [result["o"][size * group] for group in range(len(sums))] == sums, row


@pytest.mark.parametrize("kind", [MmType.S16U16, MmType.S8U8])
@pytest.mark.parametrize("lanes", [4, 5])
def test_chains(lanes, kind):
    """One unit; of five lanes the last one is a chain of its own."""
    rng = np.random.default_rng(SEED)
    accumulators, a, b = dot_rows(rng, kind, 100, lanes * 2 // kind.bytes)
    rows = [
        {
            "type": kind,
            "a": [int.from_bytes(x, "little")],
            "b": [int.from_bytes(y, "little")],
            "accumulators": [int(word)],
        }
        for x, y, word in zip(join_elements(a), join_elements(b), accumulators, strict=True)
    ]
    dut = IntegerRow(count=1, unit_bytes=2 * lanes, sizes=[1])
    later = {"accumulators": dut.ACCUMULATORS_AFTER}
    assert [result["o"][0] for result in run_pipeline(dut, rows, later)] == dot(accumulators, a, b, kind).tolist()
