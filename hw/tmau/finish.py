"""The end of a command: barrier, processor and error record learn of it."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import Error
from tilewright.spec.cluster import ClusterError

from ..smem.layouts import LandedLayout
from .layouts import CompletionLayout, DoneLayout, ErrorLayout

__all__ = ["Finisher"]


class Finisher(wiring.Component):
    """Ends commands, at most one a cycle.

    The completion of a load waits in a register until its barrier has accepted it, and has priority. Stores and
    commands that ended in the front alternate in the cycles without a load. All ``ready`` depend on registers only;
    each stream passes at most one item every second cycle. A transfer with a bus error does not complete its barrier.
    """

    def __init__(self, params):
        self._params = params
        self.load = Signal(CompletionLayout(params))  # the completion of a load
        self.load_valid = Signal()
        self.turn = Signal()  # in a cycle without a load: 1: ``stores`` passes, 0: ``finished``
        super().__init__(
            {
                # From the load path: transfers whose last line is written in this cycle or earlier. ``landed`` is valid
                # from the next cycle.
                "completions": In(stream.Signature(CompletionLayout(params))),
                # From the store path: transfers whose last burst is acknowledged.
                "stores": In(stream.Signature(CompletionLayout(params))),
                # Commands that moved nothing. They come after all loads that were accepted before them.
                "finished": In(stream.Signature(ErrorLayout(params))),
                # For transfers that name a barrier; in a cluster for all loads.
                "landed": Out(stream.Signature(LandedLayout(params.smem, params.cores))),
                # One cycle after the handshake of ``stores``, ``finished`` or ``landed``; for a load without
                # barrier two cycles after its handshake.
                "done": Out(DoneLayout(params)),
                # Of the command whose bytes are at ``landed``.
                **({"landed_tag": Out(16)} if params.confines_apart else {}),
                # Valid when ``landed`` is accepted: mask of the cores that refused a part of the transfer.
                **({"refusing": In(params.cores)} if params.cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        load, load_valid, turn = self.load, self.load_valid, self.turn
        signals = load.signal & ~load.error
        waits = signals  # it needs the handshake of ``landed``
        if self._params.cores > 1:
            waits = Const(1)
            m.d.comb += [self.landed.payload[name].eq(load[name]) for name in ("receivers", "turn", "block", "tag")]
            m.d.comb += [self.landed.payload.signal.eq(signals), self.landed.payload.failed.eq(load.error)]
        load_ends, store_ends = Signal(), Signal()
        if self._params.confines_apart:
            m.d.comb += self.landed_tag.eq(load.tag)
        m.d.comb += [
            self.completions.ready.eq(~load_valid),
            self.stores.ready.eq(~load_valid & turn),
            self.finished.ready.eq(~load_valid & ~turn),
            self.landed.valid.eq(load_valid & waits),
            self.landed.payload.barrier.eq(load.barrier),
            self.landed.payload.bytes.eq(load.bytes),
            load_ends.eq(load_valid & (self.landed.ready | ~waits)),
            store_ends.eq(self.stores.valid & self.stores.ready),
        ]
        with m.If(load_valid):
            m.d.sync += load_valid.eq(~load_ends)
        with m.Else():
            m.d.sync += [load_valid.eq(self.completions.valid), load.eq(self.completions.payload), turn.eq(~turn)]

        completion, record = Signal.like(load), self.done.record
        m.d.comb += completion.eq(Mux(load_valid, load, self.stores.payload))
        m.d.sync += [
            self.done.valid.eq(load_ends | store_ends | (self.finished.valid & self.finished.ready)),
            self.done.stored.eq(store_ends),
        ]
        with m.If(load_valid | turn):
            m.d.sync += [
                self.done.bytes.eq(completion.bytes),
                record.code.eq(Mux(completion.error, Mux(completion.write, Error.WRITE, Error.READ), Error.NONE)),
                record.tag.eq(completion.tag),
                record.field.eq(0),
                record.address.eq(completion.address),
            ]
            if self._params.cores > 1:
                with m.If(load_valid & ~load.error & self.refusing.any()):
                    m.d.sync += [record.code.eq(ClusterError.REMOTE), record.address.eq(self.refusing)]
        with m.Else():
            m.d.sync += [self.done.bytes.eq(0), record.eq(self.finished.payload)]
        return m
