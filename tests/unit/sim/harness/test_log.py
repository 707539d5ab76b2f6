"""What a log keeps, and what it counts when it is full."""

from amaranth.hdl import unsigned

from tilewright.sim.harness.log import Log
from tilewright.sim.pysim.simulate import simulate


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
