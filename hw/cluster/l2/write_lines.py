"""Bursts of writes, line by line, when their words are here."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from ...lib.stream import Queue, ShallowQueue
from ..memory.layouts import RequestLayout, WriteBeatLayout
from .burst_lines import BurstLines
from .layouts import AccessLayout, Kind

__all__ = ["WriteLines"]


class WriteLines(wiring.Component):
    """Collects the words of each line that a burst writes, and then says so.

    Two cycles from the last word of a line to its access; one word a cycle.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    requests : In(stream of RequestLayout(geometry.addr_width, geometry.id_width))
    beats : In(stream of WriteBeatLayout(geometry.data_width))
        Words of the bursts, in their order. ``ready`` depends on registers only.
    accesses : Out(stream of AccessLayout(geometry))
    words : Out(stream of WriteBeatLayout(geometry.data_width))
        Words of the accesses, in their order, and of lines to come.
    """

    def __init__(self, geometry):
        self._geometry = geometry
        self.lines = BurstLines(geometry)
        self.queue = Queue(WriteBeatLayout(geometry.data_width), geometry.misses * geometry.words)
        self.collected = ShallowQueue(AccessLayout(geometry), 2)
        self.place = Signal(geometry.word_log2)  # of the next word, behind the first one of its line
        self.solid = Signal(init=1)  # no byte of those before it is left out
        super().__init__(
            {
                "requests": In(stream.Signature(RequestLayout(geometry.addr_width, geometry.id_width))),
                "beats": In(stream.Signature(WriteBeatLayout(geometry.data_width))),
                "accesses": Out(stream.Signature(AccessLayout(geometry))),
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
