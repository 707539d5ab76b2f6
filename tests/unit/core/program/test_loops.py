"""The stack of loops goes where the golden model goes."""

import random

import pytest

from tilewright.golden.core.loops import Loops
from tilewright.golden.spec.core.errors import ProgramError
from tilewright.hw.core.program.loops import LoopStack
from tilewright.sim.pysim.simulate import elaborated, simulate


def random_loops(rng):
    """Loop words by their indices, one inside the other or behind it: count and back."""
    loops = {}
    for index in range(1, rng.randrange(2, 12)):
        if rng.random() < 0.7:
            loops[index] = (rng.randrange(1, 4), rng.randrange(1, index + 1))
    return loops


@pytest.mark.parametrize("seed", range(10))
def test_random_loops(seed):
    dut, rng = elaborated(LoopStack), random.Random(seed)
    full = []

    async def program(ctx, loops):
        golden, index = Loops(), 0
        ctx.set(dut.clear, 1)
        await ctx.tick()
        ctx.set(dut.clear, 0)
        for _ in range(300):
            if index > 12:
                return
            if index not in loops:
                index += 1
                continue
            count, back = loops[index]
            place = golden.next(index, count, back)
            ctx.set(dut.index, index)
            ctx.set(dut.count, count)
            await ctx.tick()
            assert ctx.get(dut.full) == (place == ProgramError.LOOP and isinstance(place, ProgramError))
            if isinstance(place, ProgramError):
                full.append(index)
                return
            assert ctx.get(dut.again) == (place != index + 1)
            ctx.set(dut.ends, 1)
            await ctx.tick()
            ctx.set(dut.ends, 0)
            index = place

    async def bench(ctx):
        for _ in range(10):
            await program(ctx, random_loops(rng))
        full.clear()
        # The fifth goes back over four others: when the first is met again, there are four around it.
        await program(ctx, {index: (2, index) for index in range(1, 5)})
        assert not full
        await program(ctx, {index: (2, index) for index in range(1, 6)})
        assert full == [1]

    simulate(dut, bench, deadline=20_000)
