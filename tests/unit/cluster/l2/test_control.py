"""The sweep names every set once, or every line of a range; registers show what it does."""

import pytest

from support.registers import Registers
from tilewright.hw.cluster.l2.control import L2Control, Sweep
from tilewright.hw.cluster.l2.params import Geometry, Kind, L2Params
from tilewright.spec.cluster import L2_REGISTERS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, watch_stream

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


def test_registers():
    dut, strobes = L2Control(L2Params(4096, 2, 32).geometry(32, 128, 3)), []

    async def count(ctx):
        async for _, _, *strobe in ctx.tick().sample(dut.flush, dut.invalidate, dut.ranged):
            if any(strobe):
                strobes.append(tuple(strobe))

    async def run(ctx):
        registers = Registers(ctx, dut.axil, L2_REGISTERS)
        assert await registers.read("id") == int.from_bytes(b"TWL2")
        assert await registers.read("params0") == 4096
        assert await registers.read("params1") == 2 | 32 << 8
        for name, cycles in (("hits", 5), ("misses", 4), ("evictions", 3), ("prefetches", 2), ("write_errors", 1)):
            ctx.set(getattr(dut, name), 1)
            await ctx.tick().repeat(cycles)
            ctx.set(getattr(dut, name), 0)
            assert await registers.read(name) == cycles
        ctx.set(dut.busy, 1)
        assert await registers.read("status") == 1
        for bits in (2, 4, 6, 10, 12, 1):
            await registers.write("control", bits)
        assert await registers.read("hits") == 0
        for name, address in (("first", 0x1FF), ("last", 0xFFFF_FFFF)):
            await registers.write(f"range_{name}_lo", address)
            await registers.write(f"range_{name}_hi", 1)
        assert (ctx.get(dut.first), ctx.get(dut.last)) == (3, (1 << 25) - 1)

    simulate(dut, run, background=[count])
    assert strobes == [(1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1)]
