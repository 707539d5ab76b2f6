"""F3 of the read mux: requests hold and take turns, none is passed twice, and beats go where their ID says."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal

from tilewright.hw.bus.read_mux import Axi4ReadMux
from tilewright.sim.formal import prove

REQUEST = ("arid", "araddr", "arlen", "arsize", "arburst", "arprot", "arcache")
BEAT = ("rdata", "rresp", "rlast")


class MuxSpec(Elaboratable):
    def __init__(self):
        self.dut = Axi4ReadMux(12, 32)

    @property
    def ports(self):
        dut = self.dut
        managers = [
            getattr(port, name) for port in (dut.movers, dut.reducer) for name in (*REQUEST, "arvalid", "rready")
        ]
        return [*managers, *(getattr(dut.axi, name) for name in ("arready", "rid", *BEAT, "rvalid"))]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        axi, managers = dut.axi, (dut.movers, dut.reducer)
        m.d.comb += Assume(dut.reducer.arid == 2)
        for check, port in ((Assume, dut.movers), (Assume, dut.reducer), (Assert, axi)):
            self._hold(m, port, check)

        wins = [port.arvalid & port.arready for port in managers]
        m.d.comb += [
            Assert(axi.arvalid == (dut.movers.arvalid | dut.reducer.arvalid)),
            Assert((axi.arvalid & axi.arready) == (wins[0] ^ wins[1])),
            Assert(~(wins[0] & wins[1])),
        ]
        for port, win in zip(managers, wins, strict=True):
            with m.If(win):
                m.d.comb += [Assert(getattr(axi, name) == getattr(port, name)) for name in REQUEST]
        m.d.comb += Assert(~axi.arvalid | (axi.arid != 3))
        self._fairness(m, wins)
        self._beats(m)
        return m

    def _hold(self, m, port, check):
        payload = Cat(getattr(port, name) for name in REQUEST)
        waiting, held = Signal(), Signal(len(payload))
        m.d.sync += [waiting.eq(port.arvalid & ~port.arready), held.eq(payload)]
        with m.If(waiting):
            m.d.comb += check(port.arvalid & (payload == held))

    def _fairness(self, m, wins):
        """While a request waits, at most one of the other manager is accepted."""
        dut = self.dut
        for port, other in ((dut.movers, wins[1]), (dut.reducer, wins[0])):
            passed = Signal(2)
            waits = port.arvalid & ~port.arready
            m.d.sync += passed.eq(Mux(waits, passed + other, 0))
            m.d.comb += [Assert(passed <= 1), Cover(passed == 1)]
            # Who has been passed comes first.
            m.d.comb += Assert((passed == 0) | ((dut.arbiter.mask == 0b10) == (port is dut.reducer)))

    def _beats(self, m):
        dut, axi = self.dut, self.dut.axi
        for port, mine in ((dut.movers, ~axi.rid[1]), (dut.reducer, axi.rid[1])):
            m.d.comb += Assert(port.rvalid == (axi.rvalid & mine))
            with m.If(port.rvalid):
                m.d.comb += [Assert(getattr(port, name) == getattr(axi, name)) for name in BEAT]
                m.d.comb += Assert(port.rready == axi.rready)
                m.d.comb += Assert(port.rid == (axi.rid[0] if port is dut.movers else axi.rid))


def test_rules():
    spec = MuxSpec()
    prove(spec, spec.ports, name="bus-read-mux", depth=2, proves="F3")


@pytest.mark.long
def test_every_case_is_reached():
    spec = MuxSpec()
    prove(spec, spec.ports, name="bus-read-mux-cover", mode="cover", depth=6)
