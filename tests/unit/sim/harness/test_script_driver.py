"""Drivers: order, rate, waiting, and that what has been shown stays."""

import pytest
from amaranth.hdl import unsigned

from tilewright.sim.harness.script_driver import ScriptDriver
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, watch_stream


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
