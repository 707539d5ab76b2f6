"""F3, F5 of the read side: requests hold and say whose they are, beats under way are counted, each goes to its core.

The bus answers only what it was asked for. That a core has a place for each of its beats is the proof of its block.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import Out, flipped

from tilewright.hw.bus.axi4 import Axi4ReadSignature, forward_channels
from tilewright.hw.cluster.memory.read_side import ReadSide
from tilewright.sim.formal import prove

CORES, WORDS, MAX_BURST = 2, 8, 2
REQUEST = ("addr", "len", "size", "burst", "prot", "cache")


class SideSpec(Elaboratable):
    """Plain ports, as a member of an array cannot be an input of the proof."""

    def __init__(self):
        self.dut = ReadSide(CORES, 13, 32, max_burst=MAX_BURST, words=WORDS)
        signature = Axi4ReadSignature(13, 32, 2)
        self.managers = [signature.create(path=(f"manager{number}",)) for number in range(CORES)]
        self.granted = Signal(CORES)

    @property
    def ports(self):
        axi = self.dut.axi
        free = [
            Value.cast(getattr(port, name))
            for port in self.managers
            for name, member in port.signature.members.items()
            if member.flow == Out
        ]
        return [*free, self.granted, axi.arready, axi.rid, axi.rdata, axi.rresp, axi.rlast, axi.rvalid]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        axi, buffer = dut.axi, dut.requests
        held = [(buffer.o.valid, buffer.o.payload), (buffer.skidded, buffer.skid)]
        lengths = [*held]
        for port, manager, core in zip(dut.ports, self.managers, dut.cores, strict=True):
            forward_channels(m, flipped(port), manager)
            m.d.comb += Assume(manager.arlen < MAX_BURST)
            for stage in (core.arriving, core.leaving):
                lengths += [(stage.o.valid, stage.o.payload), (stage.skidded, stage.skid)]
        m.d.comb += [Assert(~valid | (request.len < MAX_BURST)) for valid, request in lengths]
        m.d.comb += dut.granted.eq(self.granted)

        waiting, payload = Signal(), Cat(axi.arid, *(getattr(axi, "ar" + name) for name in REQUEST))
        before = Signal(len(payload))
        m.d.sync += [waiting.eq(axi.arvalid & ~axi.arready), before.eq(payload)]
        m.d.comb += [Assert(~waiting | (axi.arvalid & (payload == before))), Assert(buffer.o.valid | ~buffer.skidded)]
        self._grants(m)

        under_way, came = Signal(range(WORDS + 1)), Signal()  # beats that the bus owes, and one that is in the register
        asked = Mux(axi.arvalid & axi.arready, axi.arlen + 1, 0)
        m.d.sync += [under_way.eq(under_way + asked - axi.rvalid), came.eq(axi.rvalid)]
        shown = sum((Mux(valid, request.len + 1, 0) for valid, request in held), 0)
        m.d.comb += [
            Assume(~axi.rvalid | (under_way != 0)),
            Assert(axi.rready),
            Assert(dut.under_way == under_way + shown + came),
            Assert(dut.under_way <= WORDS),
            # With what may just have been granted.
            Assert(~dut.room | (dut.under_way <= WORDS - MAX_BURST)),
            Cover(dut.under_way == WORDS),
            Assert(sum((core.beats.valid for core in dut.cores), 0) == came),
        ]
        self._beats(m)
        return m

    def _grants(self, m):
        dut, buffer = self.dut, self.dut.requests
        goes = [core.requests.valid & core.requests.ready for core in dut.cores]
        m.d.comb += [
            Assert((buffer.i.valid & buffer.i.ready) == Cat(goes).any()),
            Assert(~Cat(goes).all()),
        ]
        for number, (core, gone) in enumerate(zip(dut.cores, goes, strict=True)):
            request = core.requests.payload
            with m.If(gone):
                m.d.comb += Assert(buffer.i.payload.id == Cat(request.id, number == 1))
                m.d.comb += [Assert(getattr(buffer.i.payload, name) == getattr(request, name)) for name in REQUEST]

    def _beats(self, m):
        """A beat is, a cycle after the bus gave it, with the core that its ID names."""
        dut, axi = self.dut, self.dut.axi
        ident, rest = Signal(3), Signal(35)
        m.d.sync += [ident.eq(axi.rid), rest.eq(Cat(axi.rdata, axi.rresp, axi.rlast))]
        for number, core in enumerate(dut.cores):
            beat = core.beats.payload
            with m.If(core.beats.valid):
                m.d.comb += Assert(ident == Cat(beat.id, number == 1))
                m.d.comb += Assert(rest == Cat(beat.data, beat.resp, beat.last))


def test_requests_and_beats():
    spec = SideSpec()
    prove(spec, spec.ports, name="cluster-read-side", depth=2, proves="F3 F5")


@pytest.mark.long
def test_every_case_is_reached():
    spec = SideSpec()
    prove(spec, spec.ports, name="cluster-read-side-cover", mode="cover", depth=12)
