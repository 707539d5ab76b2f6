"""The end of a command: its bytes are reported to the barrier, its tag to the processor, its error to the record."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Error

from ...lib.arbiter import RoundRobinArbiter
from ...smem.layouts import LandedLayout
from ..layouts import CompletionLayout, DoneLayout, ErrorLayout

__all__ = ["Finisher"]


class Finisher(wiring.Component):
    """Ends commands, at most one a cycle; the three that end them take turns.

    A transfer that came with a bus error does not complete its barrier, and one of the store path has none.

    Members
    -------
    completions : In(stream of CompletionLayout)
        From the load path: transfers whose last line is being written in this cycle or has been. Taken together with
        ``landed``.
    stores : In(stream of CompletionLayout)
        From the store path: transfers whose last burst is acknowledged.
    finished : In(stream of ErrorLayout)
        Commands that moved nothing.
    landed : Out(stream of LandedLayout)
        For the barrier of a transfer that names one. Combinational from ``completions``.
    done : Out(DoneLayout)
        Registered: one cycle after the command's handshake.
    """

    def __init__(self, params):
        self.arbiter = RoundRobinArbiter(3)
        super().__init__(
            {
                "completions": In(stream.Signature(CompletionLayout(params))),
                "stores": In(stream.Signature(CompletionLayout(params))),
                "finished": In(stream.Signature(ErrorLayout(params))),
                "landed": Out(stream.Signature(LandedLayout(params.smem))),
                "done": Out(DoneLayout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        load, store, other = arbiter.grant
        signals = self.completions.p.signal & ~self.completions.p.error
        m.d.comb += [
            arbiter.requests.eq(Cat(self.completions.valid, self.stores.valid, self.finished.valid)),
            arbiter.advance.eq(~load | self.completions.ready),
            self.completions.ready.eq(load & (self.landed.ready | ~signals)),
            self.stores.ready.eq(store),
            self.finished.ready.eq(other),
            self.landed.p.barrier.eq(self.completions.p.barrier),
            self.landed.p.bytes.eq(self.completions.p.bytes),
            self.landed.valid.eq(load & signals),
        ]
        completion, record = Signal.like(self.completions.p), self.done.record
        m.d.comb += completion.eq(Mux(store, self.stores.p, self.completions.p))
        m.d.sync += self.done.valid.eq(arbiter.grant.any() & arbiter.advance)
        m.d.sync += self.done.stored.eq(store)
        with m.If(other):
            m.d.sync += [self.done.bytes.eq(0), record.eq(self.finished.p)]
        with m.Else():
            m.d.sync += [
                self.done.bytes.eq(completion.bytes),
                record.code.eq(Mux(completion.error, Mux(completion.write, Error.WRITE, Error.READ), Error.NONE)),
                record.tag.eq(completion.tag),
                record.field.eq(0),
                record.address.eq(completion.address),
            ]
        return m
