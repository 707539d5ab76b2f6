"""F1: every output takes every item once, and the next one only when all have."""

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Cover, Elaboratable

from tilewright.hw.lib.fork import Fork
from tilewright.sim.formal import StreamRules, prove

N = 3


class ForkSpec(Elaboratable):
    """Counts, modulo 16, the items that each output has taken."""

    def __init__(self):
        self.dut = Fork(8, N)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        given = Signal(4)
        m.d.sync += given.eq(given + (dut.i.valid & dut.i.ready))
        m.d.comb += [Assert(dut.i.valid | (dut.sent == 0)), Assert(~dut.sent.all())]
        for index, port in enumerate(dut.o):
            m.submodules += StreamRules(port)
            taken = Signal(4, name=f"taken_{index}")
            m.d.sync += taken.eq(taken + (port.valid & port.ready))
            m.d.comb += [Assert(taken == (given + dut.sent[index])[:4]), Assert(~port.valid | (port.p == dut.i.p))]
        m.d.comb += Cover((given == 2) & (dut.sent == 0b101))
        return m

    def ports(self):
        return [self.dut.i.valid, self.dut.i.payload, *(port.ready for port in self.dut.o)]


def test_every_output_takes_every_item():
    spec = ForkSpec()
    prove(spec, spec.ports(), name="fork", depth=2, proves="F1")


@pytest.mark.long
def test_fork_spec_reaches_items_half_taken():
    spec = ForkSpec()
    prove(spec, spec.ports(), name="fork-cover", mode="cover", depth=8)
