"""A gate in a stream."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamGate"]


class StreamGate(wiring.Component):
    """Lets items pass while it is open. Combinational; an item that the sink has been offered passes anyway.

    Parameters
    ----------
    shape : shape-like
        Of the payload.

    Members
    -------
    i : In(stream of shape)
    o : Out(stream of shape)
    closed : In(1)
    """

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape)), "closed": In(1)})

    def elaborate(self, platform):
        m = Module()
        offered, passes = Signal(), Signal()
        m.d.sync += offered.eq(self.o.valid & ~self.o.ready)
        m.d.comb += [
            passes.eq(~self.closed | offered),
            self.o.valid.eq(self.i.valid & passes),
            self.o.payload.eq(self.i.payload),
            self.i.ready.eq(self.o.ready & passes),
        ]
        return m
