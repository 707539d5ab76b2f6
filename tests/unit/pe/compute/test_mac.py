"""The multipliers of all threads: every kb, with threads left over, all types one after the other."""

import numpy as np
import pytest

from tilewright.golden.dot_product import dot
from tilewright.golden.spec.pe.instruction import MM_FAMILIES, MmType
from tilewright.hw.pe.compute.mac import MacArray
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim.dot_rows import dot_rows, join_elements
from tilewright.sim.pysim.pipelines import run_pipeline

SEED = 23


@pytest.mark.parametrize(
    ("threads", "factor_regs", "types"),
    [(4, 2, MM_FAMILIES), (7, 1, MM_FAMILIES), (7, 2, ("i8", "i16")), (5, 1, ("i8",))],
)
def test_merge(threads, factor_regs, types):
    params = PE_PRESETS["unit"].replace(threads=threads, factor_regs=factor_regs, types=types)
    kinds = [kind for kind in MmType if kind.family in types]
    rng = np.random.default_rng(SEED)
    rows, expected = [], []
    for number in range(100):
        kind, kb = kinds[number % len(kinds)], int(rng.integers(1, 5))
        groups = threads // kb
        accumulators, a, b = dot_rows(rng, kind, groups, kb * params.unit_bytes // kind.bytes)
        # Threads left over, and those that only multiply, hold anything in their accumulators.
        words = rng.integers(0, 1 << 32, threads)
        words[: groups * kb : kb] = accumulators
        row = {"type": kind, "select": kb - 1, "accumulators": words.tolist()}
        if not params.floats:
            second = rng.integers(0, 2, threads)
            row |= {"accumulators": (words * (1 - second)).tolist(), "others": (words * second).tolist()}
        for name, elements in (("a", a), ("b", b)):
            units = rng.integers(0, 256, (threads, params.unit_bytes), np.uint8)
            units[: groups * kb] = join_elements(elements).reshape(-1, params.unit_bytes)
            row[name] = [int.from_bytes(unit.tobytes(), "little") for unit in units]
        rows.append(row)
        expected.append((kb, dot(accumulators, a, b, kind).tolist()))
    array = MacArray(params)
    behind = dict.fromkeys(("accumulators", "others"), array.ACCUMULATORS_AFTER)
    for result, (kb, sums) in zip(run_pipeline(array, rows, behind), expected, strict=True):
        assert list(result["o"])[::kb][: len(sums)] == sums
