"""F3, F5, F17: every beat that is asked for has a place; requests and beats hold; reductions leave only when granted.

The bus answers only what it was asked for. That beats stay in order is the proof of the queue (tests/formal/lib).
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal

from tilewright.hw.cluster.memory.core_reads import CoreReads
from tilewright.hw.cluster.memory.layouts import REDUCTION_ID
from tilewright.sim.formal import StreamRules, prove, queue_invariants

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
        m.d.comb += [
            Assume(axi.arlen < MAX_BURST),
            Assume(~dut.granted | (dut.asked & ~dut.allowed)),
        ]

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
