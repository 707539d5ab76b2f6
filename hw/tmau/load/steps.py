"""Response tracker: what the load path needs of every read in flight."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import Reduction

from ...lib.stream import DeepQueue, Queue, wide_queue
from ..layouts import RowLayout, TransferLayout, always_zero
from .layouts import ContextLayout, RunLayout, StepLayout, never_set

__all__ = ["ResponseTracker", "StepGenerator"]


class ResponseTracker(wiring.Component):
    """Keeps transfers and rows in memories and turns them into runs in absolute addresses.

    Latency: one cycle from the row (or the transfer, if that comes later) to its run; two from the row with
    ``params.spares_tables``. Throughput: one run a cycle, without a pause between transfers. The payload of ``runs``
    comes through adders from the queues' outputs.
    """

    def __init__(self, params):
        self._params = params
        self.transfer_queue = wide_queue(TransferLayout(params), params.commands_in_flight)
        row, depth = RowLayout(params), params.max_outstanding
        self.row_queue = DeepQueue(row, depth, direct=True) if params.spares_tables else Queue(row, depth)
        self.first = Signal(init=1)  # the run at the output is the first of its transfer
        self.following = Signal(params.smem.addr_width + 1)  # where it starts otherwise
        super().__init__(
            {
                # One for each transfer, before or with its first row; ``commands_in_flight`` of them fit.
                "transfers": In(stream.Signature(TransferLayout(params))),
                # One for each run, in order; ``max_outstanding`` of them fit.
                "rows": In(stream.Signature(RowLayout(params))),
                "runs": Out(stream.Signature(RunLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
        m.submodules.transfers = transfers = self.transfer_queue
        m.submodules.rows = rows = self.row_queue
        connect(m, flipped(self.transfers), transfers.i)
        connect(m, flipped(self.rows), rows.i)

        transfer, row, run = transfers.o.payload, rows.o.payload, self.runs.payload
        taken = self.runs.valid & self.runs.ready
        m.d.comb += [
            self.runs.valid.eq(transfers.o.valid & rows.o.valid),
            rows.o.ready.eq(transfers.o.valid & self.runs.ready),
            transfers.o.ready.eq(taken & row.last),
        ]

        # The transfer's address is only good for its first run.
        first, following = self.first, self.following
        start, end, gap = Signal.like(following), Signal.like(following), Signal.like(transfer.gap)
        length, data_end = Signal.like(transfer.run_bytes), Signal.like(transfer.data_end)
        m.d.comb += [
            length.eq(Mux(row.folded, row.bytes, transfer.run_bytes)),
            data_end.eq(Mux(row.folded, row.bytes, transfer.data_end)),
            start.eq(Mux(first, transfer.smem, following)),
            end.eq(start + length),
            gap.eq(Mux(row.skip, transfer.gap, 0)),
        ]
        with m.If(taken):
            m.d.sync += [first.eq(row.last), following.eq(end + gap)]

        m.d.comb += [
            run.start.eq(start),
            run.end.eq(end),
            run.inside.eq(row.inside),
            run.data_start.eq(start + transfer.data_start),
            run.data_end.eq(start + data_end),
            run.word_end.eq(start + transfer.data_start + (params.bus_bytes - row.offset)),
            run.shared.eq(row.shared),
            run.close.eq(row.last | (end[:7] + gap)[7:].any()),
            run.last.eq(row.last),
        ]
        zero = always_zero(params)
        m.d.comb += [
            run.context[name].eq(0 if name in zero else transfer[name][: len(run.context[name])])
            for name, _ in ContextLayout(params)
        ]
        return m


class StepGenerator(wiring.Component):
    """Cuts runs into steps: each takes at most one bus word, begins in one line and reaches at most into the next.

    A run that begins in the word before and ends in the next one takes both in one step, if its data lie in a line's
    first segment and both words are rotated alike: so do rows that adjoin in the tensor, with gaps in shared memory.

    A step with a word ends where the word's data end. If the run has no more data, the fill behind them goes along, to
    the end of the line, or, where the data reach over it, to the end of the run if that lies in the next line. A step
    without a word ends with the line or the run. A run that ends behind the end of such a line, and to which nothing
    follows in the next, ends with an empty step there.

    Latency: one cycle from a run to its first step. Throughput: one step a cycle, without a pause between runs.
    """

    def __init__(self, params):
        self._params = params
        width = params.smem.addr_width + 1
        self.busy = Signal()
        run = RunLayout(params)
        self.run = Signal(data.StructLayout({name: run[name].shape for name, _ in run if name != "context"}))
        self.context = Signal(run["context"].shape)
        # By turns the context of the run, and whatever arrives: so the end of a run, which comes late, enables less.
        # One is fewer tables.
        self.contexts = [Signal(run["context"].shape, name=f"context{number}") for number in range(2)]
        if params.spares_tables:
            self.contexts = [self.context]
        self.turn = Signal()  # which of them is the run's
        self.cursor = Signal(width)  # first byte that is not covered yet
        self.word_end = Signal(width)  # where the byte after the next word to take would land
        self.started = Signal()  # the run has taken its first word
        self.drained = Signal()  # the run has taken its last word, or has none
        self.held = Signal(params.bus_log2)  # word_end of the word that was taken last
        super().__init__(
            # Made of the run, behind carry chains: for a register. ``runs.ready`` depends combinationally on its
            # ``ready``.
            {"runs": In(stream.Signature(RunLayout(params))), "steps": Out(stream.Signature(StepLayout(params)))}
        )

    def elaborate(self, platform):
        m = Module()
        run = self.run
        cursor, word_end, started, drained = self.cursor, self.word_end, self.started, self.drained

        line = cursor[7:]
        next_line = (line + 1)[: len(line)]
        ends_here = run.end[7:] == line
        ends_next = run.end[7:] == next_line

        word = ~drained & (started | (run.data_start[7:] == line))
        goes_on, joins = Signal(), Signal()
        m.d.comb += [
            goes_on.eq(word_end < run.data_end),
            joins.eq(goes_on & self._joins(line)),
        ]
        more = word & goes_on & ~joins
        data_end = Mux(more, word_end, run.data_end)
        # The last data reach less than a line past the end of this one: a bit tells whether they do.
        across = word & (run.data_end[7] != line[0]) & (run.data_end[:7] != 0)

        next_cursor = Signal.like(cursor)
        done = Signal()
        with m.If(more):
            m.d.comb += next_cursor.eq(word_end)
        with m.Elif(across):
            # With close, what reaches into the next line takes an empty step there.
            m.d.comb += next_cursor.eq(Mux(ends_next, run.end, run.data_end))
            m.d.comb += done.eq(ends_next & ~run.close)
        with m.Else():
            m.d.comb += next_cursor.eq(Mux(ends_here, run.end, Cat(Const(0, 7), next_line)))
            m.d.comb += done.eq(ends_here | (ends_next & (run.end[:7] == 0)))

        def relative(address):
            """Of an address more than the start of the line, at most a line past its end."""
            return Cat(address[:7], address[7] ^ line[0])

        step = Signal(StepLayout(self._params))
        piece = step.piece
        reuse = ~started & run.shared & ~joins
        m.d.comb += [
            piece.line.eq(line),
            piece.first.eq(cursor[:7]),
            piece.end.eq(relative(next_cursor)),
            piece.data_first.eq(Mux(started, 0, run.data_start[:7])),
            piece.data_end.eq(Mux(word, relative(data_end), 0)),
            piece.joint.eq(Mux(word & joins, word_end, 0)),
            piece.last.eq(done & run.last),
            step.pull.eq(word & ~reuse),
            step.rotate.eq(Mux(word, word_end, self.held)),
            step.complement.eq(~step.rotate),
            *([self.context.eq(Mux(self.turn, self.contexts[1], self.contexts[0]))] if self.contexts[1:] else []),
            step.context.eq(self.context),
        ]

        self._advance(m, step, next_cursor, word, more, done)
        return m

    def _joins(self, line):
        """Of a run whose data end in its second word: whether one step takes both. A reduction takes single words."""
        run, bus_log2 = self.run, self._params.bus_log2
        in_segment = (
            (run.data_start[bus_log2:7] == 0)
            & (run.data_end[7:] == line)
            & ((run.data_end[bus_log2:7] == 0) | ((run.data_end[bus_log2:7] == 1) & (run.data_end[:bus_log2] == 0)))
        )
        alike = self.word_end[:bus_log2] == self.held
        return run.shared & ~self.started & alike & in_segment & (self.context.reduction == Reduction.NONE)

    def _advance(self, m, step, next_cursor, word, more, done):
        """The registers: the step leaves, and the next run comes with the last one of this."""
        m.d.comb += [
            self.steps.valid.eq(self.busy),
            self.steps.payload.eq(step),
            self.runs.ready.eq(~self.busy | (self.steps.ready & done)),
        ]
        with m.If(self.busy & self.steps.ready):
            m.d.sync += self.cursor.eq(next_cursor)
            with m.If(word):
                m.d.sync += [
                    self.word_end.eq(self.word_end + self._params.bus_bytes),
                    self.started.eq(1),
                    self.drained.eq(~more),
                    self.held.eq(self.word_end),
                ]
        arriving = self.runs.payload
        for number, context in enumerate(self.contexts):
            with m.If(self.turn != number if self.contexts[1:] else self.runs.ready):
                m.d.sync += context.eq(arriving.context)
                m.d.sync += [member.eq(0) for member in never_set(self._params, context)]
        with m.If(self.runs.ready):
            m.d.sync += [
                self.busy.eq(self.runs.valid),
                self.turn.eq(~self.turn),
                *(self.run[name].eq(arriving[name]) for name, _ in self.run.shape()),
                self.cursor.eq(arriving.start),
                self.word_end.eq(arriving.word_end),
                self.started.eq(0),
                self.drained.eq(~arriving.inside),
            ]
