"""Tables of a few bits."""

import pytest
from amaranth.hdl import Module, Signal

from tilewright.hw.lib.table import is_one_of
from tilewright.sim.pysim.simulate import simulate


@pytest.mark.parametrize("values", [(), (0,), (3, 5, 6), tuple(range(8))])
def test_true_of_the_values_alone(values):
    m = Module()
    code, result = Signal(3), Signal()
    m.d.comb += result.eq(is_one_of(code, values))

    async def check(ctx):
        for number in range(8):
            ctx.set(code, number)
            assert ctx.get(result) == (number in values)

    simulate(m, check)
