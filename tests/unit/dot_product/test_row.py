"""Units in a row: groups that are not powers of two, units left over, one latency for all types; wrong sizes."""

import re

import numpy as np
import pytest

from tilewright.golden.dot_product import dot
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.dot_product.row import DotRow
from tilewright.sim.pysim.dot_rows import dot_rows, join_elements
from tilewright.sim.pysim.pipelines import run_pipeline

SEED = 2
COUNT, UNIT_BYTES, SIZES = 5, 2, (1, 3, 5)


def test_groups():
    rng = np.random.default_rng(SEED)
    rows, expected = [], []
    for _ in range(300):
        kind, select = MmType(rng.integers(len(MmType))), int(rng.integers(len(SIZES)))
        size = SIZES[select]
        groups = COUNT // size
        accumulators, a, b = dot_rows(rng, kind, groups, size * UNIT_BYTES // kind.bytes)
        # Units left over, and accumulators of those that begin no group, hold anything.
        words = rng.integers(0, 1 << 32, COUNT)
        words[: groups * size : size] = accumulators
        units = []
        for elements in (a, b):
            values = rng.integers(0, 1 << 8 * UNIT_BYTES, COUNT)
            values[: groups * size] = join_elements(elements).reshape(-1).view("<u2")
            units.append(values.tolist())
        rows.append({"type": kind, "select": select, "a": units[0], "b": units[1], "accumulators": words.tolist()})
        expected.append(dot(accumulators, a, b, kind).tolist())
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
