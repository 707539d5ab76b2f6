"""Bursts at both ports of the cache: split into lines, and written back from lines."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect
from amaranth.utils import exact_log2

from tilewright.spec import PAGE_BYTES

from ...bus.axi4 import MODIFIABLE, UNPRIVILEGED_NON_SECURE, Axi4WriteSignature, Burst
from ...lib.stream import Queue, ShallowQueue
from ..memory.layouts import RequestLayout, WriteBeatLayout, give
from .params import AccessLayout, Kind, LinePartLayout, VictimLayout

__all__ = ["BurstLines", "WriteBack", "WriteLines"]


class BurstLines(wiring.Component):
    """Says of each burst which words of which lines it has.

    Latency 1, one line a cycle, without a gap from burst to burst.

    Parameters
    ----------
    geometry : Geometry
    """

    def __init__(self, geometry):
        self._geometry = geometry
        self.part = Signal(LinePartLayout(geometry))  # ``last`` and ``end`` are not kept
        self.left = Signal(8)  # words after the first one
        super().__init__(
            {
                # Bursts of whole bus words, INCR, within a page of 4 KiB.
                "i": In(stream.Signature(RequestLayout(geometry.addr_width, geometry.id_width))),
                "o": Out(stream.Signature(LinePartLayout(geometry))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        geometry, part, request, o = self._geometry, self.part, self.i.payload, self.o
        bus_log2 = geometry.line_log2 - geometry.word_log2
        in_page = exact_log2(PAGE_BYTES) - geometry.line_log2
        reach = Signal(9)
        m.d.comb += [
            reach.eq(part.first + self.left),
            o.payload.eq(part),
            o.payload.end.eq(reach < geometry.words),
            o.payload.last.eq(Mux(o.payload.end, reach, geometry.words - 1)),
            self.i.ready.eq(~o.valid | (o.ready & o.payload.end)),
        ]
        with m.If(self.i.ready):
            m.d.sync += [
                o.valid.eq(self.i.valid),
                part.id.eq(request.id),
                part.line.eq(request.addr[geometry.line_log2 :]),
                part.first.eq(request.addr[bus_log2 : geometry.line_log2]),
                self.left.eq(request.len),
            ]
        with m.Elif(o.ready):
            m.d.sync += [
                part.line[:in_page].eq(part.line[:in_page] + 1),
                part.first.eq(0),
                self.left.eq(reach - geometry.words),
            ]
        return m


class WriteLines(wiring.Component):
    """Collects the words of each line that a burst writes, and then says so.

    Two cycles from the last word of a line to its access; one word a cycle.

    Parameters
    ----------
    geometry : Geometry
    """

    def __init__(self, geometry):
        self._geometry = geometry
        self.lines = BurstLines(geometry)
        self.queue = Queue(WriteBeatLayout(geometry.data_width), geometry.misses * geometry.words)
        self.collected = ShallowQueue(AccessLayout(geometry), 2)
        self.place = Signal(geometry.word_log2)  # position of the next word in its line
        self.solid = Signal(init=1)  # no byte of those before it is left out
        super().__init__(
            {
                "requests": In(stream.Signature(RequestLayout(geometry.addr_width, geometry.id_width))),
                # Words of the bursts, in their order. ``ready`` depends on registers only.
                "beats": In(stream.Signature(WriteBeatLayout(geometry.data_width))),
                "accesses": Out(stream.Signature(AccessLayout(geometry))),
                # Words of the accesses, in their order, and of lines to come.
                "words": Out(stream.Signature(WriteBeatLayout(geometry.data_width))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name in ("lines", "queue", "collected"):
            m.submodules[name] = getattr(self, name)
        lines, queue, collected = self.lines, self.queue, self.collected
        connect(m, requests=wiring.flipped(self.requests), lines=lines.i)
        connect(m, collected=collected.o, accesses=wiring.flipped(self.accesses))
        connect(m, queue=queue.o, words=wiring.flipped(self.words))

        part, beat, access = lines.o.payload, self.beats.payload, collected.i.payload
        may, step, ends, solid = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            may.eq(lines.o.valid & collected.i.ready),
            self.beats.ready.eq(may & queue.i.ready),
            queue.i.payload.eq(beat),
            queue.i.valid.eq(self.beats.valid & may),
            step.eq(queue.i.valid & queue.i.ready),
            ends.eq(step & (part.first + self.place == part.last)),
            solid.eq(self.solid & beat.strb.all()),
            lines.o.ready.eq(ends),
            access.kind.eq(Kind.WRITE),
            access.part.eq(part),
            access.full.eq(solid & (part.last - part.first == self._geometry.words - 1)),
            collected.i.valid.eq(ends),
        ]
        with m.If(ends):
            m.d.sync += [self.place.eq(0), self.solid.eq(1)]
        with m.Elif(step):
            m.d.sync += [self.place.eq(self.place + 1), self.solid.eq(solid)]
        return m


#: Lines that wait: one comes while others go.
_LINES = 4


class WriteBack(wiring.Component):
    """Writes whole lines, of which memory takes the bytes that were written.

    One burst a line; latency 1. Neither AW nor W waits for the other to be accepted, but for four lines. Every answer
    is taken at once.

    Parameters
    ----------
    geometry : Geometry
    """

    def __init__(self, geometry):
        self._geometry = g = geometry
        self.lines = ShallowQueue(unsigned(g.line_width), _LINES)
        self.words = Queue(WriteBeatLayout(g.data_width), _LINES * g.words)
        super().__init__(
            {
                # Whole lines, while there is ``room``.
                "victims": In(stream.Signature(VictimLayout(g), always_ready=True)),
                # Registered: two more words may come after this cycle.
                "room": Out(1),
                # With ID 0.
                "axi": Out(Axi4WriteSignature(g.addr_width, g.data_width, g.id_width)),
                # Strobe: memory has answered.
                "arrived": Out(1),
                # Strobe: with an error.
                "failed": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.lines = lines = self.lines
        m.submodules.words = words = self.words
        g, axi, victim = self._geometry, self.axi, self.victims
        m.d.comb += [
            lines.i.payload.eq(victim.payload.line),
            lines.i.valid.eq(victim.valid & victim.payload.first),
            words.i.payload.data.eq(victim.payload.data),
            words.i.payload.strb.eq(victim.payload.strb),
            words.i.payload.last.eq(victim.payload.last),
            words.i.valid.eq(victim.valid),
            axi.awaddr.eq(Cat(Const(0, g.line_log2), lines.o.payload)),
            axi.awlen.eq(g.words - 1),
            axi.awsize.eq(exact_log2(g.data_width // 8)),
            axi.awburst.eq(Burst.INCR),
            axi.awprot.eq(UNPRIVILEGED_NON_SECURE),
            axi.awcache.eq(MODIFIABLE),
            axi.awvalid.eq(lines.o.valid),
            lines.o.ready.eq(axi.awready),
            axi.bready.eq(1),
        ]
        give(m, words.o, axi, "w")
        # A word or line shows in the level two cycles after it was on its way, in which two others may follow.
        m.d.sync += [
            self.room.eq((words.level <= self.words.depth - 4) & (lines.level <= _LINES - 3)),
            self.arrived.eq(axi.bvalid),
            self.failed.eq(axi.bvalid & axi.bresp.as_value()[1]),
        ]
        return m
