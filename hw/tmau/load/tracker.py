"""Response tracker: what the load path needs of every read in flight."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.stream import DeepQueue, Queue, wide_queue
from ..layouts import RowLayout, TransferLayout, always_zero
from .layouts import ContextLayout, RunLayout

__all__ = ["ResponseTracker"]


class ResponseTracker(wiring.Component):
    """Keeps transfers and rows in memories and turns them into runs in absolute addresses.

    Latency: one cycle from the row (or the transfer, if that comes later) to its run; two from the row with
    ``params.spares_tables``. Throughput: one run a cycle, without a pause between transfers. The payload of ``runs``
    comes through adders from the queues' outputs.

    Members
    -------
    transfers : In(stream of TransferLayout)
        One for each transfer, before or with its first row; ``commands_in_flight`` of them fit.
    rows : In(stream of RowLayout)
        One for each run, in order; ``max_outstanding`` of them fit.
    runs : Out(stream of RunLayout)
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
                "transfers": In(stream.Signature(TransferLayout(params))),
                "rows": In(stream.Signature(RowLayout(params))),
                "runs": Out(stream.Signature(RunLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
        m.submodules.transfers = transfers = self.transfer_queue
        m.submodules.rows = rows = self.row_queue
        connect(m, tracker=flipped(self.transfers), transfers=transfers.i)
        connect(m, tracker=flipped(self.rows), rows=rows.i)

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
