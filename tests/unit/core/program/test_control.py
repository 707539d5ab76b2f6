"""The first cause of a stop is kept; registers show it, and count what happens."""

import pytest

from support.registers import Registers
from support.streams import pulse
from tilewright.hw.core import CORE_PRESETS, ProgramParams
from tilewright.hw.core.program.control import ProgramControl, StopCause
from tilewright.spec.core import PROGRAM_ID_VALUE, PROGRAM_REGISTERS, Engine, ProgramError, built_with
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import receive, send


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


PARAMS = CORE_PRESETS["unit"].replace(program=ProgramParams())
REGISTERS = {register.name: register for register in PROGRAM_REGISTERS}


def control_run(bench):
    dut = elaborated(ProgramControl, PARAMS)

    async def begin(ctx):
        await bench(ctx, dut, Registers(ctx, dut.accesses, PROGRAM_REGISTERS))

    simulate(dut, begin)


def test_what_is_there():
    async def bench(ctx, dut, registers):
        assert await registers.read("id") == PROGRAM_ID_VALUE
        for name, fields in built_with(PARAMS).items():
            assert await registers.read(name) == REGISTERS[name].format.pack(**fields)
        assert await registers.read("status") == 1

    control_run(bench)


def test_a_program():
    async def bench(ctx, dut, registers):
        values = {"program_lo": 0x12345640, "program_hi": 0x77, "program_words": 99, "watchdog": 1234}
        for name, value in values.items():
            await registers.write(name, value)
        assert ctx.get(dut.address) == 0x77_12345640
        assert (ctx.get(dut.count), ctx.get(dut.watchdog)) == (99, 1234)
        for field, strobe in (("start", dut.start), ("stop", dut.stop)):
            request = {"address": REGISTERS["control"].offset, "write": 1, "strobe": 15}
            await send(ctx, dut.accesses.requests, [request | {"data": REGISTERS["control"].format.pack(**{field: 1})}])
            assert ctx.get(strobe)
            await ctx.tick()
            assert not ctx.get(strobe)
            await receive(ctx, dut.accesses.answers, 1)

    control_run(bench)


@pytest.mark.parametrize("code", [0, 8])
@pytest.mark.parametrize("interrupt", [0, 1])
def test_the_end(code, interrupt):
    async def bench(ctx, dut, registers):
        await registers.write("irq_enable", 3)
        ctx.set(dut.busy, 1)
        await ctx.tick().repeat(3)
        assert not await registers.read("status") & 1
        ctx.set(dut.cause, {"code": code, "engine": 2, "tag": 77, "index": 6})
        ctx.set(dut.index, 7)
        ctx.set(dut.interrupt, interrupt)
        await pulse(ctx, dut.ended)
        ctx.set(dut.busy, 0)
        await ctx.tick()
        status = REGISTERS["status"].format.unpack(await registers.read("status"))
        assert status == {"idle": 1, "error": bool(code), "done": not code}
        assert await registers.read("word") == 7
        irq = REGISTERS["irq_status"].format.unpack(await registers.read("irq_status"))
        assert irq == {"error": bool(code), "done": not code and interrupt}
        assert ctx.get(dut.irq) == bool(code or interrupt)
        if code:
            assert await registers.read("error") == REGISTERS["error"].format.pack(code=code, engine=2, tag=77)
            assert await registers.read("error_word") == 6
            assert await registers.read("error_count") == 1
            await registers.write("control", clear_error=1)
            assert await registers.read("error") == 0

    control_run(bench)


def test_counters_and_window():
    async def bench(ctx, dut, registers):
        ctx.set(dut.events, {"word": 1, "stall_fetch": 1})
        await ctx.tick().repeat(10)
        ctx.set(dut.events, {})
        await ctx.tick().repeat(2)
        names = ("words", "busy_cycles", "wait_cycles", "stall_engine", "stall_fetch", "beats")
        assert [await registers.read(name) for name in names] == [10, 0, 0, 0, 10, 0]
        for name, value in (("windows", 1), ("window_base_lo", 0x5000), ("window_limit_lo", 0x9FFF)):
            await registers.write(name, value)
        await ctx.tick()
        window = ctx.get(dut.window)
        assert (window.confine, window.first, window.last) == (1, 5, 9)
        await registers.write("window_base_hi", 1)
        await ctx.tick()
        assert ctx.get(dut.window).first > ctx.get(dut.window).last, "behind the memory: it holds nothing"

    control_run(bench)
