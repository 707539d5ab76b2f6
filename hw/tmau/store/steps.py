"""From runs to steps: where each run lies, and which segments its bus words are made of."""

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
    """Queues transfers and runs, and adds the byte addresses of the runs.

    Runs outside the tensor are dropped, one a cycle; if the last run of a transfer is outside, an empty run ends the
    transfer. Latency: one cycle from the run (or the transfer, if that is later), with ``params.prefer_bram`` two from
    the run. Throughput: one run a cycle, without a pause between transfers. One adder lies between the outputs of the
    queues and ``o``.
    """

    def __init__(self, params):
        self._params = params
        self.transfer_queue = wide_queue(TransferLayout(params), params.commands_in_flight)
        run, depth = StoreRunLayout(params), params.max_outstanding
        self.run_queue = DeepQueue(run, depth, direct=True) if params.prefer_bram else Queue(run, depth)
        super().__init__(
            {
                # Up to ``commands_in_flight`` wait here. A transfer arrives before or with its first run.
                "transfers": In(stream.Signature(TransferLayout(params))),
                "runs": In(stream.Signature(StoreRunLayout(params))),  # In order. Up to ``max_outstanding`` wait here.
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
        passes = run.inside | run.last
        accepted = both & (self.o.ready | ~passes)
        m.d.comb += [
            self.o.valid.eq(both & passes),
            runs.o.ready.eq(accepted),
            transfers.o.ready.eq(accepted & run.last),
        ]

        # The transfer has the address of its first run.
        first = Signal(init=1)
        following = Signal(self._params.smem.addr_width)
        start = Mux(first, transfer.smem, following)
        with m.If(accepted):
            m.d.sync += [first.eq(run.last), following.eq(start + transfer.run_bytes + Mux(run.skip, transfer.gap, 0))]

        m.d.comb += [
            stored.source.eq(Mux(transfer.immediate, run.address, start + transfer.data_start)),
            stored.address.eq(run.address),
            stored.bytes.eq(transfer.data_end - transfer.data_start),
            stored.empty.eq(~run.inside),
            stored.last.eq(run.last),
        ]
        zero = always_zero(self._params)
        m.d.comb += [
            stored.context[name].eq(0 if name in zero else transfer[name])
            for name, _ in StoreContextLayout(self._params)
        ]
        return m


class _WordLayout(data.StructLayout):
    """A bus word of a run, before its segments are compared with the last one."""

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
    """Cuts runs into steps with one bus word each.

    Steps take segments in the order of their use, and each segment once as long as runs of the transfer continue in it.
    The step of a word that lies in two segments takes the second one; if the first one has not been taken yet, a step
    without a word takes it before.

    Latency 1: the bounds of a word are computed in one cycle, its segments in the next. One step a cycle, without a
    pause between runs.
    """

    def __init__(self, params):
        self._params = params
        self.begun = Signal()  # a word of the run has been cut off; the next three describe the rest of the run
        self.source = Signal(params.smem.addr_width)
        self.bytes = Signal(params.smem.addr_width + 1)
        self.ending = Signal()  # it ends in the next word
        self.word = Signal(_WordLayout(params))  # the word of the current step
        self.free = Signal()  # the next word can enter
        self.has_segment = Signal()  # a segment of the transfer has been taken
        self.segment = Signal(params.smem.addr_width - params.bus_log2)  # its address >> bus_log2
        super().__init__(
            {
                "i": In(stream.Signature(StoredRunLayout(params))),  # A run is accepted with its last word.
                "steps": Out(stream.Signature(WordStepLayout(params))),  # ``valid`` is a register.
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._cut(m)
        self._step(m)
        return m

    def _cut(self, m):
        """Computes the next word of the run at the input."""
        run, word = self.i.payload, self.word
        bus_bytes, bus_log2 = self._params.bus_bytes, self._params.bus_log2
        source, bytes_left, first = Signal.like(self.source), Signal.like(self.bytes), Signal(bus_log2)
        m.d.comb += [
            source.eq(Mux(self.begun, self.source, run.source)),
            bytes_left.eq(Mux(self.begun, self.bytes, run.bytes)),
            first.eq(Mux(self.begun, 0, run.address[:bus_log2])),
        ]
        segment, start = source[bus_log2:], source[:bus_log2]
        space = Signal(bus_log2 + 1)  # bytes of the word
        remaining = bytes_left[: bus_log2 + 1]  # bytes of the run, if it ends in the word
        beyond = Signal(bus_log2 + 2)  # from the start of the segment to the end of the run, if that ends in the word
        rest = Signal.like(self.bytes)  # of the run, after the word
        ends = Signal()  # the run ends in the word
        m.d.comb += [
            space.eq(bus_bytes - first),
            # Registered for the rest of a run, so that no long comparison delays ``i.ready``.
            ends.eq(Mux(self.begun, self.ending, run.empty | self._is_short(first))),
            beyond.eq(start + remaining),
            rest.eq(bytes_left - space),
            self.i.ready.eq(self.free & ends),
        ]
        with m.If(self.free):
            m.d.sync += [
                self.steps.valid.eq(self.i.valid),
                word.segment.eq(segment),
                word.straddle.eq(Mux(ends, beyond > bus_bytes, start > first)),
                word.first.eq(first),
                word.end.eq(Mux(ends, first + remaining, bus_bytes)),
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
        """Whether the run at the input ends in its first word, in which it begins at byte ``first``."""
        bus_log2, length = self._params.bus_log2, self.i.payload.bytes
        room = first + length[: bus_log2 + 1]
        return ~length[bus_log2 + 1 :].any() & (~room[bus_log2:].any() | (room == self._params.bus_bytes))

    def _step(self, m):
        """Computes the step that the word needs now."""
        word, step, cut, bus_bytes = self.word, self.steps.payload, self.steps.payload.cut, self._params.bus_bytes
        here, done = Signal(), Signal()  # the segment of its first byte has been taken; this is the word's last step
        line_here, in_line = Signal(), (LINE_BYTES // bus_bytes).bit_length() - 1
        m.d.comb += [
            line_here.eq(self.has_segment & (self.segment[in_line:] == word.segment[in_line:])),
            here.eq(line_here & (self.segment[:in_line] == word.segment[:in_line])),
            cut.word.eq(~word.empty & (here | ~word.straddle)),
            cut.fetch.eq(~word.empty & (~here | word.straddle)),
            done.eq(here | ~word.straddle | word.empty),
            cut.last.eq(done & word.last),
            self.free.eq(~self.steps.valid | (self.steps.ready & done)),
        ]
        m.d.comb += [cut[name].eq(word[name]) for name in ("first", "end", "turn", "straddle")]
        m.d.comb += [cut[name].eq(word.context[name]) for name in ("tag", "quiet", "bytes", "loop")]
        m.d.comb += [
            step[name].eq(word.context[name]) for name in ("stage", "immediate", "fill", *owner_members(self._params))
        ]

        segment = Signal.like(word.segment)  # the segment of the step
        chunks = Const(0, (bus_bytes // CHUNK_BYTES).bit_length() - 1)
        m.d.comb += [
            segment.eq(Mux(here, word.segment + 1, word.segment)),
            step.row.eq(segment[in_line:]),
            step.again.eq(Mux(here, ~word.segment[:in_line].all(), line_here)),
            step.bank.eq((segment[:in_line] << len(chunks)) ^ chunk_flips(word.context.swizzle, step.row)),
        ]
        with m.If(self.steps.valid & self.steps.ready):
            m.d.sync += self.has_segment.eq(~cut.last)
            with m.If(cut.fetch):
                m.d.sync += self.segment.eq(segment)
