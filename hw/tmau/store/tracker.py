"""Store tracker: what waits to be stored, in two memories, and where each run lies."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ...lib.join import join
from ...lib.stream import DeepQueue, Queue, wide_queue
from ..layouts import StoreRunLayout, TransferLayout, always_zero
from .layouts import StoreContextLayout, StoredRunLayout

__all__ = ["StoreTracker"]


class StoreTracker(wiring.Component):
    """Keeps transfers and runs in memories and turns them into byte addresses.

    Runs that lie outside the tensor are dropped, a cycle each; if a transfer's last one does, an empty run ends the
    transfer. Latency: one cycle from the run (or the transfer, if that comes later); two from the run with
    ``params.spares_tables``. Throughput: one run a cycle, without a pause between transfers. The payload of ``o`` comes
    through one adder from the queues' outputs.

    Members
    -------
    transfers : In(stream of TransferLayout)
        One for each transfer, before or with its first run; ``commands_in_flight`` of them fit.
    runs : In(stream of StoreRunLayout)
        In order; ``max_outstanding`` of them fit.
    o : Out(stream of StoredRunLayout)
    """

    def __init__(self, params):
        self.params = params
        self.transfer_queue = wide_queue(TransferLayout(params), params.commands_in_flight)
        run, depth = StoreRunLayout(params), params.max_outstanding
        self.run_queue = DeepQueue(run, depth, direct=True) if params.spares_tables else Queue(run, depth)
        super().__init__(
            {
                "transfers": In(stream.Signature(TransferLayout(params))),
                "runs": In(stream.Signature(StoreRunLayout(params))),
                "o": Out(stream.Signature(StoredRunLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.transfers = transfers = self.transfer_queue
        m.submodules.runs = runs = self.run_queue
        join(m, tracker=flipped(self.transfers), transfers=transfers.i)
        join(m, tracker=flipped(self.runs), runs=runs.i)

        transfer, run, stored = transfers.o.p, runs.o.p, self.o.p
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
