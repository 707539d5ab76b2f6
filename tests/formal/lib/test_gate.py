"""What passes a gate is what came, and it keeps the stream rules whenever it is closed."""

from amaranth.hdl import Assert, Cover, Elaboratable, Module, Signal

from tilewright.hw.lib.gate import StreamGate
from tilewright.sim.formal import StreamRules, prove


class GateSpec(Elaboratable):
    """Both sides in the same cycle, but for an item that is kept out."""

    def __init__(self):
        self.dut = dut = StreamGate(4)
        self.ports = [dut.i.valid, dut.i.payload, dut.o.ready, dut.closed]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        m.submodules.o_rules = StreamRules(dut.o)
        waited, passed = Signal(), Signal()
        m.d.sync += [waited.eq(dut.o.valid & ~dut.o.ready), passed.eq(passed | (dut.closed & dut.i.ready))]
        m.d.comb += [
            Assert((dut.i.valid & dut.i.ready) == (dut.o.valid & dut.o.ready)),
            Assert(~dut.o.valid | (dut.i.valid & (dut.o.payload == dut.i.payload))),
            Assert(~dut.closed | waited | ~dut.o.valid),
            Assert(dut.closed | (dut.o.valid == dut.i.valid)),
            Cover(passed & dut.closed & dut.i.valid & ~dut.o.valid & dut.o.ready),
        ]
        return m


def test_gate():
    spec = GateSpec()
    prove(spec, spec.ports, name="gate", depth=2)
    prove(spec, spec.ports, name="gate-cover", mode="cover", depth=6)
