"""Nested loops: how often the program goes back, and which depth is too much."""

import random

import pytest

from tilewright.hw.core.program.loops import LoopStack
from tilewright.spec.core import LOOPS
from tilewright.verify.pysim.simulate import simulate


def nested(rng, depth, begin=0):
    """Words of a program by index: (count, target) at the end of a loop. Returns them and the index behind."""
    ends, index = {}, begin
    for _ in range(rng.randrange(1, 3)):
        first = index
        index += rng.randrange(2)
        if depth > 1:
            inner, index = nested(rng, depth - 1, index)
            ends |= inner
        ends[index] = rng.randrange(1, 4), first
        index += 1
    return ends, index


def expected(ends, last):
    """Indices of loop ends in the order in which they are met."""
    index, left, met = 0, {}, []
    while index < last:
        if index in ends:
            met.append(index)
            count, first = ends[index]
            rounds = left.pop(index, count)
            if rounds > 1:
                left[index] = rounds - 1
                index = first
                continue
        index += 1
    return met


async def end(ctx, dut, index, count):
    """The loop whose end is the word at hand: whether it goes back, or is one too many."""
    ctx.set(dut.index, index)
    ctx.set(dut.count, count)
    await ctx.tick()
    again, full = ctx.get(dut.again), ctx.get(dut.full)
    ctx.set(dut.ends, not full)
    await ctx.tick()
    ctx.set(dut.ends, 0)
    return again, full


@pytest.mark.parametrize("depth", range(1, LOOPS + 1))
def test_nested_loops(depth):
    dut, rng = LoopStack(), random.Random(f"loops {depth}")
    programs = [nested(rng, depth) for _ in range(5)]
    met = []

    async def testbench(ctx):
        for ends, last in programs:
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            index = 0
            met.append([])
            while index < last:
                if index in ends:
                    met[-1].append(index)
                    again, full = await end(ctx, dut, index, ends[index][0])
                    assert not full
                    if again:
                        index = ends[index][1]
                        continue
                index += 1

    simulate(dut, testbench, deadline=100_000)
    assert met == [expected(*program) for program in programs]


def test_too_many_loops():
    dut = LoopStack()

    async def testbench(ctx):
        for index in range(LOOPS):
            assert await end(ctx, dut, index, 2) == (1, 0)
        assert (await end(ctx, dut, LOOPS, 2))[1]
        assert await end(ctx, dut, LOOPS, 1) == (0, 0), "a single round needs no place"
        assert await end(ctx, dut, LOOPS - 1, 2) == (0, 0)
        assert await end(ctx, dut, LOOPS, 2) == (1, 0)

    simulate(dut, testbench)
