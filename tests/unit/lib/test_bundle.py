"""Members of a component connect at once, in both directions, to a block that has them as one port."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.hw.lib.bundle import bundle
from tilewright.sim.pysim.simulate import simulate

SIGNATURE = wiring.Signature({"i": In(stream.Signature(4)), "o": Out(4), "unused": Out(1)})


class Inner(wiring.Component):
    port: Out(SIGNATURE)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.port.o.eq(self.port.i.payload + 1), self.port.i.ready.eq(1)]
        return m


class Top(wiring.Component):
    def __init__(self):
        super().__init__({**SIGNATURE.members, "other": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = Inner()
        connect(m, inner=inner.port, top=flipped(bundle(self, SIGNATURE)))
        return m


def test_members_pass_both_ways():
    dut = Top()

    async def testbench(ctx):
        ctx.set(dut.i.payload, 6)
        assert ctx.get(dut.o) == 7
        assert ctx.get(dut.i.ready)

    simulate(dut, testbench)
