"""One of a few values: by every code that there is."""

import pytest
from amaranth import Module, Signal

from tilewright.hw.lib.choice import chosen, masked
from tilewright.sim.pysim.simulate import simulate


@pytest.mark.parametrize("codes", [(5,), (0, 1), (0, 4), (0, 3, 4), (0, 2, 3, 4, 6), range(8)])
def test_every_code(codes):
    m = Module()
    code, o = Signal(3), Signal(8)
    m.d.comb += o.eq(chosen(code, {number: Signal(8, init=10 + number) for number in codes}))

    async def testbench(ctx):
        for number in codes:
            ctx.set(code, number)
            assert ctx.get(o) == 10 + number

    simulate(m, testbench)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_masked(count):
    m = Module()
    code, o = Signal(3), Signal(8)
    m.d.comb += o.eq(masked(m, code, [Signal(8, init=10 + number) for number in range(count)], "on"))

    async def testbench(ctx):
        for number in range(count):
            ctx.set(code, number)
            assert ctx.get(o) == 10 + number

    simulate(m, testbench)


def test_codes_of_one_value_are_not_told_apart():
    code, one, other = Signal(2), Signal(8), Signal(8)
    assert chosen(code, {0: one, 1: one, 3: one}) is one
    assert chosen(code, {0: one, 1: other}) is not one
