"""Every dividend and divisor."""

from tilewright.hw.lib.divide import CeilDivider
from tilewright.sim.pysim.simulate import simulate


def test_every_quotient():
    dut = CeilDivider()

    async def check(ctx):
        for t in range(1, 9):
            ctx.set(dut.t, t - 1)
            for n in range(257):
                ctx.set(dut.more, n + t - 1)
                assert ctx.get(dut.o) == -(-n // t), f"ceil({n} / {t})"

    simulate(dut, check)
