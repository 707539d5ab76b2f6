"""Loop nests: the lexicographic product, one combination a cycle, and no gap between nests."""

import random
from itertools import product

import pytest

from tilewright.hw.lib.loop_nest import LoopNest
from tilewright.verify.pysim.simulate import simulate


def combinations(lasts):
    """All indices, level 0 changing fastest."""
    return [tuple(reversed(c)) for c in product(*(range(last + 1) for last in reversed(lasts)))]


@pytest.mark.parametrize("pause", [0.0, 0.5])
@pytest.mark.parametrize("widths", [[8], [2, 1], [8] * 4, [3, 1, 9, 2, 2]])
def test_nests_back_to_back(widths, pause):
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
                moved = [k for k in levels if not final and indices[k] + 1 == expected[position + 1][k]]
                assert ctx.get(dut.advance) == sum(1 << k for k in moved)
                ctx.set(dut.start, 0)
                ctx.set(dut.step, 0)
                while rng.random() < pause:
                    await ctx.tick()
                ctx.set(dut.step, 1)
                if final:
                    # The next nest, with the final step; what is not loaded now must not be looked at.
                    ctx.set(dut.lasts, dict(enumerate(nests[(number + 1) % len(nests)])))
                    ctx.set(dut.start, 1)
                else:
                    ctx.set(dut.lasts, dict.fromkeys(levels, 0))
                await ctx.tick()
                cycles += 1

    simulate(dut, testbench, deadline=50_000)
    assert cycles == sum(len(combinations(lasts)) for lasts in nests)


def test_levels_that_are_cut_count_as_ended():
    dut = LoopNest([4, 4, 4])

    async def testbench(ctx):
        ctx.set(dut.lasts, {0: 0, 1: 9, 2: 2})
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        ctx.set(dut.step, 1)
        for outer in range(3):
            for index in range(3):
                ctx.set(dut.cut, 0b010 if index == 2 else 0)
                assert (ctx.get(dut.indices[1]), ctx.get(dut.indices[2])) == (index, outer)
                assert ctx.get(dut.final) == (index == 2 and outer == 2)
                assert ctx.get(dut.advance) == (0b010 if index < 2 else 0b100 if outer < 2 else 0)
                await ctx.tick()

    simulate(dut, testbench)


def test_pairs_of_indices():
    """Two indices of level 0 in a step wherever there are two, and sometimes: what is taken is the same."""
    dut, rng = LoopNest([4, 3], pairs=True), random.Random(3)
    assert not hasattr(LoopNest([4]), "pair")

    async def testbench(ctx):
        for lasts, often in product([(0, 1), (1, 2), (2, 2), (5, 1), (6, 3)], (0.5, 1.0)):
            ctx.set(dut.lasts, dict(enumerate(lasts)))
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.step, 1)
            taken, over = [], False
            while not over:
                index, outer = (ctx.get(dut.indices[level]) for level in range(2))
                pair = index < lasts[0] and rng.random() < often
                ctx.set(dut.pair, pair)
                taken += [(index, outer), (index + 1, outer)][: 1 + pair]
                line_over, over = index + pair == lasts[0], index + pair == lasts[0] and outer == lasts[1]
                assert ctx.get(dut.at_last[0]) == line_over
                assert ctx.get(dut.advance) == (0 if over else 0b10 if line_over else 0b01)
                assert ctx.get(dut.final) == over
                await ctx.tick()
            assert taken == combinations(lasts)

    simulate(dut, testbench)


def test_without_a_start_it_begins_again():
    dut = LoopNest([2, 2])

    async def testbench(ctx):
        ctx.set(dut.lasts, {0: 1, 1: 2})
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        ctx.set(dut.step, 1)
        for indices in 2 * combinations([1, 2]):
            assert (ctx.get(dut.indices[0]), ctx.get(dut.indices[1])) == indices
            await ctx.tick()

    simulate(dut, testbench)


@pytest.mark.parametrize("widths", [[], [4, 0], [2.0]])
def test_refused_widths(widths):
    with pytest.raises(ValueError, match=r"^widths must be one or more ints of at least 1, not \["):
        LoopNest(widths)
