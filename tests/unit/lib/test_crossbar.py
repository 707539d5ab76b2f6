"""The crossbar: permutations, broadcasts and random selections against a list."""

import random

import pytest

from tilewright.hw.lib.crossbar import LaneCrossbar
from tilewright.sim.pysim.simulate import simulate


@pytest.mark.parametrize(("width", "lanes"), [(8, 8), (128, 8), (5, 2), (3, 16)])
def test_any_selection(width, lanes):
    dut = LaneCrossbar(width, lanes)
    rng = random.Random(13)
    selections = [list(range(lanes)), list(reversed(range(lanes))), *([lane] * lanes for lane in range(lanes))]
    selections += [rng.choices(range(lanes), k=lanes) for _ in range(30)]

    async def testbench(ctx):
        for selection in selections:
            lanes_in = [rng.getrandbits(width) for _ in range(lanes)]
            ctx.set(dut.i, lanes_in)
            ctx.set(dut.sel, selection)
            assert [ctx.get(dut.o[lane]) for lane in range(lanes)] == [lanes_in[source] for source in selection]
            await ctx.tick()

    simulate(dut, testbench)


@pytest.mark.parametrize("lanes", [0, 1, 6, "8"])
def test_refused_lanes(lanes):
    with pytest.raises(ValueError, match=rf"^lanes must be a power of two and at least 2, not {lanes!r}$"):
        LaneCrossbar(8, lanes)
