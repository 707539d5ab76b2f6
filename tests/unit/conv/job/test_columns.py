"""Kernel columns by merged ones: all of them."""

from tilewright.hw.conv.job.columns import ColumnDivider
from tilewright.sim.pysim.simulate import simulate


def test_quotients():
    """Every divisor, with dividends around its multiples; as many cycles for each."""
    dut = ColumnDivider()

    async def bench(ctx):
        for merge in range(1, 257):
            edges = {1, 2, merge - 1, merge, merge + 1, 2 * merge, 2 * merge + 1, 255, 256}
            for columns in sorted(count for count in edges if 1 <= count <= 256):
                ctx.set(dut.columns, columns - 1)
                ctx.set(dut.merge, merge - 1)
                ctx.set(dut.start, 1)
                await ctx.tick()
                ctx.set(dut.start, 0)
                for _ in range(8):
                    assert ctx.get(dut.busy)
                    await ctx.tick()
                steps = -(-columns // merge)
                assert not ctx.get(dut.busy)
                assert (ctx.get(dut.last), ctx.get(dut.rest)) == (steps - 1, columns - (steps - 1) * merge - 1)

    simulate(dut, bench, deadline=25_000)
