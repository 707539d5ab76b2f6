"""Segment fetcher: gets the segment of each step, un-swizzled."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import BANKS

from ...bus.bursts import WriteWordLayout
from ...lib.logic import chosen, rotate_bytes
from ...lib.stream import DeepQueue, Queue, ShallowQueue
from ...smem.layouts import CHUNK_BITS, LineReadSignature, LoanSignature
from ..layouts import StagedWordLayout, WordLayout, owner_members
from .layouts import EndLayout, FetchedLayout, WordStepLayout

__all__ = ["ENTRIES", "SegmentFetcher", "WordAssembler"]

#: Steps between word steps and bus: enough for one a cycle, from the step to the cycle after its word has left.
ENTRIES = 8

#: Where a segment comes from: chunks of the line as they are or each with its neighbour's place, or from elsewhere.
#: Without copies within one memory it comes from a line.
_STRAIGHT, _SWAPPED, _STAGED, _FILL = range(4)


class _WaitingLayout(data.StructLayout):
    """What is left of a step while it waits. One choice of four is a single table for each bit."""

    def __init__(self, params):
        step = WordStepLayout(params)
        kept = {name: step[name].shape for name in ("cut", "bank", "again", "fill")}
        if params.has("local_copies"):
            more = {"choice": unsigned(2)}
        else:
            # The complement is that of ``bank``, in registers that no tool joins with those of it.
            more = {"immediate": unsigned(1), "complement": unsigned(2)}
        super().__init__(kept | more)


class SegmentFetcher(wiring.Component):
    """Takes a segment from shared memory, from the load path, or made of the fill, for each step that needs one.

    Without copies within one memory the fill goes beside the segments, to where words are made.

    A line of shared memory comes in the cycle after its fetch and must be taken then. So each step takes one of
    ``ENTRIES`` places, until ``left`` gives it back or, if it has neither a word nor an end, it has its segment: what
    is fetched always has a place to go to. No ready of a neighbour reaches the other ones.

    With ``params.keeps_lines`` a line stays until the next one comes, and what needs it ``again`` does not fetch it.

    Lines of other cores are asked for one after the other. A step that takes none, and one that takes its line of
    another shared memory than the one before, waits until all that was asked for has come.

    Latency: three cycles. Throughput: one step a cycle.
    """

    def __init__(self, params):
        self.params = params
        asked = data.StructLayout(
            {"row": unsigned(params.smem.row_width), "shared": unsigned(1), **owner_members(params)}
        )
        self.asked = Queue(asked, ENTRIES)  # steps that wait for their turn at shared memory
        # Those, and the one whose turn it was. A fetch takes two cycles, as a block memory does.
        waiting = _WaitingLayout(params)
        if params.spares_tables:
            self.waiting = DeepQueue(waiting, ENTRIES, direct=True)
        else:
            self.waiting = ShallowQueue(waiting, ENTRIES)
        self.used = Signal(range(ENTRIES + 1))  # places that are taken
        super().__init__(
            {
                "steps": In(stream.Signature(WordStepLayout(params))),
                "fetch": Out(LineReadSignature(params.smem)),
                # Not waited for: the segments of a transfer are all there before its first step comes.
                "staged": In(stream.Signature(StagedWordLayout(params))),
                # Never waits.
                "o": Out(stream.Signature(FetchedLayout(params), always_ready=True)),
                # A place is free again.
                "left": In(1),
                # The source of a transfer has been read.
                "read_stb": Out(1),
                **({"loans": Out(LoanSignature(params.smem, params.cores))} if params.cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.asked = asked = self.asked
        m.submodules.waiting = waiting = self.waiting

        # First cycle: a place. All steps take their turn, so that they keep their order.
        given, step = self.steps.payload, waiting.o.payload
        elsewhere = given.stage | given.immediate
        local = self.params.has("local_copies")
        if local:
            choice = [waiting.i.payload.choice.eq(Mux(elsewhere, Cat(given.immediate, 1), given.bank[0]))]
        else:
            choice = [waiting.i.payload.immediate.eq(given.immediate), waiting.i.payload.complement.eq(~given.bank)]
        started, passed = Signal(), Signal()  # a step takes a place; one without a word or an end gives it back
        m.d.comb += [
            self.steps.ready.eq(self.used != ENTRIES),
            started.eq(self.steps.valid & self.steps.ready),
            waiting.i.valid.eq(started),
            waiting.i.payload.cut.eq(given.cut),
            waiting.i.payload.bank.eq(given.bank),
            waiting.i.payload.again.eq(given.again),
            waiting.i.payload.fill.eq(given.fill),
            *choice,
            asked.i.valid.eq(started),
            asked.i.payload.row.eq(given.row),
            asked.i.payload.shared.eq(given.cut.fetch & ~elsewhere & ~(given.again & self.params.keeps_lines)),
            *(asked.i.payload[name].eq(given[name]) for name in owner_members(self.params)),
        ]
        m.d.sync += self.used.eq(self.used + started - passed - self.left)

        # Second cycle: the fetch.
        due = Signal()  # for the step at the output of ``waiting``: its line comes, if it asked for one
        fetched = Signal()  # it is one that this core has
        may_fetch, borrows, comes = self._borrow(m) if self.params.cores > 1 else (1, 0, 0)
        m.d.comb += [
            self.fetch.rows.valid.eq(asked.o.valid & asked.o.payload.shared & may_fetch),
            self.fetch.rows.payload.eq(asked.o.payload.row),
            asked.o.ready.eq((may_fetch & (~asked.o.payload.shared | self.fetch.rows.ready)) | borrows),
            due.eq(fetched | comes),
        ]
        m.d.sync += fetched.eq(asked.o.valid & asked.o.ready & ~borrows)

        # Third cycle: the segment.
        m.d.comb += [
            waiting.o.ready.eq(due),
            passed.eq(due & ~step.cut.word & ~step.cut.last),
            self.staged.ready.eq(due & step.cut.fetch & (step.choice == _STAGED) if local else 0),
            self.read_stb.eq(due & step.cut.last),
        ]
        self._collect(m, due, step)
        return m

    def _borrow(self, m):
        """Whether the step in front may take its turn here; whether it borrows a line now; whether one comes."""
        asked, loans = self.asked, self.loans
        away = Signal(range(ENTRIES + 1))  # requests without an answer
        lender = Signal(self.params.cores)  # whose lines they are
        waits, lends = Signal(), Signal()  # for other answers; a line of another core is wanted
        request = loans.requests
        m.d.comb += [
            lends.eq(asked.o.payload.shared & asked.o.payload.owner.any()),
            waits.eq((away != 0) & ~(lends & (asked.o.payload.owner == lender))),
            request.valid.eq(asked.o.valid & lends & ~waits),
            request.payload.owner.eq(asked.o.payload.owner),
            request.payload.row.eq(asked.o.payload.row),
            request.payload.last.eq(asked.o.payload.row),
        ]
        m.d.sync += away.eq(away + (request.valid & request.ready) - loans.answer.lends)
        with m.If(request.valid):
            m.d.sync += lender.eq(asked.o.payload.owner)
        return ~lends & ~waits, request.valid & request.ready, loans.answer.lends

    def _collect(self, m, due, step):
        o, staged, cut = self.o.payload, self.staged, step.cut
        ones = Const(-1, self.params.bus_bytes)
        m.d.sync += self.o.valid.eq(due)
        with m.If(due):
            m.d.sync += [
                o.complement.eq(~cut.turn),
                o.before.eq(Mux(cut.straddle, ones << cut.turn, 0)),
                o.strobe.eq((ones << cut.first) & ~(ones << cut.end)),
            ]
            m.d.sync += [
                o[name].eq(cut[name]) for name in ("word", "fetch", "turn", "last", "tag", "quiet", "bytes", "loop")
            ]
            with m.If(cut.fetch):
                m.d.sync += o.segment.eq(self._segment(m, due, step))
            if not self.params.has("local_copies"):
                m.d.sync += [o[name].eq(step[name]) for name in ("immediate", "fill")]
        if self.params.has("local_copies"):
            # The error at the output is also where errors are collected: it is never cleared within a transfer.
            erred = o.error & ~o.last
            with m.If(due):
                m.d.sync += o.error.eq(erred | (staged.ready & staged.payload.error))
                with m.If(~erred):
                    m.d.sync += o.address.eq(staged.payload.address)

    def _segment(self, m, due, step):
        """The segment that comes: 16 bytes ``n`` of one in shared memory are those of bank ``bank ^ n``."""
        count = self.params.bus_width // CHUNK_BITS
        line = self.fetch.line
        if self.params.cores > 1:
            line = Mux(self.loans.answer.lends, self.loans.answer.line, line)
        if self.params.keeps_lines:
            kept = Signal.like(self.fetch.line, reset_less=True)
            with m.If(due & step.cut.fetch & ~step.again):
                m.d.sync += kept.eq(line)
            line = Mux(step.again, kept, line)
        chunks = [line.word_select(place, CHUNK_BITS) for place in range(BANKS)]
        local = self.params.has("local_copies")
        for bit in (2, 1) if local else (2,):
            stage = [Signal(CHUNK_BITS, name=f"chunk{bit}_{place}") for place in range(max(1 << bit, count))]
            for place, chunk in enumerate(stage):
                m.d.comb += chunk.eq(Mux(step.bank[bit], chunks[place ^ (1 << bit)], chunks[place]))
            chunks = stage
        if not local:
            # Two places have halves of their choices in common: each has a code of its own.
            codes = (step.bank[:2], ~step.complement)
            return Cat(
                chosen(codes[place >> 1], {flips: chunks[place ^ flips] for flips in range(4)})
                for place in range(count)
            )
        segment = Signal(self.params.bus_width)
        with m.Switch(step.choice):
            with m.Case(_STRAIGHT):
                m.d.comb += segment.eq(Cat(chunks[:count]))
            with m.Case(_SWAPPED):
                m.d.comb += segment.eq(Cat(chunks[place ^ 1] for place in range(count)))
            with m.Case(_STAGED):
                m.d.comb += segment.eq(self.staged.payload.data)
            with m.Case(_FILL):
                m.d.comb += segment.eq(step.fill.replicate(self.params.bus_bytes // 8))
        return segment


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
    """

    def __init__(self, params):
        self.params = params
        entry = _EntryLayout(params)
        self.queue = DeepQueue(entry, ENTRIES, direct=True) if params.spares_tables else ShallowQueue(entry, ENTRIES)
        super().__init__(
            {
                "i": In(stream.Signature(FetchedLayout(params), always_ready=True)),
                "words": Out(stream.Signature(WriteWordLayout(params.bus_bytes))),
                # The words of transfers with ``loop``. What lies outside their bytes means nothing.
                "loop": Out(stream.Signature(WordLayout(params))),
                # With the last word of a transfer, or in its place. Its ``ready`` must not wait for ``valid``, and once
                # up stays until an end comes: the word waits for it.
                "ends": Out(stream.Signature(EndLayout(params))),
                # A place in the queue is free again.
                "left": Out(1),
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
            entry.word.strobe.eq(Mux(step.error, 0, step.strobe) if self.params.has("local_copies") else step.strobe),
            entry.last.eq(step.last),
        ]
        m.d.comb += [entry.end[name].eq(step[name]) for name, _ in EndLayout(self.params)]

        # The last word waits until its end has a place; nothing else takes that place away.
        out, queued = queue.o.payload, queue.o.valid
        placed = ~out.last | self.ends.ready
        gone = (self.words.ready | ~out.bus) & (self.loop.ready | ~out.loop)
        m.d.comb += [
            self.words.valid.eq(queued & out.bus & placed),
            self.words.payload.eq(out.word),
            self.loop.valid.eq(queued & out.loop & placed),
            self.loop.payload.data.eq(out.word.data),
            self.ends.valid.eq(queued & out.last & gone),
            self.ends.payload.eq(out.end),
            queue.o.ready.eq(placed & gone),
            self.left.eq(queued & queue.o.ready),
        ]
        return m

    def _word(self, m):
        """The bus word of the step."""
        step = self.i.payload
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
