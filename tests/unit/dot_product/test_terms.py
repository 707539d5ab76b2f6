"""Shapes of terms: which types are integers, and where those land in a sum."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.dot_product.terms import ACCUMULATOR_PLACES, PRODUCT_PLACES, is_integer
from tilewright.sim.pysim.simulate import elaborated, simulate


class IsInteger(wiring.Component):
    kind: In(4)
    o: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(is_integer(self.kind))
        return m


@pytest.mark.parametrize("kind", MmType)
def test_is_integer(kind):
    dut = elaborated(IsInteger)

    async def testbench(ctx):
        ctx.set(dut.kind, kind)
        assert ctx.get(dut.o) == (not kind.is_float)

    simulate(dut, testbench)


def test_places_are_those_of_significands():
    """fp16 has 11 bits, bf16 8, fp32 24, each with the hidden one."""
    assert 2 * max(11, 8) == PRODUCT_PLACES
    assert ACCUMULATOR_PLACES == 24
