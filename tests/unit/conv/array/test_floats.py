"""A compute unit for floats: every fold, and single products, against the golden model's dot product."""

import numpy as np
import pytest

from tilewright.golden.dot_product import dot
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.conv.array.floats import FloatUnit
from tilewright.hw.conv.params import FOLDS
from tilewright.sim.pysim.dot_rows import dot_rows
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 52


def expected(a, b, accumulators, split, lanes, kind, row_bytes, number):
    """What is at places that mean something, by place."""
    if lanes:
        own = slice(FOLDS * number, FOLDS * (number + 1))
        sums = dot(accumulators[: len(a[own])], a[own, None], b[own, None], kind)
        return dict(enumerate(sums.tolist()))
    many = (row_bytes // FOLDS << split) // 2
    sums = dot(accumulators[:: 1 << split], a.reshape(-1, many), b.reshape(-1, many), kind)
    return {each << split: total for each, total in enumerate(sums.tolist())}


def as_bits(elements):
    return int.from_bytes(elements.astype("<u2").tobytes(), "little")


@pytest.mark.parametrize(("row_bytes", "number"), [
    *((16, 0), (16, 1)),
    *(pytest.param(*case, marks=pytest.mark.long) for case in ((32, 0), (64, 0), (64, 1), (64, 3))),
])  # fmt: skip
def test_sums(row_bytes, number):
    """A row a cycle in any fold, each of what floats can be; the result comes ``LATENCY`` cycles later."""
    dut, rng = elaborated(FloatUnit, row_bytes, number), np.random.default_rng(SEED)

    async def bench(ctx):
        for turn in range(4):
            kind, lanes = (MmType.F16, MmType.BF16)[turn % 2], turn // 2
            ctx.set(dut.brain, kind == MmType.BF16)
            ctx.set(dut.lanes, lanes)
            sums, *factors = dot_rows(rng, kind, 40, row_bytes // 2)
            wanted = []
            for cycle in range(len(sums) + dut.LATENCY):
                if cycle >= dut.LATENCY:
                    seen = ctx.get(dut.o)
                    for place, total in wanted[cycle - dut.LATENCY].items():
                        assert seen[place] == total, f"seed {SEED}, turn {turn}, cycle {cycle}, place {place}"
                if cycle < len(sums):
                    a, b = (rows[cycle] for rows in factors)
                    split = int(rng.integers(row_bytes == FOLDS, 5))  # a point has at least one element
                    accumulators = np.append(sums[cycle], rng.choice(sums, FOLDS - 1))
                    wanted.append(expected(a, b, accumulators, split, lanes, kind, row_bytes, number))
                    ctx.set(dut.a, as_bits(a))
                    ctx.set(dut.b, as_bits(b))
                    ctx.set(dut.split, split)
                    ctx.set(dut.accumulators, accumulators.tolist())
                await ctx.tick()

    simulate(dut, bench)
