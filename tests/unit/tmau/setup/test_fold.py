"""Folding, against a box whose every byte is written down."""

import itertools
import random

from tilewright.hw.tmau.setup.fold import Fold
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 20261121


def inside(below, above, index):
    return all(b <= i < a for b, a, i in zip(below, above, index, strict=True))


def expected(below, above, counts, contiguous, unit):
    """Folded dimensions, bytes of a run, and offsets in it of bytes inside, of the first run that has any."""
    folded = 0
    while folded < 4 and contiguous[folded] and below[folded] == 0 and above[folded] >= counts[folded]:
        folded += 1
    runs = {}
    for outer in itertools.product(*(range(n) for n in reversed(counts))):
        index = outer[::-1]
        runs.setdefault(index[folded + 1 :], []).extend([inside(below, above, index)] * unit)
    parts = [[k for k, is_inside in enumerate(run) if is_inside] for run in runs.values()]
    parts = [part for part in parts if part]
    assert all(part == parts[0] for part in parts), "all runs of a box have the same part inside"
    return folded, len(next(iter(runs.values()))), parts[0] if parts else None


def test_runs_and_their_inside():
    dut = elaborated(Fold, 13)
    rng = random.Random(SEED)

    async def check(ctx):
        for _ in range(400):
            counts = [rng.randint(1, 4) for _ in range(5)]
            log2 = rng.randint(0, 3)
            below = [rng.choice([0, 0, 0, rng.randint(0, 5)]) for _ in counts]
            above = [rng.choice([256, n, rng.randint(0, 5)]) for n in counts]
            contiguous = [rng.random() < 0.8 for _ in range(4)]
            run_bytes = list(itertools.accumulate(counts[1:], int.__mul__, initial=counts[0] << log2))
            for name, value in (("below", below), ("above", above), ("counts", counts), ("run_bytes", run_bytes),
                                ("contiguous", contiguous), ("unit_log2", log2)):  # fmt: skip
                ctx.set(getattr(dut, name), value)
            folded, length, part = expected(below, above, counts, contiguous, 1 << log2)
            assert ctx.get(dut.folded) == (1 << folded) - 1 and ctx.get(dut.bytes) == length
            if part:
                assert range(ctx.get(dut.data_start), ctx.get(dut.data_end)) == range(part[0], part[-1] + 1)

    print(f"seed {SEED}")
    simulate(dut, check)


def test_gathered_dimension_makes_runs_of_one_unit():
    dut = elaborated(Fold, 13)

    async def check(ctx):
        ctx.set(dut.gather, 1)
        ctx.set(dut.unit_log2, 5)
        ctx.set(dut.counts, [7] * 5)
        ctx.set(dut.below, [3, 0, 0, 0, 0])
        ctx.set(dut.run_bytes, [7 * 32] * 5)
        assert (ctx.get(dut.bytes), ctx.get(dut.data_start), ctx.get(dut.data_end)) == (32, 0, 32)
        assert ctx.get(dut.folded) == 0

    simulate(dut, check)
