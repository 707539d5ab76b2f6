"""Segments of the store path: fetched for each step, and assembled to bus words."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BANKS, CHUNK_BYTES

from ...bus.bursts import WriteWordLayout
from ...lib.logic import masked_choice, rotate_bytes
from ...lib.stream import DeepQueue, Queue, ShallowQueue
from ...smem.layouts import CHUNK_BITS
from ...smem.signatures import LineReadSignature, LoanSignature
from ..layouts import StagedWordLayout, WordLayout, owner_members
from .layouts import EndLayout, FetchedLayout, WordStepLayout

__all__ = ["ENTRIES", "SegmentFetcher", "WordAssembler"]

#: Steps between the word step generator and the bus: enough for one a cycle, until the cycle after a word has left.
ENTRIES = 8

#: Sources of a segment: a line, the load path, the fill.
_LINE, _STAGED, _FILL = range(3)


def _queue(params, layout):
    """A queue of ``ENTRIES`` steps or words."""
    return DeepQueue(layout, ENTRIES, direct=True) if params.prefer_bram else ShallowQueue(layout, ENTRIES)


class SegmentFetcher(wiring.Component):
    """Fetches a segment for each step that needs one, un-swizzled from shared memory, or from the load path.

    A line of shared memory arrives in the cycle after its fetch and must be accepted then. So each step occupies one of
    ``ENTRIES`` entries until ``left`` releases it; a step with neither word nor end releases it with its segment. Every
    fetch thus has an entry, and no ready depends combinationally on another one. On a bus of more than 16 bytes the
    fetcher holds the last line, and does not fetch it again for the next segment; a bus of 16 bytes fetches one line
    per segment, which saves a register of 1024 bits.

    The fill passes beside the segments, which are zero then. After an error of a staged segment the strobes of the
    transfer are zero: nothing more is written.

    Lines of other cores are requested one after the other. A step that needs no such line, or a line of another core
    than the previous step, waits until all requests have been answered.

    Latency: three cycles. Throughput: one step a cycle.
    """

    def __init__(self, params):
        self._params = params
        self.holds_line = params.bus_bytes > CHUNK_BYTES
        step = WordStepLayout(params)
        row = unsigned(params.smem.row_width)
        request = data.StructLayout({"row": row, "shared": unsigned(1), **owner_members(params)})
        waiting = {name: step[name].shape for name in ("cut", "bank", "again", "fill")}
        self.requests = Queue(request, ENTRIES)  # of steps that wait for shared memory
        self.waiting = _queue(
            params, data.StructLayout(waiting | {"source": unsigned(2)})
        )  # steps, until their segment
        self.used = Signal(range(ENTRIES + 1))  # entries
        super().__init__(
            {
                "steps": In(stream.Signature(WordStepLayout(params))),
                "fetch": Out(LineReadSignature(params.smem)),
                # The segments of a transfer are all there before its first step arrives.
                "staged": In(stream.Signature(StagedWordLayout(params))),
                "o": Out(stream.Signature(FetchedLayout(params), always_ready=True)),
                "left": In(1),  # Strobe: an entry is released.
                "read_stb": Out(1),  # Strobe: the source of a transfer has been read.
                **({"loans": Out(LoanSignature(params.smem, params.cores))} if params.cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.requests = requests = self.requests
        m.submodules.waiting = waiting = self.waiting

        # First cycle: the step gets an entry. Every step makes a request, which keeps the order.
        new, step = self.steps.payload, waiting.o.payload
        entry, request = waiting.i.payload, requests.i.payload
        elsewhere = new.stage | new.immediate
        starts, passes = Signal(), Signal()  # a step gets an entry; a step releases its entry here
        m.d.comb += [
            self.steps.ready.eq(self.used != ENTRIES),
            starts.eq(self.steps.valid & self.steps.ready),
            waiting.i.valid.eq(starts),
            *(entry[name].eq(new[name]) for name in ("cut", "bank", "again", "fill")),
            entry.source.eq(Mux(new.stage, _STAGED, Mux(new.immediate, _FILL, _LINE))),
            requests.i.valid.eq(starts),
            request.row.eq(new.row),
            request.shared.eq(new.cut.fetch & ~elsewhere & ~(new.again & self.holds_line)),
            *(request[name].eq(new[name]) for name in owner_members(self._params)),
        ]
        m.d.sync += self.used.eq(self.used + starts - passes - self.left)

        # Second cycle: the fetch.
        due = Signal()  # the segment of the oldest waiting step arrives, if it needs one
        fetched = Signal()  # the same, without lines of other cores
        request = requests.o.payload
        may_fetch, borrows, arrives = self._borrow(m) if self._params.cores > 1 else (1, 0, 0)
        m.d.comb += [
            self.fetch.rows.valid.eq(requests.o.valid & request.shared & may_fetch),
            self.fetch.rows.payload.eq(request.row),
            requests.o.ready.eq((may_fetch & (~request.shared | self.fetch.rows.ready)) | borrows),
            due.eq(fetched | arrives),
        ]
        m.d.sync += fetched.eq(requests.o.valid & requests.o.ready & ~borrows)

        # Third cycle: the segment.
        m.d.comb += [
            waiting.o.ready.eq(due),
            passes.eq(due & ~step.cut.word & ~step.cut.last),
            self.staged.ready.eq(due & step.cut.fetch & (step.source == _STAGED)),
            self.read_stb.eq(due & step.cut.last),
        ]
        self._collect(m, due, step)
        return m

    def _borrow(self, m):
        """Requests lines of other cores.

        Returns whether the oldest request may be served here, whether it is sent now, and whether a line arrives.
        """
        requests, loans = self.requests, self.loans
        oldest = requests.o.payload
        unanswered = Signal(range(ENTRIES + 1))
        lender = Signal(self._params.cores)  # of the unanswered requests
        waits, lends = Signal(), Signal()  # for other answers; a line of another core is needed
        request = loans.requests
        m.d.comb += [
            lends.eq(oldest.shared & oldest.owner.any()),
            waits.eq((unanswered != 0) & ~(lends & (oldest.owner == lender))),
            request.valid.eq(requests.o.valid & lends & ~waits),
            request.payload.owner.eq(oldest.owner),
            request.payload.row.eq(oldest.row),
            request.payload.last.eq(oldest.row),
        ]
        m.d.sync += unanswered.eq(unanswered + (request.valid & request.ready) - loans.answer.lends)
        with m.If(request.valid):
            m.d.sync += lender.eq(oldest.owner)
        return ~lends & ~waits, request.valid & request.ready, loans.answer.lends

    def _collect(self, m, due, step):
        """The output: the segment, and the masks of the word."""
        o, staged, cut = self.o.payload, self.staged, step.cut
        ones = Const(-1, self._params.bus_bytes)
        # ``o.error`` accumulates errors, so it is never cleared within a transfer.
        earlier, error = o.error & ~o.last, Signal()
        m.d.comb += error.eq(earlier | (staged.ready & staged.payload.error))
        m.d.sync += self.o.valid.eq(due)
        with m.If(due):
            m.d.sync += [
                o.before.eq(Mux(cut.straddle, ones << cut.turn, 0)),
                o.strobe.eq(Mux(error, 0, (ones << cut.first) & ~(ones << cut.end))),
                *(o[name].eq(cut[name]) for name in ("word", "fetch", "turn", "last", "tag", "quiet", "bytes", "loop")),
                o.inverse.eq(~cut.turn),
                o.error.eq(error),
            ]
            with m.If(cut.fetch):
                m.d.sync += [
                    o.segment.eq(Mux(step.source == _FILL, 0, self._segment(m, due, step))),
                    o.fill.eq(Mux(step.source == _FILL, step.fill, 0)),
                ]
            with m.If(~earlier):
                m.d.sync += o.address.eq(staged.payload.address)

    def _segment(self, m, due, step):
        """The segment that arrives. In shared memory its chunk ``n`` is in bank ``bank ^ n``."""
        count = self._params.bus_width // CHUNK_BITS
        line = self.fetch.line
        if self._params.cores > 1:
            line = Mux(self.loans.answer.lends, self.loans.answer.line, line)
        if self.holds_line:
            last_line = Signal.like(self.fetch.line, reset_less=True)
            with m.If(due & step.cut.fetch & ~step.again):
                m.d.sync += last_line.eq(line)
            line = Mux(step.again, last_line, line)
        chunks = [line.word_select(place, CHUNK_BITS) for place in range(BANKS)]
        half = [Signal(CHUNK_BITS, name=f"half{place}") for place in range(BANKS // 2)]
        for place, chunk in enumerate(half):
            m.d.comb += chunk.eq(Mux(step.bank[2], chunks[place ^ 4], chunks[place]))
        choices = [Cat(half[place ^ flips] for place in range(count)) for flips in range(4)]
        segment = masked_choice(m, step.bank[:2], choices, "bank")
        return Mux(step.source == _STAGED, self.staged.payload.data, segment)


class _EntryLayout(data.StructLayout):
    """A word or an end that waits for the bus."""

    def __init__(self, params):
        super().__init__(
            {
                "bus": unsigned(1),  # a word for the bus
                "loop": unsigned(1),  # a word for the load path; with neither, the transfer only ends
                "word": WriteWordLayout(params.bus_bytes),
                "last": unsigned(1),  # ``end`` is valid
                "end": EndLayout(params),
            }
        )


class WordAssembler(wiring.Component):
    """Assembles the word of each step from its segment, from its segment and the previous one, or from the fill.

    Words wait in a queue of ``ENTRIES`` entries, which cannot overflow, because the segment fetcher counts them.

    Latency: one cycle from the step to its word, with ``params.prefer_bram`` two. Throughput: one word a cycle.
    """

    def __init__(self, params):
        self._params = params
        self.queue = _queue(params, _EntryLayout(params))
        super().__init__(
            {
                "i": In(stream.Signature(FetchedLayout(params), always_ready=True)),
                "words": Out(stream.Signature(WriteWordLayout(params.bus_bytes))),
                # Words of transfers with ``loop``. Bytes outside the transfer are undefined.
                "loop": Out(stream.Signature(WordLayout(params))),
                # With the last word of a transfer, or in its place. ``ready`` must not depend on ``valid`` and, once
                # high, must stay high until an end arrives, because the word waits for it.
                "ends": Out(stream.Signature(EndLayout(params))),
                "left": Out(1),  # Strobe: an entry of the queue is free again.
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        step, entry = self.i.payload, queue.i.payload

        m.d.comb += [
            queue.i.valid.eq(self.i.valid & (step.word | step.last)),
            entry.bus.eq(step.word & ~step.loop),
            entry.loop.eq(step.word & step.loop),
            entry.word.data.eq(self._word(m)),
            entry.word.strobe.eq(step.strobe),
            entry.last.eq(step.last),
            *(entry.end[name].eq(step[name]) for name, _ in EndLayout(self._params)),
        ]

        # The last word waits until its end is accepted, too.
        out, queued = queue.o.payload, queue.o.valid
        end_leaves = ~out.last | self.ends.ready
        word_leaves = (self.words.ready | ~out.bus) & (self.loop.ready | ~out.loop)
        m.d.comb += [
            self.words.valid.eq(queued & out.bus & end_leaves),
            self.words.payload.eq(out.word),
            self.loop.valid.eq(queued & out.loop & end_leaves),
            self.loop.payload.data.eq(out.word.data),
            self.ends.valid.eq(queued & out.last & word_leaves),
            self.ends.payload.eq(out.end),
            queue.o.ready.eq(end_leaves & word_leaves),
            self.left.eq(queued & queue.o.ready),
        ]
        return m

    def _word(self, m):
        """The bus word of the step."""
        step = self.i.payload
        previous, both = Signal.like(step.segment), Signal.like(step.segment)
        with m.If(self.i.valid & step.fetch):
            m.d.sync += previous.eq(step.segment)
        m.d.comb += both.eq(
            Cat(
                Mux(is_before, previous.word_select(byte, 8), step.segment.word_select(byte, 8))
                for byte, is_before in enumerate(step.before)
            )
            | step.fill.replicate(self._params.bus_bytes // 8)
        )
        return rotate_bytes(m, both, step.turn, inverse=step.inverse, left=False)
