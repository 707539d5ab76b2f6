"""The data of the second-level cache: entries are carried out in order, quick reads between their words."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect

from ...bus.axi4 import Response
from ...lib.stream import Queue
from ..memory.layouts import AnswerLayout, ReadBeatLayout, WriteBeatLayout
from .params import EntryLayout, FillWordLayout, ForgetLayout, Kind, QuickLayout, VictimLayout

__all__ = ["LineStage"]

#: Items that wait for a core at most, and that may be there when a step begins another one, which comes a cycle later.
_WAITING, _MOST = 4, 2


class LineStage(wiring.Component):
    """One word a cycle: all that an entry does to a word of its line happens in one step.

    In a step the old word is read, for a read or because it is written back, and the new one is written, which memory
    has brought or a core writes, or both byte by byte. So a miss takes no more steps than its line has words. Each byte
    has a bit that says that it was written here. A word that came with an error has a mark, and so has every word of
    its line, once the last one has come: what is written there is lost, and said to have failed. Then the line is to be
    forgotten.

    Two cycles from an entry to a beat. Quick reads go first; while an entry could go on, they take turns with entries.
    A line that a prefetch brings to a free place needs no old words, and is taken beside them.

    Parameters
    ----------
    geometry : Geometry
    """

    def __init__(self, geometry):
        self._geometry = g = geometry
        self._bytes = g.data_width // 8
        depth = g.sets * g.ways * g.words
        self.data = Memory(shape=data.ArrayLayout(9, self._bytes), depth=depth, init=[])  # bit 8: written here
        self.marks = Memory(shape=data.ArrayLayout(1, 2), depth=depth, init=[])  # failed; and its line
        self.beats = Queue(ReadBeatLayout(g.data_width, g.id_width), _WAITING)
        self.answered = Queue(AnswerLayout(g.id_width), _WAITING)
        self.begun = Signal()  # a step of the entry has been made
        self.word = Signal(g.word_log2)  # then the next word
        self.failing = Signal()  # then a word so far came with an error
        self.marking = Signal()  # all its words have been taken, and get the mark
        self.quick_now = Signal()  # a quick read is at hand
        self.quick_read = Signal(QuickLayout(g))  # whose next word is ``first``
        self.turn = Signal()  # a quick read has been taken since the last entry was done
        self.yields = Signal()  # an entry had all that it needs, but space
        late = {
            "read": 1, "id": g.id_width, "last": 1,  # a beat for a core
            # Strobe: all words of a line that memory brought have been taken.
            "filled": 1, "fill": g.data_width, "failed": 1,  # the word was brought by memory
            "written": 1, "spoilt": 1, "answer": 1,  # to a line that was here; one that failed; the burst is complete
            "evicts": 1, "line": g.line_width, "first": 1, "final": 1,
        }  # fmt: skip
        self.late = Signal(data.StructLayout({name: unsigned(width) for name, width in late.items()}))
        self.broken = Signal()  # a word of the burst so far is lost
        super().__init__(
            {
                "entries": In(stream.Signature(EntryLayout(g))),
                # ``ready`` depends on registers only.
                "quick": In(stream.Signature(QuickLayout(g))),
                # Whole lines, in the order of the entries with ``fills``.
                "fills": In(stream.Signature(FillWordLayout(g))),
                # Those of the entries that write, in their order, there when the entry is.
                "words": In(stream.Signature(WriteBeatLayout(g.data_width))),
                # Registered.
                "reads": Out(stream.Signature(ReadBeatLayout(g.data_width, g.id_width))),
                # To each burst of writes. Registered.
                "answers": Out(stream.Signature(AnswerLayout(g.id_width))),
                # Whole lines.
                "victims": Out(stream.Signature(VictimLayout(g), always_ready=True)),
                # Two more words may come after this cycle.
                "victim_room": In(1),
                "forgets": Out(stream.Signature(ForgetLayout(g))),
                # Strobe: an entry has been carried out.
                "done": Out(1),
                "filled": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name in ("data", "marks", "beats", "answered"):
            m.submodules[name] = getattr(self, name)
        connect(m, beats=self.beats.o, reads=wiring.flipped(self.reads))
        connect(m, answered=self.answered.o, answers=wiring.flipped(self.answers))
        room = Signal()  # for another beat
        m.d.comb += room.eq(self.beats.level <= _MOST)
        reads = self._read_quick(m, room)
        self._step(m, room, reads)
        self._hand_out(m)
        return m

    def _read_quick(self, m, room):
        """Takes quick reads; returns whether a word of one is read now."""
        quick, reads = self.quick_read, Signal()
        m.d.comb += [
            reads.eq(self.quick_now & room),
            self.quick.ready.eq((~self.quick_now | (reads & (quick.first == quick.last))) & ~(self.turn & self.yields)),
        ]
        with m.If(reads):
            m.d.sync += quick.first.eq(quick.first + 1)
            with m.If(quick.first == quick.last):
                m.d.sync += self.quick_now.eq(0)
        with m.If(self.quick.valid & self.quick.ready):
            m.d.sync += [self.quick_now.eq(1), quick.eq(self.quick.payload)]
        return reads

    def _step(self, m, room, reads):
        """One word of the entry at hand, if all that it needs is there."""
        g, entry, quick, late = self._geometry, self.entries.payload, self.quick_read, self.late
        whole, word, final, inside = Signal(), Signal(g.word_log2), Signal(), Signal()
        gives, takes, step = Signal(), Signal(), Signal()
        able, silent = Signal(), Signal()  # all is there, but space; no old word is wanted
        m.d.comb += [
            whole.eq(entry.fresh | entry.evicts),
            word.eq(Mux(self.begun, self.word, Mux(whole, 0, entry.first))),
            final.eq(word == Mux(whole, g.words - 1, entry.last)),
            inside.eq((word >= entry.first) & (word <= entry.last)),
            gives.eq((entry.kind == Kind.READ) & inside),
            takes.eq((entry.kind == Kind.WRITE) & inside),
            silent.eq((entry.kind == Kind.PREFETCH) & ~entry.evicts),
            able.eq(
                self.entries.valid & ~self.marking & (~entry.fills | self.fills.valid) & (~takes | self.words.valid)
            ),
            step.eq(
                able
                & (~self.quick_now | silent)
                & (~gives | room)
                & ((entry.kind != Kind.WRITE) | (self.answered.level <= _MOST))
                & (~entry.evicts | self.victim_room)
            ),
            self.fills.ready.eq(step & entry.fills),
            self.words.ready.eq(step & takes),
        ]
        failed = Signal()
        m.d.comb += failed.eq(entry.fills & self.fills.payload.failed)
        fails = failed | (self.begun & self.failing)
        ends = step & final
        self._mark(m, ends, fails)
        with m.If(step):
            m.d.sync += [self.begun.eq(~final), self.word.eq(word + 1), self.failing.eq(fails)]

        # Who could go on is known a cycle late, which does not matter.
        m.d.sync += [
            self.yields.eq(able & ~silent),
            self.turn.eq((self.turn & ~self.done) | (self.quick.valid & self.quick.ready)),
        ]

        strobes = self.words.payload.strb & takes.replicate(self._bytes)
        read, write = self.data.read_port(), self.data.write_port(granularity=1)
        brings = entry.fills.replicate(self._bytes)
        m.d.comb += [
            read.addr.eq(Mux(self.quick_now, Cat(quick.first, quick.place), Cat(word, entry.place))),
            write.addr.eq(Cat(word, entry.place)),
            write.en.eq((strobes | brings) & step.replicate(self._bytes)),
        ]
        for number in range(self._bytes):
            byte = slice(8 * number, 8 * number + 8)
            m.d.comb += write.data[number].eq(
                Cat(Mux(strobes[number], self.words.payload.data[byte], self.fills.payload.data[byte]), strobes[number])
            )
        self._note(m, read, write, step, failed)

        m.d.sync += [
            late.read.eq(Mux(self.quick_now, reads, step & gives)),
            late.id.eq(Mux(self.quick_now, quick.id, entry.id)),
            late.last.eq(
                Mux(self.quick_now, quick.end & (quick.first == quick.last), entry.end & (word == entry.last))
            ),
            late.filled.eq(~self.quick_now & entry.fills),
            late.fill.eq(self.fills.payload.data),
            late.failed.eq(failed),
            late.written.eq(step & takes & ~entry.fresh),
            late.spoilt.eq(ends & fails & (entry.kind == Kind.WRITE)),
            late.answer.eq(ends & (entry.kind == Kind.WRITE) & entry.end),
            late.evicts.eq(step & entry.evicts),
            late.line.eq(entry.victim),
            late.first.eq(word == 0),
            late.final.eq(final),
        ]

    def _mark(self, m, ends, fails):
        """The end of an entry; before it, if a word came with an error, marks for all words of its line."""
        entry = self.entries.payload
        marked = self.marking & (self.word == self._geometry.words - 1)
        m.d.comb += [
            self.forgets.payload.place.eq(entry.place),
            self.forgets.payload.born.eq(entry.number),
            self.forgets.valid.eq(marked),
            self.done.eq(Mux(self.marking, marked & self.forgets.ready, ends & ~fails)),
            self.entries.ready.eq(self.done),
            self.filled.eq(ends & entry.fills),
        ]
        with m.If(ends & fails):
            m.d.sync += self.marking.eq(1)
        with m.If(self.marking & (~marked | self.forgets.ready)):
            m.d.sync += [self.word.eq(self.word + 1), self.marking.eq(~marked)]

    def _note(self, m, read, write, step, failed):
        """The marks of a word; shows the old word and its marks to the next cycle."""
        entry = self.entries.payload
        marks, noted = self.marks.read_port(), self.marks.write_port(granularity=1)
        renews = step & entry.fresh
        m.d.comb += [
            marks.addr.eq(read.addr),
            noted.addr.eq(Mux(self.marking, Cat(self.word, entry.place), write.addr)),
            noted.en.eq(Cat(renews, renews | self.marking)),
            noted.data[0].eq(failed),
            noted.data[1].eq(self.marking),
        ]
        self.old, self.old_marks = read.data, marks.data

    def _hand_out(self, m):
        """A cycle later the old word is there."""
        late, beat, answer, victim = self.late, self.beats.i, self.answered.i, self.victims
        old, (failed, lost) = self.old, self.old_marks
        wrong, broken = Signal(), Signal()
        m.d.comb += [
            beat.valid.eq(late.read),
            beat.payload.id.eq(late.id),
            beat.payload.last.eq(late.last),
            wrong.eq(Mux(late.filled, late.failed, failed)),
            beat.payload.resp.eq(Mux(wrong, Response.SLVERR, Response.OKAY)),
            beat.payload.data.eq(Mux(late.filled, late.fill, Cat(byte[:8] for byte in old))),
            broken.eq(self.broken | (late.written & lost) | late.spoilt),
            answer.valid.eq(late.answer),
            answer.payload.id.eq(late.id),
            answer.payload.resp.eq(Mux(broken, Response.SLVERR, Response.OKAY)),
            victim.valid.eq(late.evicts),
            victim.payload.data.eq(Cat(byte[:8] for byte in old)),
            victim.payload.strb.eq(Mux(lost, 0, Cat(byte[8] for byte in old))),
            victim.payload.line.eq(late.line),
            victim.payload.first.eq(late.first),
            victim.payload.last.eq(late.final),
        ]
        m.d.sync += self.broken.eq(broken & ~late.answer)
