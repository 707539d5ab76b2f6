"""Store tracker: what waits to be stored, in two memories, and where each run lies."""

from amaranth.hdl import Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import CHUNK_BYTES, LINE_BYTES

from ...lib.stream import DeepQueue, Queue, wide_queue
from ...smem.layouts import chunk_flips
from ..layouts import StoreRunLayout, TransferLayout, always_zero, owner_members
from .layouts import CutLayout, StoreContextLayout, StoredRunLayout, WordStepLayout

__all__ = ["StoreTracker", "WordStepGenerator"]


class StoreTracker(wiring.Component):
    """Keeps transfers and runs in memories and turns them into byte addresses.

    Runs that lie outside the tensor are dropped, a cycle each; if a transfer's last one does, an empty run ends the
    transfer. Latency: one cycle from the run (or the transfer, if that comes later); two from the run with
    ``params.spares_tables``. Throughput: one run a cycle, without a pause between transfers. The payload of ``o`` comes
    through one adder from the queues' outputs.
    """

    def __init__(self, params):
        self.params = params
        self.transfer_queue = wide_queue(TransferLayout(params), params.commands_in_flight)
        run, depth = StoreRunLayout(params), params.max_outstanding
        self.run_queue = DeepQueue(run, depth, direct=True) if params.spares_tables else Queue(run, depth)
        super().__init__(
            {
                # One for each transfer, before or with its first run; ``commands_in_flight`` of them fit.
                "transfers": In(stream.Signature(TransferLayout(params))),
                # In order; ``max_outstanding`` of them fit.
                "runs": In(stream.Signature(StoreRunLayout(params))),
                "o": Out(stream.Signature(StoredRunLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.transfers = transfers = self.transfer_queue
        m.submodules.runs = runs = self.run_queue
        connect(m, flipped(self.transfers), transfers.i)
        connect(m, flipped(self.runs), runs.i)

        transfer, run, stored = transfers.o.payload, runs.o.payload, self.o.payload
        both = transfers.o.valid & runs.o.valid
        kept = run.inside | run.last
        taken = both & (self.o.ready | ~kept)
        m.d.comb += [
            self.o.valid.eq(both & kept),
            runs.o.ready.eq(taken),
            transfers.o.ready.eq(taken & run.last),
        ]

        # The transfer's address is only good for its first run.
        first = Signal(init=1)
        following = Signal(self.params.smem.addr_width)
        start = Mux(first, transfer.smem, following)
        with m.If(taken):
            m.d.sync += [
                first.eq(run.last),
                following.eq(start + transfer.run_bytes + Mux(run.skip, transfer.gap, 0)),
            ]

        m.d.comb += [
            stored.source.eq(Mux(transfer.immediate, run.address, start + transfer.data_start)),
            stored.address.eq(run.address),
            stored.bytes.eq(transfer.data_end - transfer.data_start),
            stored.empty.eq(~run.inside),
            stored.last.eq(run.last),
        ]
        zero = always_zero(self.params)
        m.d.comb += [
            stored.context[name].eq(0 if name in zero else transfer[name])
            for name, _ in StoreContextLayout(self.params)
        ]
        return m


class _WordLayout(data.StructLayout):
    """A bus word of a run, as long as it is not known which segments are there."""

    def __init__(self, params):
        cut = CutLayout(params)
        super().__init__(
            {
                **{name: cut[name].shape for name in ("first", "end", "turn", "straddle")},
                "segment": unsigned(params.smem.addr_width - params.bus_log2),  # of its first byte, address >> bus_log2
                "empty": unsigned(1),  # there is no word: the transfer only ends here
                "last": unsigned(1),  # of the transfer
                "context": StoreContextLayout(params),
            }
        )


class WordStepGenerator(wiring.Component):
    """Cuts runs into steps: a bus word each.

    Segments are taken in the order of their use, each once as long as the runs of a transfer go on in it. A word that
    lies in two segments takes the second one; if the first one is not there yet, a step without a word takes it before.

    Latency 1: where words begin and end is found in one cycle, and which segments they take in the next. One step a
    cycle, without a pause between runs.
    """

    def __init__(self, params):
        self.params = params
        self.begun = Signal()  # a word of the run has been cut off: the two below are what is left of it
        self.source = Signal(params.smem.addr_width)
        self.bytes = Signal(params.smem.addr_width + 1)
        self.ending = Signal()  # what is left ends in the next word
        self.word = Signal(_WordLayout(params))  # the one that steps are made for
        self.free = Signal()  # the next one may come
        self.held = Signal()  # a segment of the transfer is there
        self.held_segment = Signal(params.smem.addr_width - params.bus_log2)  # its address >> bus_log2
        super().__init__(
            # Combinational from registers; ``valid`` is one.
            # A run is taken with its last word.
            {"i": In(stream.Signature(StoredRunLayout(params))), "steps": Out(stream.Signature(WordStepLayout(params)))}
        )

    def elaborate(self, platform):
        m = Module()
        self._cut(m)
        self._step(m)
        return m

    def _cut(self, m):
        """The next word of the run at the input."""
        run, word = self.i.payload, self.word
        bus_bytes, bus_log2 = self.params.bus_bytes, self.params.bus_log2
        source, bytes_left, first = Signal.like(self.source), Signal.like(self.bytes), Signal(bus_log2)
        m.d.comb += [
            source.eq(Mux(self.begun, self.source, run.source)),
            bytes_left.eq(Mux(self.begun, self.bytes, run.bytes)),
            first.eq(Mux(self.begun, 0, run.address[:bus_log2])),
        ]
        segment, start = source[bus_log2:], source[:bus_log2]
        space = Signal(bus_log2 + 1)  # bytes of the word
        left = bytes_left[: bus_log2 + 1]  # bytes of the run, if it ends in the word
        beyond = Signal(bus_log2 + 2)  # from the start of the segment to the end of the run, if that ends in the word
        rest = Signal.like(self.bytes)  # of the run, behind the word
        ends = Signal()  # the run ends in the word
        m.d.comb += [
            space.eq(bus_bytes - first),
            # Of what is left, and of the run in parts, so that no long comparison is on the way to the next run.
            ends.eq(Mux(self.begun, self.ending, run.empty | self._is_short(first))),
            beyond.eq(start + left),
            rest.eq(bytes_left - space),
            self.i.ready.eq(self.free & ends),
        ]
        with m.If(self.free):
            m.d.sync += [
                self.steps.valid.eq(self.i.valid),
                word.segment.eq(segment),
                word.straddle.eq(Mux(ends, beyond > bus_bytes, start > first)),
                word.first.eq(first),
                word.end.eq(Mux(ends, first + left, bus_bytes)),
                word.turn.eq(start - first),
                word.empty.eq(run.empty),
                word.last.eq(ends & run.last),
                word.context.eq(run.context),
                self.source.eq(source + space),
                self.bytes.eq(rest),
                self.ending.eq(rest <= bus_bytes),
            ]
            with m.If(self.i.valid):
                m.d.sync += self.begun.eq(~ends)

    def _is_short(self, first):
        """Whether the run at the input ends in its first word, which begins with its byte ``first``."""
        bus_log2, length = self.params.bus_log2, self.i.payload.bytes
        room = first + length[: bus_log2 + 1]
        return ~length[bus_log2 + 1 :].any() & (~room[bus_log2:].any() | (room == self.params.bus_bytes))

    def _step(self, m):
        """The step that the word needs now."""
        word, step, cut, bus_bytes = self.word, self.steps.payload, self.steps.payload.cut, self.params.bus_bytes
        here, done = Signal(), Signal()  # the segment of its first byte is there; nothing is left to do for the word
        line_here, in_line = Signal(), (LINE_BYTES // bus_bytes).bit_length() - 1
        m.d.comb += [
            line_here.eq(self.held & (self.held_segment[in_line:] == word.segment[in_line:])),
            here.eq(line_here & (self.held_segment[:in_line] == word.segment[:in_line])),
            cut.word.eq(~word.empty & (here | ~word.straddle)),
            cut.fetch.eq(~word.empty & (~here | word.straddle)),
            done.eq(here | ~word.straddle | word.empty),
            cut.last.eq(done & word.last),
            self.free.eq(~self.steps.valid | (self.steps.ready & done)),
        ]
        m.d.comb += [cut[name].eq(word[name]) for name in ("first", "end", "turn", "straddle")]
        m.d.comb += [cut[name].eq(word.context[name]) for name in ("tag", "quiet", "bytes", "loop")]
        m.d.comb += [
            step[name].eq(word.context[name]) for name in ("stage", "immediate", "fill", *owner_members(self.params))
        ]

        taken = Signal.like(word.segment)  # the segment of the step
        chunks = Const(0, (bus_bytes // CHUNK_BYTES).bit_length() - 1)
        m.d.comb += [
            taken.eq(Mux(here, word.segment + 1, word.segment)),
            step.row.eq(taken[in_line:]),
            step.again.eq(Mux(here, ~word.segment[:in_line].all(), line_here)),
            step.bank.eq((taken[:in_line] << len(chunks)) ^ chunk_flips(word.context.swizzle, step.row)),
        ]
        with m.If(self.steps.valid & self.steps.ready):
            m.d.sync += self.held.eq(~cut.last)
            with m.If(cut.fetch):
                m.d.sync += self.held_segment.eq(taken)
