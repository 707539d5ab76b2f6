"""Read, modify, write: reductions in global memory."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import Reduction

from ..bus.axi4 import Axi4ReadSignature
from ..bus.bursts import BURSTS_AHEAD, BeatSequencer, WriteBurstLayout, WritesSignature, WriteWordLayout
from ..lib.stream import SkidBuffer
from .integer import OperationLayout, decode_operation
from .lane import Combiner
from .old_words import OldWordReader

__all__ = ["Reducer"]


class Reducer(wiring.Component):
    """Combines the words of reducing bursts with the contents of memory; other bursts pass.

    The old words of a reducing burst are requested when no earlier burst can change them any more: all earlier plain
    bursts have their responses, and so have all earlier reducing bursts that share a word with it. The burst goes on
    when its old words have come, and its words are made when their sources come. So no write on the bus waits for its
    own read, and no read for a write. If an old word comes with an error, the burst goes on as refused, and its words
    are dropped.

    Bursts and words come through two registers each: ``ready`` of both is a register. A plain burst goes on when all
    earlier reducing bursts have; its words then pass combinationally, one a cycle. The words of reducing bursts pass
    one a cycle too, with the latency of a lane.

    Bursts must not wait for the words of earlier bursts: up to ``words`` old words are read ahead.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word: 16, 32 or 64.
    max_burst, words : int
        See :class:`OldWordReader`.
    floats : bool
        See :class:`ReduceLane`.
    processors : int
        See ``WriteBurstLayout``.
    """

    def __init__(self, addr_width, bus_bytes, max_burst, words, floats=True, processors=1):
        if bus_bytes not in (16, 32, 64):
            raise ValueError(f"bus_bytes must be 16, 32 or 64, not {bus_bytes!r}")
        self.reader = OldWordReader(addr_width, bus_bytes, max_burst, words, processors)
        self.arriving = SkidBuffer(WriteBurstLayout(addr_width, bus_bytes, processors))
        self.sources = SkidBuffer(WriteWordLayout(bus_bytes))
        self.plain = Signal(11)  # plain bursts without a response: wide enough for any write port
        # Decoded before the queue, because half a lane and its carry chains depend on the operation.
        operation = {"reduction": unsigned(4), "element": unsigned(4), "operation": OperationLayout()}
        tag = {"reduces": unsigned(1), **operation, "failed": unsigned(1)}
        self.sequencer = BeatSequencer(data.StructLayout(tag), BURSTS_AHEAD)
        self._floats = floats
        self.combiner = Combiner(bus_bytes, floats)
        super().__init__(
            {
                "i": In(WritesSignature(addr_width, bus_bytes, processors)),
                "o": Out(WritesSignature(addr_width, bus_bytes, processors)),  # the same bursts, none of them reducing
                "axi": Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 2)),  # reads of old words, with ID 2
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
        """Reducing bursts pass through the reader, before all later bursts."""
        burst, reader, counted = self.arriving.o, self.reader, self.sequencer.bursts
        reducing, may_read, may_pass = Signal(), Signal(), Signal()
        m.d.comb += [
            reducing.eq((burst.payload.reduction != Reduction.NONE) & ~burst.payload.empty),
            may_read.eq(reducing & (self.plain == 0)),
            may_pass.eq(~reducing & ~reader.waiting & ~self.plain.all()),
            reader.i.payload.eq(burst.payload),
            reader.i.valid.eq(burst.valid & may_read),
        ]

        selected, valid, go = Signal.like(burst.payload), Signal(), Signal()
        m.d.comb += [
            selected.eq(Mux(reader.waiting, reader.o.payload, burst.payload)),
            valid.eq(Mux(reader.waiting, reader.o.valid, burst.valid & may_pass)),
            go.eq(counted.ready & self.o.bursts.ready),
            self.o.bursts.valid.eq(valid & counted.ready),
            self.o.bursts.payload.eq(selected),
            self.o.bursts.payload.reduction.eq(Reduction.NONE),
            reader.o.ready.eq(go),
            burst.ready.eq((may_read & reader.i.ready) | (may_pass & go)),
            # A burst that the reader refused still has words.
            counted.valid.eq(valid & self.o.bursts.ready & (reader.waiting | ~selected.empty)),
            counted.payload.beats_minus_one.eq(selected.beats_minus_one),
            counted.payload.tag.reduces.eq(selected.reduction != Reduction.NONE),
            counted.payload.tag.reduction.eq(selected.reduction),
            counted.payload.tag.element.eq(selected.element),
            counted.payload.tag.operation.eq(
                decode_operation(m, selected.reduction, selected.element, self._floats, "operation")
            ),
            counted.payload.tag.failed.eq(selected.refused),
        ]

        passes, responded = burst.valid & may_pass & go, self.o.responses.valid & self.o.responses.ready
        # While reducing bursts wait for responses, all plain bursts are later ones.
        m.d.comb += reader.written.eq(responded & ~reader.empty)
        ends = responded & reader.empty
        # Both strobes arrive late, so they enable the register instead of entering the sum.
        with m.If(passes ^ ends):
            m.d.sync += self.plain.eq(Mux(passes, self.plain + 1, self.plain - 1))

    def _pass_words(self, m):
        """Each word is the next one of the oldest burst that has gone on."""
        word, beat, old, combiner = self.sources.o, self.sequencer.beats, self.reader.words, self.combiner
        tag, operands = beat.payload.tag, combiner.i.payload
        m.d.comb += [
            operands.old.eq(old.payload),
            operands.word.eq(word.payload),
            *(operands[name].eq(tag[name]) for name in ("reduction", "element", "operation")),
            operands.swallow.eq(tag.failed),
            combiner.o.ready.eq(self.o.words.ready),
            beat.ready.eq(word.valid & word.ready),
        ]
        with m.If(beat.valid & tag.reduces):
            m.d.comb += [
                combiner.i.valid.eq(word.valid & old.valid),
                old.ready.eq(word.valid & combiner.i.ready),
                word.ready.eq(old.valid & combiner.i.ready),
            ]
        # An invalid payload is undefined, so the multiplexer depends on ``busy`` only.
        m.d.comb += self.o.words.payload.eq(Mux(combiner.busy, combiner.o.payload, word.payload))
        with m.If(combiner.busy):
            m.d.comb += self.o.words.valid.eq(combiner.o.valid)
        with m.Elif(beat.valid & ~tag.reduces):
            m.d.comb += [self.o.words.valid.eq(word.valid), word.ready.eq(self.o.words.ready)]
