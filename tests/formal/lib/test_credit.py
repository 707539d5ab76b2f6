"""F5: the credit counter equals an independent count and stays between zero and its limit."""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Signal

from tilewright.hw.lib.credit import CreditCounter
from tilewright.sim.formal import prove


class CreditSpec(Elaboratable):
    def __init__(self, limit):
        self.limit = limit
        self.dut = CreditCounter(limit)

    @property
    def ports(self):
        return [self.dut.take, self.dut.give]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        # Wide enough never to wrap where the counter under test would.
        begun, ended = Signal(16), Signal(16)
        m.d.sync += [begun.eq(begun + dut.take), ended.eq(ended + dut.give)]
        m.d.comb += [
            Assume(~dut.take | dut.available),
            Assume(~dut.give | (dut.in_flight != 0)),
            Assert(dut.in_flight == (begun - ended)[:16]),
            Assert(dut.in_flight <= self.limit),
            Assert(dut.available == (dut.in_flight < self.limit)),
            Cover(dut.in_flight == self.limit),
        ]
        return m


@pytest.mark.parametrize("limit", [1, 4, 5])
def test_count(limit):
    spec = CreditSpec(limit)
    prove(spec, spec.ports, name=f"lib-credit-{limit}", depth=1)
    spec = CreditSpec(limit)
    prove(spec, spec.ports, name=f"lib-credit-{limit}-cover", mode="cover", depth=limit + 3)
