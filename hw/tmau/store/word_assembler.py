"""Word assembler: cuts bus words out of segments."""

from amaranth import unsigned
from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...bus.writes import WriteWordLayout
from ...lib.rotate import rotate_bytes
from ...lib.stream import DeepQueue, ShallowQueue
from ..layouts import WordLayout
from .layouts import EndLayout, FetchedLayout
from .segment_fetch import ENTRIES

__all__ = ["WordAssembler"]


class _EntryLayout(data.StructLayout):
    """What waits for the bus."""

    def __init__(self, params):
        super().__init__(
            {
                "bus": unsigned(1),  # a word for the bus
                "loop": unsigned(1),  # a word for the load path; with neither, the transfer only ends
                "word": WriteWordLayout(params.bus_bytes),
                "last": unsigned(1),  # ``end`` counts
                "end": EndLayout(params),
            }
        )


class WordAssembler(wiring.Component):
    """Makes the word of each step from the segment that comes with it, or from that and the one before.

    After an error of a staged segment no byte of the transfer is written: its strobes are zero. Words wait in a queue
    of ``ENTRIES`` places, which never overflows, because the segment fetcher counts them.

    Latency: one cycle from the step to its word, with ``params.spares_tables`` two. Throughput: one word a cycle.

    Members
    -------
    i : In(stream of FetchedLayout, always ready)
    words : Out(stream of WriteWordLayout)
    loop : Out(stream of WordLayout)
        The words of transfers with ``loop``. What lies outside their bytes means nothing.
    ends : Out(stream of EndLayout)
        With the last word of a transfer, or in its place. Its ``ready`` must not wait for ``valid``, and once up stays
        until an end comes: the word waits for it.
    left : Out(1)
        A place in the queue is free again.
    """

    def __init__(self, params):
        self.params = params
        entry = _EntryLayout(params)
        self.queue = DeepQueue(entry, ENTRIES, direct=True) if params.spares_tables else ShallowQueue(entry, ENTRIES)
        super().__init__(
            {
                "i": In(stream.Signature(FetchedLayout(params), always_ready=True)),
                "words": Out(stream.Signature(WriteWordLayout(params.bus_bytes))),
                "loop": Out(stream.Signature(WordLayout(params))),
                "ends": Out(stream.Signature(EndLayout(params))),
                "left": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        step, entry = self.i.p, queue.i.p

        m.d.comb += [
            queue.i.valid.eq(self.i.valid & (step.word | step.last)),
            entry.bus.eq(step.word & ~step.loop),
            entry.loop.eq(step.word & step.loop),
            entry.word.data.eq(self._word(m)),
            entry.word.strobe.eq(Mux(step.error, 0, step.strobe) if self.params.has("local_copies") else step.strobe),
            entry.last.eq(step.last),
        ]
        m.d.comb += [entry.end[name].eq(step[name]) for name, _ in EndLayout(self.params)]

        # The last word waits until its end has a place; nothing else takes that place away.
        out, queued = queue.o.p, queue.o.valid
        placed = ~out.last | self.ends.ready
        gone = (self.words.ready | ~out.bus) & (self.loop.ready | ~out.loop)
        m.d.comb += [
            self.words.valid.eq(queued & out.bus & placed),
            self.words.p.eq(out.word),
            self.loop.valid.eq(queued & out.loop & placed),
            self.loop.p.data.eq(out.word.data),
            self.ends.valid.eq(queued & out.last & gone),
            self.ends.p.eq(out.end),
            queue.o.ready.eq(placed & gone),
            self.left.eq(queued & queue.o.ready),
        ]
        return m

    def _word(self, m):
        """The bus word of the step."""
        step = self.i.p
        before = Signal.like(step.segment)  # the segment that was taken before
        with m.If(self.i.valid & step.fetch):
            m.d.sync += before.eq(step.segment)
        both = Signal.like(before)
        m.d.comb += both.eq(
            Cat(
                Mux(is_before, before.word_select(byte, 8), step.segment.word_select(byte, 8))
                for byte, is_before in enumerate(step.before)
            )
        )
        whole = both
        if not self.params.has("local_copies"):
            # The same table chooses.
            fill = step.fill.replicate(self.params.bus_bytes // 8)
            whole = Mux(step.immediate, fill, both)
        complement = step.complement if self.params.four_inputs else None
        return rotate_bytes(m, whole, step.turn, left=False, complement=complement)
