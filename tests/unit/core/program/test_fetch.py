"""Words come in order from where a jump says, with what went wrong, and no line outside the program is asked for."""

import random

import pytest

from tilewright.golden.spec.core.errors import ProgramError
from tilewright.hw.core.program.fetch import ProgramFetcher
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES

BASE, COUNT, DEPTH = 1000, 40, 4


def memory(dut, asked, failing, rng, latency, stall):
    """Answers requests in order after a while."""

    async def serve(ctx):
        pending, cycle = [], 0
        async for _, _, valid, ready, line in ctx.tick().sample(
            dut.requests.valid, dut.requests.ready, dut.requests.payload
        ):
            if valid and ready:
                asked.append(line)
                pending.append((cycle + latency, line))
            ctx.set(dut.requests.ready, rng.random() >= stall)
            comes = pending and pending[0][0] <= cycle and rng.random() >= stall
            ctx.set(dut.lines.valid, bool(comes))
            if comes:
                line = pending.pop(0)[1]
                ctx.set(dut.lines.payload, {"data": 7 * line, "error": line in failing})
            cycle += 1

    return serve


async def jump(ctx, dut, target):
    ctx.set(dut.target, target)
    ctx.set(dut.jump, 1)
    await ctx.tick()
    ctx.set(dut.jump, 0)


async def halt(ctx, dut):
    ctx.set(dut.halt, 1)
    await ctx.tick()
    while ctx.get(dut.busy):
        await ctx.tick()
        assert not ctx.get(dut.o.valid)
    ctx.set(dut.halt, 0)


def run(bench, mode="none", failing=(), latency=6):
    dut, asked = elaborated(ProgramFetcher, 32, DEPTH), []

    async def begin(ctx):
        ctx.set(dut.base, BASE)
        ctx.set(dut.count, COUNT)
        await bench(ctx, dut)

    serve = memory(dut, asked, failing, random.Random(1), latency, STALL_MODES[mode]["idle"])
    simulate(dut, begin, background=[serve], deadline=5000)
    assert all(BASE <= line < BASE + COUNT for line in asked)
    return asked


async def take(ctx, dut, rng, stall):
    """The next word, and its code."""
    while True:
        ctx.set(dut.o.ready, rng.random() >= stall)
        ready = ctx.get(dut.o.ready)
        _, _, valid, item = await ctx.tick().sample(dut.o.valid, dut.o.payload)
        if valid and ready:
            ctx.set(dut.o.ready, 0)
            return item.word, item.code


@pytest.mark.parametrize("mode", STALL_MODES)
def test_jumps(mode):
    """After each jump, at any time, the words from its target on come, and no others."""
    rng, stall = random.Random(mode), STALL_MODES[mode]["stall"]

    async def bench(ctx, dut):
        for _ in range(40):
            target = rng.randrange(COUNT + 1)
            await jump(ctx, dut, target)
            for index in range(target, min(target + rng.randrange(8), COUNT)):
                assert await take(ctx, dut, rng, stall) == (7 * (BASE + index), 0)
            if rng.random() < 0.3:
                await halt(ctx, dut)
            for _ in range(rng.randrange(4)):
                await ctx.tick()

    run(bench, mode)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_the_end(mode):
    rng, stall = random.Random(mode), STALL_MODES[mode]["stall"]

    async def bench(ctx, dut):
        for target in (COUNT - 3, COUNT):
            await jump(ctx, dut, target)
            for index in range(target, COUNT):
                assert await take(ctx, dut, rng, stall) == (7 * (BASE + index), 0)
            assert (await take(ctx, dut, rng, stall))[1] == ProgramError.NO_END
            await halt(ctx, dut)

    run(bench, mode)


def test_a_word_that_does_not_come():
    async def bench(ctx, dut):
        await jump(ctx, dut, 0)
        codes = [(await take(ctx, dut, random.Random(1), 0))[1] for _ in range(5)]
        assert codes == [0, 0, 0, ProgramError.BUS, 0]

    run(bench, failing=[BASE + 3])


def test_rate_and_latency():
    """Fetched ahead, words come one a cycle; without, in the time of a request and its line."""

    async def bench(ctx, dut):
        await jump(ctx, dut, 0)
        await ctx.tick().repeat(30)
        for index in range(DEPTH):
            ctx.set(dut.o.ready, 1)
            _, _, valid, item = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            assert valid and item.word == 7 * (BASE + index)
        await halt(ctx, dut)
        await jump(ctx, dut, 0)
        cycles = 0
        while not ctx.get(dut.o.valid):
            await ctx.tick()
            cycles += 1
        assert cycles == 4, "one to ask, two of the memory, one for the queue"

    asked = run(bench, latency=1)
    assert asked[:DEPTH] == list(range(BASE, BASE + DEPTH))
