"""F3, F5, F17: every beat that is asked for has a place; requests and beats hold; reductions leave only when granted.

The bus answers only what it was asked for. That beats stay in order is the proof of the queue (tests/formal/lib).
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal

from support.formal import Spec, channel_rules, proved_and_covered
from tilewright.hw.cluster.memory.layouts import REDUCTION_ID
from tilewright.hw.cluster.memory.reads import CoreReads, ReadSide
from tilewright.verify.formal import prove, queue_invariants

WORDS, MAX_BURST = 8, 4


class ReadsSpec(Spec):
    made = "requests pages"

    def specify(self, m, dut):
        axi, arriving, leaving, queue = dut.axi, dut.arriving, dut.leaving, dut.queue
        m.submodules += [channel_rules(axi, "ar", assume=True), channel_rules(axi, "r")]
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


@proved_and_covered(2, 16)
def test_every_beat_has_a_place(mode, depth):
    prove(
        ReadsSpec(CoreReads(13, 32, WORDS)),
        name=f"cluster-core-reads-{mode}",
        mode=mode,
        depth=depth,
        proves="F3 F5 F17",
    )


CORES, READ_SIDE_WORDS, READ_SIDE_MAX_BURST = 2, 8, 2
READ_SIDE_REQUEST = ("addr", "len", "size", "burst", "prot", "cache")


class SideSpec(Spec):
    def specify(self, m, dut):
        axi, buffer = dut.axi, dut.requests
        held = [(buffer.o.valid, buffer.o.payload), (buffer.skidded, buffer.skid)]
        lengths = [*held]
        for port, core in zip(dut.ports, dut.cores, strict=True):
            m.d.comb += Assume(port.arlen < READ_SIDE_MAX_BURST)
            for stage in (core.arriving, core.leaving):
                lengths += [(stage.o.valid, stage.o.payload), (stage.skidded, stage.skid)]
        m.d.comb += [Assert(~valid | (request.len < READ_SIDE_MAX_BURST)) for valid, request in lengths]
        m.submodules += channel_rules(axi, "ar")
        m.d.comb += Assert(buffer.o.valid | ~buffer.skidded)
        self._grants(m)

        under_way, came = Signal(range(READ_SIDE_WORDS + 1)), Signal()  # beats that the bus owes; one in the register
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


@proved_and_covered(2, 12)
def test_requests_and_beats(mode, depth):
    prove(
        SideSpec(ReadSide(CORES, 13, 32, max_burst=READ_SIDE_MAX_BURST, words=READ_SIDE_WORDS)),
        name=f"cluster-read-side-{mode}",
        mode=mode,
        depth=depth,
        proves="F3 F5",
    )
