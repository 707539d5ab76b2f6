"""Pauses, scripts and logs of a harness."""

import pytest
from amaranth.hdl import unsigned

from tilewright.hw.core import CORE_PRESETS, ProgramParams
from tilewright.sim.harness.drivers import Log, ScriptDriver, Stall
from tilewright.sim.harness.records import PE_SCRIPT_DEPTH, TRACES, core_records
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, watch_stream

CYCLES = 4000


def _pattern(probability, *, number=1, seed=1):
    dut, pattern = Stall(number), []

    async def bench(ctx):
        ctx.set(dut.probability, probability)
        ctx.set(dut.seed, seed)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for _ in range(CYCLES):
            pattern.append(ctx.get(dut.go))
            await ctx.tick()

    simulate(dut, bench)
    return pattern


@pytest.mark.parametrize("probability", [64, 128, 230])
def test_probability(probability):
    assert sum(_pattern(probability)) / CYCLES == pytest.approx(1 - probability / 256, abs=0.03)


def test_zero_never_pauses():
    assert all(_pattern(0))


def test_seed_and_number_vary_it():
    patterns = [_pattern(128), _pattern(128, seed=2), _pattern(128, number=2)]
    assert patterns[0] == _pattern(128)
    for index, one in enumerate(patterns):
        for other in patterns[:index]:
            assert 0.4 < sum(a == b for a, b in zip(one, other, strict=True)) / CYCLES < 0.6


def _driver(waits=()):
    dut = ScriptDriver(unsigned(12), depth=32, number=1)
    for index in range(32):
        dut.script.contents.init[index] = (0x100 + index) | (index in waits) << 12
    return dut


async def _start(ctx, dut, count, *, idle=1, stall=0):
    for name, value in {"count": count, "enable": 1, "idle": idle, "stall": stall, "start": 1}.items():
        ctx.set(getattr(dut, name), value)
    await ctx.tick()
    ctx.set(dut.start, 0)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_order(mode):
    dut = _driver()

    async def bench(ctx):
        for _ in range(2):  # a second run starts over
            await _start(ctx, dut, 20, stall=int(256 * STALL_MODES[mode]["idle"]))
            items, cycles = await receive(ctx, dut.o, 20, stall=STALL_MODES[mode]["stall"])
            assert items == [0x100 + index for index in range(20)]
            if mode == "none":
                assert cycles == list(range(20))
            assert ctx.get(dut.finished)
            assert ctx.get(dut.issued) == 20

    simulate(dut, bench, background=[watch_stream(dut.o)])


def test_nothing_is_issued_before_start_and_enable():
    dut = _driver()

    async def bench(ctx):
        await _start(ctx, dut, 3)
        ctx.set(dut.enable, 0)
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.o.valid)
        ctx.set(dut.enable, 1)
        assert (await receive(ctx, dut.o, 3))[0] == [0x100, 0x101, 0x102]
        assert not ctx.get(dut.o.valid)

    simulate(dut, bench)


def test_item_waits_until_idle():
    dut = _driver(waits=[2])

    async def bench(ctx):
        await _start(ctx, dut, 4, idle=0)
        await receive(ctx, dut.o, 2)
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.o.valid)
        ctx.set(dut.idle, 1)
        assert (await receive(ctx, dut.o, 2))[0] == [0x102, 0x103]

    simulate(dut, bench)


def test_log_keeps_what_fits_and_counts_all():
    dut = Log(unsigned(8), depth=4)

    async def bench(ctx):
        for entry in range(6):
            ctx.set(dut.valid, 1)
            ctx.set(dut.entry, 0x10 + entry)
            ctx.set(dut.cycle, 100 + entry)
            await ctx.tick()
            ctx.set(dut.valid, 0)
            await ctx.tick()
        assert ctx.get(dut.count) == 6
        rows = [ctx.get(dut.memory.contents[index]) for index in range(4)]
        assert rows == [(0x10 + entry) << 32 | 100 + entry for entry in range(4)]
        ctx.set(dut.start, 1)
        await ctx.tick()
        assert ctx.get(dut.count) == 0

    simulate(dut, bench)


def test_a_core_with_a_command_processor_has_deeper_logs():
    """Of what a program hands out, which no script limits."""
    plain = core_records(CORE_PRESETS["unit"])
    core = core_records(CORE_PRESETS["unit"].replace(program=ProgramParams()))
    assert "words" not in plain.entries and plain.depths == {}
    assert {name: core.log_depth(name) for name in ("words", "commands", "flips", "jobs")} == {
        "words": 1 << 17, "commands": 1 << 17, "flips": 1 << 17, "jobs": 1 << 15,
    }  # fmt: skip
    assert core.depth == plain.depth == plain.log_depth("commands") == PE_SCRIPT_DEPTH
    assert all(records.log_depth(name) == depth for records in (plain, core) for name, depth in TRACES.items())
