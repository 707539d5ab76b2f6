"""One stream for several rooms."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Fork"]


class Fork(wiring.Component):
    """Gives every item to each of ``n`` outputs, which take it in any order. Combinational, one item a cycle.

    Parameters
    ----------
    shape : shape-like
        Of the payload.
    n : int
        Number of outputs, at least 2.

    Members
    -------
    i : In(stream of shape)
        Accepted when the last output takes the item.
    o : Out(array of n stream of shape)
    """

    def __init__(self, shape, n):
        if not isinstance(n, int) or n < 2:
            raise ValueError(f"n must be an int of at least 2, not {n!r}")
        self.sent = Signal(n)  # outputs that have taken the item at ``i``
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)).array(n)})

    def elaborate(self, platform):
        m = Module()
        done = Signal.like(self.sent)
        for index, port in enumerate(self.o):
            m.d.comb += [
                port.p.eq(self.i.p),
                port.valid.eq(self.i.valid & ~self.sent[index]),
                done[index].eq(self.sent[index] | port.ready),
            ]
        m.d.comb += self.i.ready.eq(done.all())
        with m.If(self.i.valid):
            m.d.sync += self.sent.eq(done)
            with m.If(self.i.ready):
                m.d.sync += self.sent.eq(0)
        return m
