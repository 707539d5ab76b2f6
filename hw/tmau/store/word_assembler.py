"""Word assembler: cuts bus words out of lines."""

from amaranth import unsigned
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import LINE_BYTES

from ...bus.writes import WriteWordLayout
from ...lib.rotate import rotate_bytes
from ...lib.stream import Queue
from ..layouts import WordLayout
from .finish import EndLayout
from .line_fetch import ENTRIES, FetchedLayout

__all__ = ["WordAssembler"]


class _EntryLayout(data.StructLayout):
    """What waits for the bus."""

    def __init__(self, params):
        super().__init__(
            {
                "bus": unsigned(1),  # a word for the bus
                "loop": unsigned(1),  # a word for the load half; with neither, the transfer only ends
                "word": WriteWordLayout(params.bus_bytes),
                "last": unsigned(1),  # ``end`` counts
                "end": EndLayout(params),
            }
        )


class WordAssembler(wiring.Component):
    """Makes the word of each step from the line that was there before and the one that comes with it.

    After an error of a staged line no byte of the transfer is written: its strobes are zero. Words wait in a queue of
    ``ENTRIES`` places, which never overflows, because the line fetcher counts them.

    Latency: one cycle from the step to its word. Throughput: one word a cycle.

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
        self.queue = Queue(_EntryLayout(params), ENTRIES)
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
        fetched, step, entry = self.i.p, self.i.p.step, queue.i.p

        m.d.comb += [
            queue.i.valid.eq(self.i.valid & (step.word | step.last)),
            entry.bus.eq(step.word & ~step.context.loop),
            entry.loop.eq(step.word & step.context.loop),
            entry.word.data.eq(self._word(m)),
            entry.word.strobe.eq(self._strobe(m)),
            entry.last.eq(step.last),
            entry.end.error.eq(fetched.error),
            entry.end.address.eq(fetched.address),
        ]
        m.d.comb += [entry.end[name].eq(step.context[name]) for name in ("tag", "quiet", "bytes", "loop")]

        # The last word waits until its end has a place; nobody else takes that place away.
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
        """The bus word of the step, each byte from the line register or from the line that comes."""
        bus_bytes, step = self.params.bus_bytes, self.i.p.step
        held = Signal(8 * LINE_BYTES)  # the line before the one that comes
        with m.If(self.i.valid & step.fetch):
            m.d.sync += held.eq(self.i.p.line)

        # In which of the two lines a byte lies is told by its place alone: the first line ends with the last byte.
        from_held = Signal(LINE_BYTES)
        with m.If(~step.fetch):
            m.d.comb += from_held.eq(~0)
        with m.Elif(step.straddle):
            m.d.comb += from_held.eq(Const(-1, LINE_BYTES) << step.source)
        both = Signal(8 * LINE_BYTES)
        m.d.comb += both.eq(
            Cat(
                Mux(from_held[byte], held.word_select(byte, 8), self.i.p.line.word_select(byte, 8))
                for byte in range(LINE_BYTES)
            )
        )

        # Byte p of the word comes from byte p + turn of the two lines, modulo a line. All bytes that lie at one place
        # modulo the word compete for one lane: where the lanes begin ``turn`` modulo the word, segment by segment.
        turn = Signal(7)
        m.d.comb += turn.eq(step.source - step.first)
        segment, shift = turn[self.params.bus_log2 :], turn[: self.params.bus_log2]
        word = Signal(8 * bus_bytes)
        lanes = []
        for lane in range(bus_bytes):
            bytes_ = [both.word_select(n, 8 * bus_bytes).word_select(lane, 8) for n in range(LINE_BYTES // bus_bytes)]
            place = Signal(len(segment), name=f"segment_{lane}")
            m.d.comb += place.eq(segment + (shift > lane))
            lanes.append(data.View(data.ArrayLayout(8, len(bytes_)), Cat(bytes_))[place])
        m.d.comb += word.eq(rotate_bytes(m, Cat(lanes), shift, left=False))
        return word

    def _strobe(self, m):
        step, ones = self.i.p.step, Const(-1, self.params.bus_bytes)
        strobe = Signal(self.params.bus_bytes)
        with m.If(~self.i.p.error):
            m.d.comb += strobe.eq((ones << step.first) & ~(ones << step.end))
        return strobe
