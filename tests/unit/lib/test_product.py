"""Every product of some widths."""

import pytest
from amaranth import Const, Module, Signal

from tilewright.hw.lib.product import digit_product
from tilewright.sim.pysim.simulate import simulate


@pytest.mark.parametrize("widths", [(6, 6), (1, 2), (3, 8), (7, 4)])
def test_every_product(widths):
    m = Module()
    a, b = (Signal(width) for width in widths)
    product = digit_product(m, a, b)
    assert len(product) == sum(widths)

    async def testbench(ctx):
        for first in range(1 << len(a)):
            ctx.set(a, first)
            for second in range(1 << len(b)):
                ctx.set(b, second)
                assert ctx.get(product) == first * second

    simulate(m, testbench)


def test_widths():
    with pytest.raises(ValueError, match="b must have an even number of bits, not 5"):
        digit_product(Module(), Const(0, 6), Const(0, 5))
