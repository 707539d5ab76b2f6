"""F3, F6: a burst leaves when all its words are here, and every answer has a place.

The bus takes words of bursts that it has taken, and answers no others. That words and answers stay in order is the
proof of the queues (tests/formal/lib).
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Signal

from support.formal import Spec, channel_rules, proved_and_covered
from tilewright.hw.cluster.memory.writes import CoreWrites, WriteSide
from tilewright.verify.formal import prove, queue_invariants

WORDS, BURSTS = 4, 2


class WritesSpec(Spec):
    made = "requests words"

    def specify(self, m, dut):
        axi = dut.axi
        m.submodules += [channel_rules(axi, "aw", assume=True), channel_rules(axi, "w", assume=True)]
        m.submodules += channel_rules(axi, "b")
        arriving, leaving = dut.arriving, dut.leaving
        m.d.comb += [Assert(buffer.o.valid | ~buffer.skidded) for buffer in (arriving, leaving)]
        passes = arriving.o.valid & arriving.o.ready
        m.d.comb += Assert(passes == (leaving.i.valid & leaving.i.ready))
        m.d.comb += Assert(~passes | (leaving.i.payload == arriving.o.payload))
        self._words(m)
        self._answers(m)

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


@proved_and_covered(2, 16)
def test_bursts_leave_whole(mode, depth):
    prove(
        WritesSpec(CoreWrites(12, 32, WORDS, BURSTS)),
        name=f"cluster-core-writes-{mode}",
        mode=mode,
        depth=depth,
        proves="F3 F6",
    )


CORES = 2
WRITE_SIDE_REQUEST = ("addr", "len", "size", "burst", "prot", "cache")


class SideSpec(Spec):
    def specify(self, m, dut):
        m.submodules += [channel_rules(dut.axi, "aw"), channel_rules(dut.axi, "w")]
        m.d.comb += Assert(dut.requests.o.valid | ~dut.requests.skidded)
        for queue in (dut.turns, dut.words):
            m.d.comb += queue_invariants(queue)
        self._grants(m)
        self._words(m)
        self._answers(m)

    def _grants(self, m):
        """A burst that is granted goes to AW and to the turns, in one cycle."""
        dut, buffer, turns = self.dut, self.dut.requests, self.dut.turns
        goes = [core.requests.valid & core.requests.ready for core in dut.cores]
        m.d.comb += [
            Assert((buffer.i.valid & buffer.i.ready) == Cat(goes).any()),
            Assert((turns.i.valid & turns.i.ready) == Cat(goes).any()),
            Assert(~Cat(goes).all()),
        ]
        for number, (core, gone) in enumerate(zip(dut.cores, goes, strict=True)):
            request = core.requests.payload
            with m.If(gone):
                m.d.comb += Assert(turns.i.payload == 1 << number)
                m.d.comb += Assert(buffer.i.payload.id == Cat(request.id, number == 1))
                m.d.comb += [
                    Assert(getattr(buffer.i.payload, name) == getattr(request, name)) for name in WRITE_SIDE_REQUEST
                ]

    def _words(self, m):
        """A word is that of the core whose turn it is, which changes behind a last word only."""
        dut, turn, words = self.dut, self.dut.turns.o, self.dut.words.i
        for place in range(dut.turns.depth):
            probe = dut.turns.memory.read_port(domain="comb")
            m.d.comb += probe.addr.eq(dut.turns.head + place)
            with m.If(place < dut.turns.level):
                m.d.comb += Assert((probe.data == 1) | (probe.data == 2))
        taken = [core.words.valid & core.words.ready for core in dut.cores]
        m.d.comb += Assert((words.valid & words.ready) == Cat(taken).any())
        for number, (core, took) in enumerate(zip(dut.cores, taken, strict=True)):
            with m.If(took):
                m.d.comb += Assert(turn.valid & (turn.payload == 1 << number) & (words.payload == core.words.payload))
                m.d.comb += Assert((turn.valid & turn.ready) == core.words.payload.last)
        inside, whose = Signal(), Signal(CORES)  # a burst has begun and has not ended
        with m.If(Cat(taken).any()):
            m.d.sync += [inside.eq(~words.payload.last), whose.eq(Cat(taken))]
        with m.If(inside):
            m.d.comb += [
                Assert(turn.valid & (turn.payload == whose)),
                Assert(Cat(taken) & ~whose == 0),
                Cover(Cat(taken).any()),
            ]

    def _answers(self, m):
        """An answer is, a cycle after the bus gave it, with the core that its ID names."""
        dut, axi = self.dut, self.dut.axi
        came, ident, response = Signal(), Signal(3), Signal(2)
        m.d.sync += [came.eq(axi.bvalid), ident.eq(axi.bid), response.eq(axi.bresp)]
        m.d.comb += [Assert(axi.bready), Assert(sum((core.answers.valid for core in dut.cores), 0) == came)]
        for number, core in enumerate(dut.cores):
            m.d.comb += Assert(dut.answered[number] == core.answers.valid)
            with m.If(core.answers.valid):
                m.d.comb += Assert(ident == Cat(core.answers.payload.id, number == 1))
                m.d.comb += Assert(response == core.answers.payload.resp.as_value())


@proved_and_covered(2, 12)
def test_bursts_are_not_mixed(mode, depth):
    prove(
        SideSpec(WriteSide(CORES, 12, 32, max_burst=2, words=4, bursts=2)),
        name=f"cluster-write-side-{mode}",
        mode=mode,
        depth=depth,
        proves="F3 F6",
    )
