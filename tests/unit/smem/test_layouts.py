"""The chunk permutation: hardware and golden model move every chunk of every line to the same place."""

import pytest
from amaranth.hdl import Module, Signal

from tilewright.golden.smem import swizzle
from tilewright.hw.smem.layouts import chunk_flips
from tilewright.spec import Swizzle
from tilewright.verify.pysim.simulate import simulate


@pytest.mark.parametrize("mode", Swizzle)
def test_it_moves_chunks_as_golden_says(mode):
    m = Module()
    row, flips = Signal(8), Signal(3)
    m.d.comb += flips.eq(chunk_flips(Signal(2, init=mode), row))

    async def testbench(ctx):
        for line in range(16):
            ctx.set(row, line)
            places = [chunk ^ ctx.get(flips) for chunk in range(8)]
            assert places == [swizzle(128 * line + 16 * chunk, mode) // 16 % 8 for chunk in range(8)]

    simulate(m, testbench)
