"""Two sources of accesses to one tree of registers."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...bus.axi4_lite import AccessSignature

__all__ = ["AccessShare"]


class AccessShare(wiring.Component):
    """Gives registers to two sources in turns, an access at a time: the next one begins when the answer is taken.

    Who begins is decided in a cycle of its own; from then on both directions are combinational until the answer.

    Members
    -------
    sources : In(array of 2 AccessSignature())
        Each waits for its answer before the next access.
    accesses : Out(AccessSignature())

    Attributes
    ----------
    busy : Signal
        An access is under way; for proofs.
    owner : Signal
        Whose it is.
    """

    def __init__(self):
        self.busy, self.owner = Signal(), Signal()
        super().__init__({"sources": In(AccessSignature()).array(2), "accesses": Out(AccessSignature())})

    def elaborate(self, platform):
        m = Module()
        first, second = (source.requests for source in self.sources)
        requests, answers = self.accesses.requests, self.accesses.answers
        sent = Signal()  # the request is taken
        m.d.comb += requests.payload.eq(Mux(self.owner, second.payload, first.payload))
        for number, source in enumerate(self.sources):
            mine = self.busy & (self.owner == number)
            with m.If(mine):
                m.d.comb += [requests.valid.eq(source.requests.valid & ~sent), answers.ready.eq(source.answers.ready)]
            m.d.comb += [
                source.requests.ready.eq(mine & ~sent & requests.ready),
                source.answers.valid.eq(mine & answers.valid),
                source.answers.payload.eq(answers.payload),
            ]
        with m.If(~self.busy):
            # After one source it is the turn of the other.
            m.d.sync += [
                self.busy.eq(first.valid | second.valid),
                self.owner.eq(Mux(self.owner, ~first.valid, second.valid)),
                sent.eq(0),
            ]
        with m.Elif(answers.valid & answers.ready):
            m.d.sync += self.busy.eq(0)
        with m.Elif(requests.valid & requests.ready):
            m.d.sync += sent.eq(1)
        return m
