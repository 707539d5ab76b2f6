"""A gate lets pass what comes while it is open, and what was offered when it closed."""

import random

import pytest

from tilewright.hw.lib.gate import StreamGate
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream


@pytest.mark.parametrize("mode", STALL_MODES)
def test_items_pass_in_order_while_it_is_open(mode):
    dut, items, closed = elaborated(StreamGate, 8), list(range(200)), []
    rng = random.Random(mode)

    async def source(ctx):
        sent.extend(await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=1))

    async def sink(ctx):
        came, cycles = await receive(ctx, dut.o, len(items), stall=STALL_MODES[mode]["stall"], seed=2)
        assert came == items
        times.extend(cycles)

    async def close(ctx):
        while True:
            ctx.set(dut.closed, rng.random() < 0.3)
            closed.append(ctx.get(dut.closed))
            await ctx.tick()

    sent, times = [], []
    simulate(dut, sink, source, background=[close, watch_stream(dut.o)])
    assert sent == times and any(closed) and (mode != "none" or not any(closed[cycle] for cycle in times))


def test_what_was_offered_passes_and_nothing_else():
    dut = elaborated(StreamGate, 8)

    async def testbench(ctx):
        ctx.set(dut.i.valid, 1)
        await ctx.tick()
        ctx.set(dut.closed, 1)
        await ctx.tick().repeat(3)
        assert ctx.get(dut.o.valid) and not ctx.get(dut.i.ready)
        ctx.set(dut.o.ready, 1)
        await ctx.tick()
        for _ in range(3):
            assert not ctx.get(dut.o.valid) and not ctx.get(dut.i.ready)
            await ctx.tick()
        ctx.set(dut.closed, 0)
        assert ctx.get(dut.o.valid) and ctx.get(dut.i.ready)

    simulate(dut, testbench)
