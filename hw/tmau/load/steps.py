"""From rows to steps: where each run lies in shared memory, and which bus word fills which of its bytes."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import Reduction

from ...lib.stream import DeepQueue, Queue, wide_queue
from ..layouts import RowLayout, TransferLayout, always_zero
from .layouts import ContextLayout, RunLayout, StepLayout, never_set

__all__ = ["ResponseTracker", "StepGenerator"]


class ResponseTracker(wiring.Component):
    """Queues transfers and rows, and converts them to runs with absolute addresses.

    Latency: one cycle from the row (or the transfer, if that is later) to its run, with ``params.prefer_bram`` two from
    the row. Throughput: one run a cycle, without a pause between transfers. Adders lie between the outputs of the
    queues and ``runs``.
    """

    def __init__(self, params):
        self._params = params
        self.transfer_queue = wide_queue(TransferLayout(params), params.commands_in_flight)
        row, depth = RowLayout(params), params.max_outstanding
        self.row_queue = DeepQueue(row, depth, direct=True) if params.prefer_bram else Queue(row, depth)
        self.first = Signal(init=1)  # the run at the output is the first of its transfer
        self.following = Signal(params.smem.addr_width + 1)  # its start otherwise
        super().__init__(
            {
                # Up to ``commands_in_flight`` wait here. A transfer arrives before or with its first row.
                "transfers": In(stream.Signature(TransferLayout(params))),
                # One for each run, in order. Up to ``max_outstanding`` wait here.
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
        leaves = self.runs.valid & self.runs.ready
        m.d.comb += [
            self.runs.valid.eq(transfers.o.valid & rows.o.valid),
            rows.o.ready.eq(transfers.o.valid & self.runs.ready),
            transfers.o.ready.eq(leaves & row.last),
        ]

        # The transfer has the address of its first run.
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
        with m.If(leaves):
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
    """Cuts runs into steps: each uses at most one bus word and lies in one line, or in two consecutive lines.

    A run that begins in the previous word and ends in the next one uses both in one step, if its data lie in the first
    segment of a line and both words have the same rotation: rows that are contiguous in the tensor, with gaps in shared
    memory.

    A step with a word ends where the word's data end. If the run has no more data, the step includes the fill up to the
    end of the line; if the data reach into the next line, it includes the fill up to the end of the run, if that lies
    in that line. A step without a word ends with the line or the run. If a run ends in the next line and no other run
    continues that line, an empty step closes it.

    Latency: one cycle from a run to its first step. Throughput: one step a cycle, without a pause between runs.
    """

    def __init__(self, params):
        self._params = params
        width = params.smem.addr_width + 1
        self.busy = Signal()
        self.run = Signal(RunLayout(params))
        self.cursor = Signal(width)  # address of the first byte that no step has covered
        self.word_end = Signal(width)  # address of the byte after the next word
        self.started = Signal()  # the run has used its first word
        self.drained = Signal()  # the run has used its last word, or has none
        self.last_word_end = Signal(params.bus_log2)  # ``word_end`` of the word that was used last
        super().__init__(
            {
                "runs": In(
                    stream.Signature(RunLayout(params))
                ),  # ``ready`` depends combinationally on ``steps.ready``.
                "steps": Out(stream.Signature(StepLayout(params))),  # Comes from carry chains and needs a register.
            }
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
        m.d.comb += [goes_on.eq(word_end < run.data_end), joins.eq(goes_on & self._joins(line))]
        more = word & goes_on & ~joins
        data_end = Mux(more, word_end, run.data_end)
        # The last data reach less than a line past the end of the line, so one bit is enough.
        across = word & (run.data_end[7] != line[0]) & (run.data_end[:7] != 0)

        next_cursor = Signal.like(cursor)
        done = Signal()
        with m.If(more):
            m.d.comb += next_cursor.eq(word_end)
        with m.Elif(across):
            # With ``close`` an empty step follows, which closes the next line.
            m.d.comb += next_cursor.eq(Mux(ends_next, run.end, run.data_end))
            m.d.comb += done.eq(ends_next & ~run.close)
        with m.Else():
            m.d.comb += next_cursor.eq(Mux(ends_here, run.end, Cat(Const(0, 7), next_line)))
            m.d.comb += done.eq(ends_here | (ends_next & (run.end[:7] == 0)))

        def relative(address):
            """An address relative to the start of the line; at most a line past its end."""
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
            step.rotate.eq(Mux(word, word_end, self.last_word_end)),
            step.context.eq(run.context),
        ]

        self._advance(m, step, next_cursor, word, more, done)
        return m

    def _joins(self, line):
        """Whether one step uses both words of a run whose data end in its second word. Reductions use single words."""
        run, bus_log2 = self.run, self._params.bus_log2
        in_segment = (
            (run.data_start[bus_log2:7] == 0)
            & (run.data_end[7:] == line)
            & ((run.data_end[bus_log2:7] == 0) | ((run.data_end[bus_log2:7] == 1) & (run.data_end[:bus_log2] == 0)))
        )
        aligned = self.word_end[:bus_log2] == self.last_word_end  # both words have the same rotation
        return run.shared & ~self.started & aligned & in_segment & (run.context.reduction == Reduction.NONE)

    def _advance(self, m, step, next_cursor, word, more, done):
        """The registers: the step leaves, and the next run arrives with the last step of the current one."""
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
                    self.last_word_end.eq(self.word_end),
                ]
        arriving = self.runs.payload
        with m.If(self.runs.ready):
            m.d.sync += [
                self.busy.eq(self.runs.valid),
                self.run.eq(arriving),
                *(member.eq(0) for member in never_set(self._params, self.run.context)),
                self.cursor.eq(arriving.start),
                self.word_end.eq(arriving.word_end),
                self.started.eq(0),
                self.drained.eq(~arriving.inside),
            ]
