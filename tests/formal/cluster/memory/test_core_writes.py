"""F3, F6: a burst leaves when all its words are here, and every answer has a place.

The bus takes words of bursts that it has taken, and answers no others. That words and answers stay in order is the
proof of the queues (tests/formal/lib).
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Signal

from tilewright.hw.cluster.memory.core_writes import CoreWrites
from tilewright.sim.formal import StreamRules, prove, queue_invariants

WORDS, BURSTS = 4, 2
REQUEST = ("awid", "awaddr", "awlen", "awsize", "awburst", "awprot", "awcache")
WORD = ("wdata", "wstrb", "wlast")


class WritesSpec(Elaboratable):
    def __init__(self):
        self.dut = CoreWrites(12, 32, WORDS, BURSTS)

    @property
    def ports(self):
        dut, axi = self.dut, self.dut.axi
        core = [getattr(axi, name) for name in (*REQUEST, "awvalid", *WORD, "wvalid", "bready")]
        return [*core, dut.requests.ready, dut.words.ready, dut.answers.valid, dut.answers.payload]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        axi = dut.axi
        for name, payload in (("aw", REQUEST), ("w", WORD)):
            valid, ready = getattr(axi, name + "valid"), getattr(axi, name + "ready")
            self._hold(m, valid, ready, Cat(getattr(axi, member) for member in payload), Assume)
        self._hold(m, axi.bvalid, axi.bready, Cat(axi.bid, axi.bresp), Assert)
        m.submodules.requests_rules = StreamRules(dut.requests)
        m.submodules.words_rules = StreamRules(dut.words)
        arriving, leaving = dut.arriving, dut.leaving
        m.d.comb += [Assert(buffer.o.valid | ~buffer.skidded) for buffer in (arriving, leaving)]
        passes = arriving.o.valid & arriving.o.ready
        m.d.comb += Assert(passes == (leaving.i.valid & leaving.i.ready))
        m.d.comb += Assert(~passes | (leaving.i.payload == arriving.o.payload))
        self._words(m)
        self._answers(m)
        return m

    def _words(self, m):
        """The ends of bursts in the queue are those of bursts that may leave, and of those that have left."""
        dut, queue, leaving = self.dut, self.dut.queue, self.dut.leaving
        granted = Signal(range(WORDS + 1))  # bursts that the bus has taken, without their last word
        sent = dut.requests.valid & dut.requests.ready
        ended = dut.words.valid & dut.words.ready & dut.words.payload.last
        m.d.sync += granted.eq(granted + sent - ended)
        ends = (queue.level != 0) & queue.o.payload.last
        for place in range(WORDS - 1):
            probe = queue.memory.read_port(domain="comb")
            m.d.comb += probe.addr.eq(queue.head + place)
            ends += (queue.level > place + 1) & probe.data.last
            if place == 0:
                m.d.comb += Assert((queue.level < 2) | (probe.data == queue.read.data))
        m.d.comb += [
            Assume(~dut.words.ready | (granted != 0)),
            Assert(ends == dut.whole + granted + leaving.o.valid + leaving.skidded),
            *queue_invariants(queue),
            # All words of a burst that has left are here.
            Assert((granted == 0) | dut.words.valid),
            Cover((granted == 1) & (queue.level == WORDS)),
        ]

    def _answers(self, m):
        dut, answered, leaving = self.dut, self.dut.answered, self.dut.leaving
        under_way = Signal(range(BURSTS + 1))  # bursts that the bus has taken and not answered
        m.d.sync += under_way.eq(under_way + (dut.requests.valid & dut.requests.ready) - dut.answers.valid)
        m.d.comb += [
            Assume(~dut.answers.valid | (under_way != 0)),
            Assert(~dut.answers.valid | answered.i.ready),
            Assert(dut.free + answered.level + under_way + leaving.o.valid + leaving.skidded == BURSTS),
            *queue_invariants(answered),
            Cover(dut.free == 0),
        ]

    def _hold(self, m, valid, ready, payload, check):
        waiting, held = Signal(), Signal(len(payload))
        m.d.sync += [waiting.eq(valid & ~ready), held.eq(payload)]
        with m.If(waiting):
            m.d.comb += check(valid & (payload == held))


def test_bursts_leave_whole():
    spec = WritesSpec()
    prove(spec, spec.ports, name="cluster-core-writes", depth=2, proves="F3 F6")


@pytest.mark.long
def test_every_case_is_reached():
    spec = WritesSpec()
    prove(spec, spec.ports, name="cluster-core-writes-cover", mode="cover", depth=16)
