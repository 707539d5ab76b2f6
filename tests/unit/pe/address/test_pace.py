"""When a register may be filled, with and without turns."""

import pytest
from amaranth.hdl import Module, Signal

from tilewright.hw.pe.address.pace import takes
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim.simulate import simulate


@pytest.mark.parametrize(("preset", "passes"), [("default", 1), ("ecp5", 0)])
def test_a_full_register_takes_something_only_without_turns(preset, passes):
    m, valid, ready, taken = Module(), Signal(), Signal(), Signal()
    m.d.comb += taken.eq(takes(PE_PRESETS[preset], valid, ready))
    m.d.sync += Signal().eq(taken)

    async def drive(ctx):
        for full, leaves, wanted in ((0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, passes)):
            ctx.set(valid, full)
            ctx.set(ready, leaves)
            assert ctx.get(taken) == wanted

    simulate(m, drive)
