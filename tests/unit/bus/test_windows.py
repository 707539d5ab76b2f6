"""Windows in whole units of memory."""

import pytest
from amaranth.hdl import Const, Module, Value

from tilewright.hw.bus.windows import window_units
from tilewright.sim.pysim.simulate import simulate


@pytest.mark.parametrize(
    ("base", "limit", "units"),
    [
        (0, 0xFFFF, (0, 15)),
        (0x1FFF, 0x3000, (1, 3)),
        (0x2000, 0x1_0000, (2, 15)),
        (0x1_0000, 0x2_0000, (15, 0)),
        (0x1_0000, 0x2000, (15, 0)),
    ],
)
def test_units_of_a_memory(base, limit, units):
    """Low bits do not matter; a window goes no further than the memory, and holds nothing behind it."""
    first, last = (Value.cast(unit) for unit in window_units(Const(base, 64), Const(limit, 64), 12, 16))

    async def bench(ctx):
        assert (ctx.get(first), ctx.get(last)) == units

    simulate(Module(), bench)
