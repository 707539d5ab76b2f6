"""Loop nests: a combination a cycle and no gap between nests. The proof shows cuts and pairs."""

import random
from itertools import product

import pytest

from tilewright.hw.lib.loop_nest import LoopNest
from tilewright.verify.pysim.simulate import simulate


def combinations(lasts):
    """All indices, level 0 changing fastest."""
    return [tuple(reversed(c)) for c in product(*(range(last + 1) for last in reversed(lasts)))]


@pytest.mark.parametrize("widths", [[8], [3, 1, 9, 2, 2]])
def test_nests_back_to_back(widths):
    dut = LoopNest(widths)
    rng = random.Random(23)
    nests = [[rng.randrange(min(1 << width, 5)) for width in widths] for _ in range(12)] + [[0] * len(widths)] * 3
    levels = range(len(widths))
    cycles = 0

    async def testbench(ctx):
        nonlocal cycles
        ctx.set(dut.lasts, dict(enumerate(nests[0])))
        ctx.set(dut.start, 1)
        await ctx.tick()
        for number, lasts in enumerate(nests):
            expected = combinations(lasts)
            for position, indices in enumerate(expected):
                assert tuple(ctx.get(dut.indices[level]) for level in levels) == indices
                final = position == len(expected) - 1
                assert ctx.get(dut.final) == final
                assert ctx.get(dut.at_last) == sum((indices[k] == lasts[k]) << k for k in levels)
                stepped = [k for k in levels if not final and indices[k] + 1 == expected[position + 1][k]]
                assert ctx.get(dut.advance) == sum(1 << k for k in stepped)
                ctx.set(dut.start, 0)
                ctx.set(dut.step, 1)
                if final:
                    # The next nest starts with the final step; ``lasts`` is ignored in all other cycles.
                    ctx.set(dut.lasts, dict(enumerate(nests[(number + 1) % len(nests)])))
                    ctx.set(dut.start, 1)
                else:
                    ctx.set(dut.lasts, dict.fromkeys(levels, 0))
                await ctx.tick()
                cycles += 1

    simulate(dut, testbench, deadline=50_000)
    assert cycles == sum(len(combinations(lasts)) for lasts in nests)


@pytest.mark.parametrize("widths", [[], [4, 0], [2.0]])
def test_refused_widths(widths):
    with pytest.raises(ValueError, match=r"^widths must be one or more ints of at least 1, not \["):
        LoopNest(widths)
