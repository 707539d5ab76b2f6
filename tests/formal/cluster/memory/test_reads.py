"""F3, F5, F17: every beat that is asked for has a place; requests and beats hold; reductions leave only when granted.

The bus answers only what it was asked for. That beats stay in order is the proof of the queue (tests/formal/lib).
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import Out, flipped

from tilewright.hw.bus.axi4 import Axi4ReadSignature, forward_channels
from tilewright.hw.cluster.memory.layouts import REDUCTION_ID
from tilewright.hw.cluster.memory.reads import CoreReads, ReadSide
from tilewright.verify.formal import StreamRules, prove, queue_invariants

WORDS, MAX_BURST = 8, 4
REQUEST = ("arid", "araddr", "arlen", "arsize", "arburst", "arprot", "arcache")


class ReadsSpec(Elaboratable):
    def __init__(self):
        self.dut = CoreReads(13, 32, WORDS)

    @property
    def ports(self):
        dut, axi = self.dut, self.dut.axi
        core = [getattr(axi, name) for name in (*REQUEST, "arvalid", "rready")]
        return [*core, dut.requests.ready, dut.beats.valid, dut.beats.payload, dut.pages.ready, dut.granted]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        axi, arriving, leaving, queue = dut.axi, dut.arriving, dut.leaving, dut.queue
        self._hold(m, axi.arvalid, axi.arready, Cat(getattr(axi, name) for name in REQUEST), Assume)
        self._hold(m, axi.rvalid, axi.rready, Cat(axi.rid, axi.rdata, axi.rresp, axi.rlast), Assert)
        m.submodules.requests_rules = StreamRules(dut.requests)
        m.submodules.pages_rules = StreamRules(dut.pages)
        m.d.comb += [Assume(axi.arlen < MAX_BURST), Assume(~dut.granted | (dut.asked & ~dut.allowed))]

        held = []  # requests in here, and whether they have left the first buffer
        for buffer, left in ((arriving, False), (leaving, True)):
            m.d.comb += Assert(buffer.o.valid | ~buffer.skidded)
            held += [(buffer.o.valid, buffer.o.payload, left), (buffer.skidded, buffer.skid, left)]
        for valid, request, _ in held:
            m.d.comb += Assert(~valid | (request.len < MAX_BURST))

        under_way = Signal(range(WORDS + 1))  # beats that the bus has been asked for and has not given
        sent = dut.requests.valid & dut.requests.ready
        beats = Mux(sent, dut.requests.payload.len + 1, 0)
        m.d.sync += under_way.eq(under_way + beats - dut.beats.valid)
        waiting = sum((Mux(valid, request.len + 1, 0) for valid, request, left in held if left), 0)
        m.d.comb += [
            Assume(~dut.beats.valid | (under_way != 0)),
            Assert(~dut.beats.valid | queue.i.ready),
            Assert(dut.free + queue.level + under_way + waiting == WORDS),
            *queue_invariants(queue),
            Cover(dut.beats.valid & (queue.level == WORDS - 1) & ~axi.rready),
            Cover(dut.free == 0),
        ]

        request = arriving.o
        reduces = request.valid & (request.payload.id == REDUCTION_ID)
        passes = request.valid & request.ready
        m.d.comb += [
            Assert(passes == (leaving.i.valid & leaving.i.ready)),
            Assert(~passes | (leaving.i.payload == request.payload)),
            Assert(~dut.asked | reduces),
            Assert(~dut.allowed | dut.asked),
            Assert(~(passes & reduces) | dut.allowed),
            Assert(~dut.pages.valid | (reduces & (dut.pages.payload == request.payload.addr[12:]))),
            # Who has been granted a page has space, so that it is used.
            Assert(~dut.asked | (dut.free > request.payload.len)),
            Cover(passes & reduces),
        ]
        return m

    def _hold(self, m, valid, ready, payload, check):
        waiting, held = Signal(), Signal(len(payload))
        m.d.sync += [waiting.eq(valid & ~ready), held.eq(payload)]
        with m.If(waiting):
            m.d.comb += check(valid & (payload == held))


def test_every_beat_has_a_place():
    spec = ReadsSpec()
    prove(spec, spec.ports, name="cluster-core-reads", depth=2, proves="F3 F5 F17")


@pytest.mark.long
def test_every_case_is_reached():
    spec = ReadsSpec()
    prove(spec, spec.ports, name="cluster-core-reads-cover", mode="cover", depth=16)


CORES, READ_SIDE_WORDS, READ_SIDE_MAX_BURST = 2, 8, 2
READ_SIDE_REQUEST = ("addr", "len", "size", "burst", "prot", "cache")


class SideSpec(Elaboratable):
    """Plain ports, as a member of an array cannot be an input of the proof."""

    def __init__(self):
        self.dut = ReadSide(CORES, 13, 32, max_burst=READ_SIDE_MAX_BURST, words=READ_SIDE_WORDS)
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
            m.d.comb += Assume(manager.arlen < READ_SIDE_MAX_BURST)
            for stage in (core.arriving, core.leaving):
                lengths += [(stage.o.valid, stage.o.payload), (stage.skidded, stage.skid)]
        m.d.comb += [Assert(~valid | (request.len < READ_SIDE_MAX_BURST)) for valid, request in lengths]
        m.d.comb += dut.granted.eq(self.granted)

        waiting, payload = Signal(), Cat(axi.arid, *(getattr(axi, "ar" + name) for name in READ_SIDE_REQUEST))
        before = Signal(len(payload))
        m.d.sync += [waiting.eq(axi.arvalid & ~axi.arready), before.eq(payload)]
        m.d.comb += [Assert(~waiting | (axi.arvalid & (payload == before))), Assert(buffer.o.valid | ~buffer.skidded)]
        self._grants(m)

        under_way, came = (
            Signal(range(READ_SIDE_WORDS + 1)),
            Signal(),
        )  # beats that the bus owes, and one that is in the register
        asked = Mux(axi.arvalid & axi.arready, axi.arlen + 1, 0)
        m.d.sync += [under_way.eq(under_way + asked - axi.rvalid), came.eq(axi.rvalid)]
        shown = sum((Mux(valid, request.len + 1, 0) for valid, request in held), 0)
        m.d.comb += [
            Assume(~axi.rvalid | (under_way != 0)),
            Assert(axi.rready),
            Assert(dut.under_way == under_way + shown + came),
            Assert(dut.under_way <= READ_SIDE_WORDS),
            # With what may just have been granted.
            Assert(~dut.room | (dut.under_way <= READ_SIDE_WORDS - READ_SIDE_MAX_BURST)),
            Cover(dut.under_way == READ_SIDE_WORDS),
            Assert(sum((core.beats.valid for core in dut.cores), 0) == came),
        ]
        self._beats(m)
        return m

    def _grants(self, m):
        dut, buffer = self.dut, self.dut.requests
        goes = [core.requests.valid & core.requests.ready for core in dut.cores]
        m.d.comb += [Assert((buffer.i.valid & buffer.i.ready) == Cat(goes).any()), Assert(~Cat(goes).all())]
        for number, (core, gone) in enumerate(zip(dut.cores, goes, strict=True)):
            request = core.requests.payload
            with m.If(gone):
                m.d.comb += Assert(buffer.i.payload.id == Cat(request.id, number == 1))
                m.d.comb += [
                    Assert(getattr(buffer.i.payload, name) == getattr(request, name)) for name in READ_SIDE_REQUEST
                ]

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
def test_read_side_every_case_is_reached():
    spec = SideSpec()
    prove(spec, spec.ports, name="cluster-read-side-cover", mode="cover", depth=12)
