"""Why a program stops: the first cause, of several at once the lowest code; and how long a word may take."""

import pytest

from tilewright.golden.spec.core.errors import ProgramError
from tilewright.golden.spec.core.word import Engine
from tilewright.hw.core.program.cause import StopCause
from tilewright.sim.pysim.simulate import elaborated, simulate


def run(bench):
    dut = elaborated(StopCause)

    async def begin(ctx):
        ctx.set(dut.tag, 5)
        ctx.set(dut.index, 9)
        for number in range(3):
            ctx.set(dut.engine_tags[number], 70 + number)
        await strobe(ctx, dut.begin)
        ctx.set(dut.runs, 1)
        await bench(ctx, dut)

    simulate(dut, begin)


async def strobe(ctx, *signals):
    for signal in signals:
        ctx.set(signal, 1)
    await ctx.tick()
    for signal in signals:
        ctx.set(signal, 0)


def cause(ctx, dut):
    kept = ctx.get(dut.cause)
    assert ctx.get(dut.stops) == (kept.code != 0)
    return kept.code, kept.engine, kept.tag, kept.index


@pytest.mark.parametrize("second", ["failed", "stop", "engines"])
@pytest.mark.parametrize("first", ["failed", "stop", "engines"])
def test_the_first_one_stays(first, second):
    codes = {"failed": ProgramError.LOOP, "stop": ProgramError.STOPPED, "engines": ProgramError.ENGINE}

    async def bench(ctx, dut):
        ctx.set(dut.code, ProgramError.LOOP)
        await strobe(ctx, getattr(dut, first))
        ctx.set(dut.index, 10)
        await strobe(ctx, getattr(dut, second))
        engine, tag = (Engine.TMAU, 70) if first == "engines" else (0, 5)
        assert cause(ctx, dut) == (codes[first], engine, tag, 9)
        await strobe(ctx, dut.begin)
        assert cause(ctx, dut) == (0, 0, 0, 0)
        await strobe(ctx, getattr(dut, first), getattr(dut, second))
        assert cause(ctx, dut)[0] == min(codes[first], codes[second])

    run(bench)


@pytest.mark.parametrize("engines", range(1, 8))
def test_engines(engines):
    async def bench(ctx, dut):
        ctx.set(dut.engines, engines)
        await ctx.tick()
        first = (engines & -engines).bit_length() - 1
        assert cause(ctx, dut) == (ProgramError.ENGINE, list(Engine)[1:][first], 70 + first, 9)

    run(bench)


@pytest.mark.parametrize("cycles", [1, 2, 30])
def test_watchdog(cycles):
    """It begins anew with each advance, and rests while no program runs."""

    async def bench(ctx, dut):
        ctx.set(dut.watchdog, cycles)
        await strobe(ctx, dut.advances)
        for _ in range(3):
            for _ in range(cycles - 1):
                await ctx.tick()
            await strobe(ctx, dut.advances)
            assert not ctx.get(dut.stops)
        await ctx.tick().repeat(cycles)
        assert not ctx.get(dut.stops)
        await ctx.tick()
        assert cause(ctx, dut) == (ProgramError.WATCHDOG, 0, 5, 9)
        ctx.set(dut.runs, 0)
        await strobe(ctx, dut.begin)
        await ctx.tick().repeat(cycles + 3)
        assert not ctx.get(dut.stops)
        ctx.set(dut.watchdog, 0)
        ctx.set(dut.runs, 1)
        await strobe(ctx, dut.advances)
        await ctx.tick().repeat(300)
        assert not ctx.get(dut.stops), "0: for ever"

    run(bench)
