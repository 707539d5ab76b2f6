"""Read, modify, write: reductions in global memory, where the writes of all movers meet."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import Reduction

from ..bus.axi4 import Axi4ReadSignature
from ..bus.bursts import BeatSequencer, WriteBurstLayout, WritesSignature, WriteWordLayout
from ..lib.stream import SkidBuffer
from .integer import OperationLayout, decode_operation
from .lane import Combiner
from .old_words import OldWordReader

__all__ = ["Reducer"]

#: Bursts that may be ahead of their words.
_AHEAD = 16


class Reducer(wiring.Component):
    """Combines the words of reducing bursts with what memory holds; other bursts pass.

    The old words of a reducing burst are requested when nothing under way can change them any more: all plain bursts
    before have their responses, and so have all reducing bursts before that share a word with it. The burst goes on
    when its old words have come, and its words are made when their sources come. So no write of the bus waits for its
    own read, and no read for a write. If an old word came with an error, the burst goes on as refused, and its words
    are swallowed.

    Bursts and words come through two registers each, whatever they wait for then: ``ready`` of both is a register. A
    plain burst goes on when all reducing bursts before have gone on. Its words pass combinationally then, one a cycle.
    The words of reducing bursts pass one a cycle too; each takes the latency of a lane.

    Bursts must not wait for the words of earlier bursts: up to ``words`` old words are read ahead.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word: 16, 32 or 64.
    max_burst, words : int
        As of :class:`OldWordReader`.
    floats : bool
        As of :class:`ReduceLane`.
    processors : int
        As of ``WriteBurstLayout``.

    Members
    -------
    i : In(WritesSignature)
    o : Out(WritesSignature)
        The same bursts in the same order; none is reducing.
    axi : Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 2))
        Reads old words, with ID 2.
    """

    def __init__(self, addr_width, bus_bytes, max_burst, words, floats=True, processors=1):
        if bus_bytes not in (16, 32, 64):
            raise ValueError(f"bus_bytes must be 16, 32 or 64, not {bus_bytes!r}")
        self.reader = OldWordReader(addr_width, bus_bytes, max_burst, words, processors)
        self.arriving = SkidBuffer(WriteBurstLayout(addr_width, bus_bytes, processors))
        self.sources = SkidBuffer(WriteWordLayout(bus_bytes))
        self.plain = Signal(11)  # plain bursts under way: more than any write port has in flight
        # Decoded in front of the queue: what hangs on an operation is half a lane, and its chains of carries.
        operation = {"reduction": unsigned(4), "element": unsigned(4), "operation": OperationLayout()}
        tag = {"reduces": unsigned(1), **operation, "failed": unsigned(1)}
        self.sequencer = BeatSequencer(data.StructLayout(tag), _AHEAD)
        self._floats = floats
        self.combiner = Combiner(bus_bytes, floats)
        super().__init__(
            {
                "i": In(WritesSignature(addr_width, bus_bytes, processors)),
                "o": Out(WritesSignature(addr_width, bus_bytes, processors)),
                "axi": Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 2)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arriving = self.arriving
        m.submodules.sources = self.sources
        m.submodules.reader = reader = self.reader
        m.submodules.sequencer = self.sequencer
        m.submodules.combiner = self.combiner
        connect(m, reader=reader.axi, axi=flipped(self.axi))
        connect(m, i=flipped(self.i.bursts), arriving=self.arriving.i)
        connect(m, i=flipped(self.i.words), sources=self.sources.i)
        self._pass_bursts(m)
        self._pass_words(m)
        connect(m, o=flipped(self.o.responses), i=flipped(self.i.responses))
        return m

    def _pass_bursts(self, m):
        """Reducing bursts take the way through the reader, and go on before any that comes behind them."""
        burst, reader, noted = self.arriving.o, self.reader, self.sequencer.bursts
        reducing, may_read, may_pass = Signal(), Signal(), Signal()
        m.d.comb += [
            reducing.eq((burst.payload.reduction != Reduction.NONE) & ~burst.payload.empty),
            may_read.eq(reducing & (self.plain == 0)),
            may_pass.eq(~reducing & ~reader.waiting & ~self.plain.all()),
            reader.i.payload.eq(burst.payload),
            reader.i.valid.eq(burst.valid & may_read),
        ]

        chosen, valid, go = Signal.like(burst.payload), Signal(), Signal()
        m.d.comb += [
            chosen.eq(Mux(reader.waiting, reader.o.payload, burst.payload)),
            valid.eq(Mux(reader.waiting, reader.o.valid, burst.valid & may_pass)),
            go.eq(noted.ready & self.o.bursts.ready),
            self.o.bursts.valid.eq(valid & noted.ready),
            self.o.bursts.payload.eq(chosen),
            self.o.bursts.payload.reduction.eq(Reduction.NONE),
            reader.o.ready.eq(go),
            burst.ready.eq((may_read & reader.i.ready) | (may_pass & go)),
            # The words of a burst that the reader refused come all the same.
            noted.valid.eq(valid & self.o.bursts.ready & (reader.waiting | ~chosen.empty)),
            noted.payload.beats_minus_one.eq(chosen.beats_minus_one),
            noted.payload.tag.reduces.eq(chosen.reduction != Reduction.NONE),
            noted.payload.tag.reduction.eq(chosen.reduction),
            noted.payload.tag.element.eq(chosen.element),
            noted.payload.tag.operation.eq(
                decode_operation(m, chosen.reduction, chosen.element, self._floats, "operation")
            ),
            noted.payload.tag.failed.eq(chosen.refused),
        ]

        passed, responded = burst.valid & may_pass & go, self.o.responses.valid & self.o.responses.ready
        # While reducing bursts are under way, the plain ones are behind them.
        m.d.comb += reader.written.eq(responded & ~reader.empty)
        ended = responded & reader.empty
        # Both come late: so they enable the register, and are not added.
        with m.If(passed ^ ended):
            m.d.sync += self.plain.eq(Mux(passed, self.plain + 1, self.plain - 1))

    def _pass_words(self, m):
        """Each word is the next one of the oldest burst that has gone on."""
        word, due, old, combiner = self.sources.o, self.sequencer.beats, self.reader.words, self.combiner
        tag, operands = due.payload.tag, combiner.i.payload
        m.d.comb += [
            operands.old.eq(old.payload),
            operands.word.eq(word.payload),
            *(operands[name].eq(tag[name]) for name in ("reduction", "element", "operation")),
            operands.swallow.eq(tag.failed),
            combiner.o.ready.eq(self.o.words.ready),
            due.ready.eq(word.valid & word.ready),
        ]
        with m.If(due.valid & tag.reduces):
            m.d.comb += [
                combiner.i.valid.eq(word.valid & old.valid),
                old.ready.eq(word.valid & combiner.i.ready),
                word.ready.eq(old.valid & combiner.i.ready),
            ]
        # What is not valid may be anything: the choice waits for nothing else.
        m.d.comb += self.o.words.payload.eq(Mux(combiner.busy, combiner.o.payload, word.payload))
        with m.If(combiner.busy):
            m.d.comb += self.o.words.valid.eq(combiner.o.valid)
        with m.Elif(due.valid & ~tag.reduces):
            m.d.comb += [
                self.o.words.valid.eq(word.valid),
                word.ready.eq(self.o.words.ready),
            ]
