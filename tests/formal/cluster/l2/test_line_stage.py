"""F3, F5: every entry is answered once, with as many beats as it asks for, and takes as many words; each has a place.

What the words are is simulated (tests/unit/cluster/l2): memory is a Yosys memory.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.cluster.l2.line_stage import LineStage
from tilewright.hw.cluster.l2.params import Geometry, Kind
from tilewright.verify.formal import prove, queue_invariants

GEOMETRY = Geometry(addr_width=6, data_width=8, id_width=1, sets=2, ways=1, misses=2, line_bytes=4)
WORDS = 4


class LineStageSpec(Spec):
    given, made = "entries quick fills words", "reads answers forgets"

    def specify(self, m, dut):
        entry, quick, late = dut.entries.payload, dut.quick.payload, dut.late
        whole = entry.fresh | entry.evicts
        reads, writes = entry.kind == Kind.READ, entry.kind == Kind.WRITE
        m.d.comb += [
            Assume(entry.kind.as_value() <= Kind.EXPEL.value),
            Assume(entry.first <= entry.last),
            Assume(quick.first <= quick.last),
            Assume(~entry.fills | entry.fresh),
            # Entries that only fill or write back do that, and a line that memory does not bring is written whole.
            Assume(reads | writes | whole),
            Assume(~entry.fresh | entry.fills | (writes & (entry.first == 0) & (entry.last == WORDS - 1))),
            Assert(~dut.begun | dut.entries.valid),
            Assert(~(dut.begun & dut.failing) | entry.fills),
            Assert(~dut.marking | (dut.entries.valid & ~dut.begun & entry.fills)),
            Assert(~dut.quick_now | (dut.quick_read.first <= dut.quick_read.last)),
        ]
        self._places(m, late)
        self._count(m, entry, whole, reads, writes, late)

    def _places(self, m, late):
        """Nothing that comes a cycle later is lost."""
        dut = self.dut
        for queue, comes in ((dut.beats, late.read), (dut.answered, late.answer)):
            m.d.comb += [
                Assert(queue.i.valid == comes),
                Assert(~comes | queue.i.ready),
                Assert(queue.level + comes <= 4),
                *queue_invariants(queue),
                Cover((queue.level == 3) & comes),
            ]

    def _count(self, m, entry, whole, reads, writes, late):
        dut = self.dut
        first, last = entry.first, entry.last
        gone = Mux(dut.marking, WORDS, Mux(dut.begun, dut.word, 0))  # words that no step of the entry is left for
        start, stop = Mux(whole, 0, entry.first), Mux(whole, WORDS - 1, entry.last)
        passed, inside, all_inside = Signal(3), Signal(3), Signal(3)
        m.d.comb += [
            passed.eq(Mux(dut.marking, WORDS, Mux(dut.begun, dut.word - start, 0))),
            inside.eq(sum((Cat(first <= n, n <= last, gone > n).all() for n in range(WORDS)), 0)),
            all_inside.eq(entry.last - entry.first + 1),
            Assert(~dut.begun | ((dut.word > start) & (dut.word <= stop))),
        ]
        ended, by_quick = Signal(), Signal()  # a cycle ago
        m.d.sync += [ended.eq(dut.done), by_quick.eq(dut.quick_now)]
        beat = late.read & ~by_quick
        beats, expected = Signal(3), Signal(3)  # beats that the entry has given, and those of the one that ended
        words, fills = Signal(3), Signal(3)
        took, brought = dut.words.valid & dut.words.ready, dut.fills.valid & dut.fills.ready
        m.d.sync += [
            beats.eq(Mux(ended, 0, beats + beat)),
            expected.eq(Mux(reads, all_inside, 0)),
            words.eq(Mux(dut.done, 0, words + took)),
            fills.eq(Mux(dut.done, 0, fills + brought)),
        ]
        m.d.comb += [
            Assert(Mux(ended, beats + beat == expected, beats + beat == Mux(reads, inside, 0)) | ~dut.entries.valid),
            Assert(~ended | (beats + beat == expected)),
            Assert(dut.entries.valid | ended | (beats + beat == 0)),
            Assert(words == Mux(dut.entries.valid & writes, inside, 0)),
            Assert(fills == Mux(dut.entries.valid & entry.fills, passed, 0)),
            Assert(~dut.done | (words + took == Mux(writes, all_inside, 0))),
            Assert(~dut.done | (fills + brought == Mux(entry.fills, WORDS, 0))),
            Assert(dut.done == (dut.entries.valid & dut.entries.ready)),
            Cover(dut.done & reads & entry.fills & entry.evicts),
            Cover(dut.done & dut.marking),
        ]


@proved_and_covered(2, 16)
def test_every_entry_is_answered_once(mode, depth):
    prove(
        LineStageSpec(LineStage(GEOMETRY)), name=f"cluster-l2-line-stage-{mode}", mode=mode, depth=depth, proves="F3 F5"
    )
