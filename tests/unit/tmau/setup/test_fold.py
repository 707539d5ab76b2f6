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


async def fold(ctx, dut, below, above, counts, run_bytes, contiguous, log2, gather=0):
    """Sends the dimensions; which of them fold."""
    folded = []
    for d, count in enumerate(counts):
        for name, value in (("first", d == 0), ("gather", gather), ("count", count),
                            ("start", min(below[d], count)), ("end", min(above[d], count)), ("step", 1),
                            ("dimension_bytes", run_bytes[d]), ("piece", run_bytes[d - 1] if d else 1 << log2),
                            ("contiguous", d and contiguous[d - 1])):  # fmt: skip
            ctx.set(getattr(dut, name), value)
        folded.append(ctx.get(dut.folded))
        continues = ctx.get(dut.folded) and below[d] == 0 and above[d] >= count
        assert ctx.get(dut.whole) == continues
        await ctx.tick()
        ctx.set(dut.step, 0)
        await ctx.tick()
    return folded


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
            found = await fold(ctx, dut, below, above, counts, run_bytes, contiguous, log2)
            folded, length, part = expected(below, above, counts, contiguous, 1 << log2)
            assert found == [1] * (1 + folded) + [0] * (4 - folded) and ctx.get(dut.bytes) == length
            if part:
                assert range(ctx.get(dut.data_start), ctx.get(dut.data_end)) == range(part[0], part[-1] + 1)
                assert ctx.get(dut.data_bytes) == len(part)

    print(f"seed {SEED}")
    simulate(dut, check)


def test_gathered_dimension_makes_runs_of_one_unit():
    dut = elaborated(Fold, 13)

    async def check(ctx):
        folded = await fold(ctx, dut, [3, 0, 0, 0, 0], [256] * 5, [7] * 5, [7 * 32] * 5, [0] * 4, log2=5, gather=1)
        assert folded == [0] * 5
        part = (ctx.get(dut.data_start), ctx.get(dut.data_end), ctx.get(dut.data_bytes))
        assert (ctx.get(dut.bytes), *part) == (32, 0, 32, 32)

    simulate(dut, check)
