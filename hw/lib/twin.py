"""A stream stage for a wide payload and a late ready."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["TwinBuffer"]


class TwinBuffer(wiring.Component):
    """Two registers by turns: what shows is chosen behind them, and ``o.ready`` reaches none of their enables.

    Latency 1, one transfer a cycle. Holds two items. As large as a :class:`~tilewright.hw.lib.stream.SkidBuffer`, for a
    payload that is wide and a ``ready`` that comes late: the choice is in front of what the payload goes to.

    Parameters
    ----------
    shape : shape-like
        Of the payload.

    Members
    -------
    i : In(stream of shape)
        ``ready`` is a register.
    o : Out(stream of shape)
        ``valid`` is a register, ``payload`` one of two.
    """

    def __init__(self, shape):
        self.slots = [Signal(shape, name=f"slot{number}") for number in range(2)]
        self.head = Signal()  # the slot of the item at the output
        self.tail = Signal()  # that of the next item
        self.full = Signal()
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        push, pop = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~self.full),
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
            self.o.payload.eq(Mux(self.head, self.slots[1], self.slots[0])),
        ]
        m.d.sync += [
            self.head.eq(self.head ^ pop),
            self.tail.eq(self.tail ^ push),
            self.o.valid.eq(push | self.full | (self.o.valid & ~pop)),
            self.full.eq((self.full | (self.o.valid & push)) & ~pop),
        ]
        for number, slot in enumerate(self.slots):
            # Whatever comes: what is no item is written over by the next one.
            with m.If((self.tail == number) & ~self.full):
                m.d.sync += slot.eq(self.i.payload)
        return m
