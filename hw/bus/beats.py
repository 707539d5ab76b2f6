"""From bursts to their beats, for blocks that many bursts pass."""

from amaranth.hdl import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..lib.stream import Queue

__all__ = ["BeatLayout", "BeatSequencer", "TaggedBurstLayout"]


class TaggedBurstLayout(data.StructLayout):
    """How long a burst is, and what its user needs at each of its beats."""

    def __init__(self, tag):
        super().__init__({"beats_minus_one": unsigned(8), "tag": tag})


class BeatLayout(data.StructLayout):
    """One beat of a burst."""

    def __init__(self, tag):
        super().__init__({"tag": tag, "last": unsigned(1)})


class BeatSequencer(wiring.Component):
    """Makes of each burst as many items as it has beats. Words that come beside bursts are taken together with these.

    Latency 1, one burst and one beat a cycle. The bursts wait in memory.

    Parameters
    ----------
    tag : shape-like
        Of what the user needs.
    depth : int
        Bursts that may be ahead of their beats: 2 to 1024, a power of two.

    Members
    -------
    bursts : In(stream of TaggedBurstLayout)
        ``ready`` depends on the number of bursts held only.
    beats : Out(stream of BeatLayout)
    """

    def __init__(self, tag, depth):
        self.queue = Queue(TaggedBurstLayout(tag), depth)
        self.beat = Signal(8)  # of the oldest burst, counted from zero
        super().__init__(
            {"bursts": In(stream.Signature(TaggedBurstLayout(tag))), "beats": Out(stream.Signature(BeatLayout(tag)))}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        wiring.connect(m, bursts=wiring.flipped(self.bursts), queue=queue.i)
        last = Signal()
        m.d.comb += [
            last.eq(self.beat == queue.o.payload.beats_minus_one),
            self.beats.valid.eq(queue.o.valid),
            self.beats.payload.tag.eq(queue.o.payload.tag),
            self.beats.payload.last.eq(last),
            queue.o.ready.eq(self.beats.ready & last),
        ]
        with m.If(self.beats.valid & self.beats.ready):
            m.d.sync += self.beat.eq(Mux(last, 0, self.beat + 1))
        return m
