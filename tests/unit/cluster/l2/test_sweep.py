"""A sweep names every set once, or every line; it lasts until nothing is under way."""

import pytest

from tilewright.hw.cluster.l2.layouts import Kind
from tilewright.hw.cluster.l2.params import Geometry
from tilewright.hw.cluster.l2.sweep import Sweep
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, watch_stream

GEOMETRY = Geometry(addr_width=16, data_width=32, id_width=3, sets=4, ways=2, misses=4, line_bytes=16)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_after_reset_then_flush_then_invalidate(mode):
    dut, stall = elaborated(Sweep, GEOMETRY), STALL_MODES[mode]["stall"]

    async def take(ctx, count):
        items, _ = await receive(ctx, dut.accesses, count, stall=stall)
        assert all(item.kind == Kind.EXPEL for item in items)
        return [(item.keep, item.part.line, item.way) for item in items]

    async def settle(ctx):
        assert ctx.get(dut.sweeping)
        await ctx.tick().repeat(9)
        assert ctx.get(dut.sweeping), "something is under way"
        ctx.set(dut.quiet, 1)
        await ctx.tick()

    async def run(ctx):
        assert ctx.get(dut.busy)
        assert await take(ctx, 4) == [(0, number, 0) for number in range(4)]
        ctx.set(dut.flush, 1)
        ctx.set(dut.invalidate, 1)
        await ctx.tick()
        ctx.set(dut.flush, 0)
        ctx.set(dut.invalidate, 0)
        await settle(ctx)
        assert await take(ctx, 8) == [(1, number % 4, number // 4) for number in range(8)]
        ctx.set(dut.quiet, 0)
        await settle(ctx)
        assert ctx.get(dut.busy)
        assert await take(ctx, 4) == [(0, number, 0) for number in range(4)]
        await ctx.tick().repeat(6)
        assert not ctx.get(dut.busy)
        assert not ctx.get(dut.accesses.valid)

    simulate(dut, run, background=[watch_stream(dut.accesses)])


def test_the_last_access_may_not_have_been_seen_yet():
    """``quiet`` counts from three cycles after the last access on."""
    dut, states = elaborated(Sweep, GEOMETRY), []

    async def run(ctx):
        ctx.set(dut.quiet, 1)
        await receive(ctx, dut.accesses, 4)
        for _ in range(6):
            states.append(ctx.get(dut.sweeping))
            await ctx.tick()

    simulate(dut, run)
    assert states == [1, 1, 1, 1, 0, 0]


def test_a_range():
    """Behind all else that was asked for; every line of it once, of none if its end lies before its beginning."""
    dut = elaborated(Sweep, GEOMETRY)

    async def strobe(ctx, *names):
        for value in (1, 0):
            for name in names:
                ctx.set(getattr(dut, name), value)
            if value:
                await ctx.tick()

    async def take(ctx, count):
        return [(item.kind, item.keep, item.part.line) for item in (await receive(ctx, dut.accesses, count))[0]]

    async def run(ctx):
        ctx.set(dut.quiet, 1)
        await take(ctx, 4)
        ctx.set(dut.first, 0xFFD)
        ctx.set(dut.last, 0xFFF)
        await strobe(ctx, "flush", "ranged")
        await strobe(ctx, "invalidate", "ranged")
        await strobe(ctx, "invalidate")
        await take(ctx, 4)
        for keep in (1, 0):
            assert await take(ctx, 3) == [(Kind.DISCARD, keep, line) for line in (0xFFD, 0xFFE, 0xFFF)]
        await ctx.tick().repeat(6)
        assert not ctx.get(dut.busy)
        ctx.set(dut.last, 0xFFC)
        await ctx.tick()
        await strobe(ctx, "flush", "ranged")
        assert ctx.get(dut.busy)
        for _ in range(4):
            assert not ctx.get(dut.accesses.valid)
            await ctx.tick()
        assert not ctx.get(dut.busy)

    simulate(dut, run, background=[watch_stream(dut.accesses)])
