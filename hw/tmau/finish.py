"""The end of a command: its bytes are reported to the barrier, its tag to the processor, its error to the record."""

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

    The completion of a load lies in a register until its barrier has taken it, and goes before all others. Stores, and
    commands that ended in the front, take turns in the cycles in which no load is there. So ``ready`` depends on
    registers only; each stream passes at most one every second cycle. A transfer that came with a bus error does not
    complete its barrier, and one of the store path has none.
    """

    def __init__(self, params):
        self.params = params
        self.load = Signal(CompletionLayout(params))  # the completion of a load
        self.held = Signal()  # there is one
        self.turn = Signal()  # without one, stores end here; otherwise ``finished``
        super().__init__(
            {
                # From the load path: transfers whose last line is being written in this cycle or has been. ``landed``
                # is valid from the next cycle on.
                "completions": In(stream.Signature(CompletionLayout(params))),
                # From the store path: transfers whose last burst is acknowledged.
                "stores": In(stream.Signature(CompletionLayout(params))),
                # Commands that moved nothing. Behind every load that has been accepted before.
                "finished": In(stream.Signature(ErrorLayout(params))),
                # For the barrier of a transfer that names one; in a cluster of every load.
                "landed": Out(stream.Signature(LandedLayout(params.smem, params.cores))),
                # Registered: one cycle after the handshake of ``stores`` or ``finished``, or of ``landed``; a load
                # without barrier two cycles after its handshake.
                "done": Out(DoneLayout(params)),
                # Of the command whose bytes are at ``landed``.
                **({"landed_tag": Out(16)} if params.confines_apart else {}),
                # As ``landed`` is accepted: mask of the cores that refused something of it.
                **({"refusing": In(params.cores)} if params.cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        load, held, turn = self.load, self.held, self.turn
        signals = load.signal & ~load.error
        waits = signals  # for what lies behind ``landed``
        if self.params.cores > 1:
            waits = Const(1)
            m.d.comb += [self.landed.payload[name].eq(load[name]) for name in ("receivers", "turn", "block", "tag")]
            m.d.comb += [self.landed.payload.signal.eq(signals), self.landed.payload.failed.eq(load.error)]
        loads, stores = Signal(), Signal()  # a load, a store ends
        if self.params.confines_apart:
            m.d.comb += self.landed_tag.eq(load.tag)
        m.d.comb += [
            self.completions.ready.eq(~held),
            self.stores.ready.eq(~held & turn),
            self.finished.ready.eq(~held & ~turn),
            self.landed.valid.eq(held & waits),
            self.landed.payload.barrier.eq(load.barrier),
            self.landed.payload.bytes.eq(load.bytes),
            loads.eq(held & (self.landed.ready | ~waits)),
            stores.eq(self.stores.valid & self.stores.ready),
        ]
        with m.If(held):
            m.d.sync += held.eq(~loads)
        with m.Else():
            m.d.sync += [held.eq(self.completions.valid), load.eq(self.completions.payload), turn.eq(~turn)]

        completion, record = Signal.like(load), self.done.record
        m.d.comb += completion.eq(Mux(held, load, self.stores.payload))
        m.d.sync += [
            self.done.valid.eq(loads | stores | (self.finished.valid & self.finished.ready)),
            self.done.stored.eq(stores),
        ]
        with m.If(held | turn):
            m.d.sync += [
                self.done.bytes.eq(completion.bytes),
                record.code.eq(Mux(completion.error, Mux(completion.write, Error.WRITE, Error.READ), Error.NONE)),
                record.tag.eq(completion.tag),
                record.field.eq(0),
                record.address.eq(completion.address),
            ]
            if self.params.cores > 1:
                with m.If(held & ~load.error & self.refusing.any()):
                    m.d.sync += [record.code.eq(ClusterError.REMOTE), record.address.eq(self.refusing)]
        with m.Else():
            m.d.sync += [self.done.bytes.eq(0), record.eq(self.finished.payload)]
        return m
