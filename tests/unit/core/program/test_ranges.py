"""Ranges are refused as the golden model refuses them, four cycles later."""

import random

import pytest

from tilewright.golden.core.checks import check_range
from tilewright.golden.tmau.windows import Windows
from tilewright.hw.core.program.ranges import RangeCheck
from tilewright.sim.pysim.simulate import elaborated, simulate


@pytest.mark.parametrize("confine", [0, 1])
@pytest.mark.parametrize("addr_width", [16, 32, 64])
def test_ranges(addr_width, confine):
    dut, rng = elaborated(RangeCheck, addr_width), random.Random(addr_width)
    pages = 1 << addr_width - 12
    seen = set()

    async def bench(ctx):
        for _ in range(150):
            first, last = sorted(rng.choice((0, 1, 3, pages - 1, rng.randrange(pages))) for _ in range(2))
            edges = (64 * first, 64 * last + 64, 1 << addr_width - 6, 1 << 57, rng.getrandbits(58))
            line = max(0, min(rng.choice(edges) + rng.randrange(-3, 4), (1 << 58) - 1))
            lines = rng.choice((0, 1, 2, 64, rng.getrandbits(32)))
            window = Windows((4096 * first, 4096 * last)) if confine else Windows()
            ctx.set(dut.window, {"confine": confine, "first": first, "last": last})
            ctx.set(dut.line, line)
            ctx.set(dut.lines, lines)
            ctx.set(dut.go, 1)
            await ctx.tick()
            ctx.set(dut.go, 0)
            await ctx.tick().repeat(2)
            assert not ctx.get(dut.done)
            await ctx.tick()
            assert ctx.get(dut.done)
            wanted = check_range(64 * line, 64 * lines, window, addr_width) or 0
            assert ctx.get(dut.code) == wanted, (line, lines, first, last)
            seen.add(wanted)

    simulate(dut, bench)
    assert len(seen) == (3 if confine else 2)
