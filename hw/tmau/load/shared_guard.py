"""The last stage before shared memory: nothing leaves the shared window (docs/tmau.md, "Windows")."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import WindowsLayout

__all__ = ["SharedGuard"]


class SharedGuard(wiring.Component):
    """One register for what goes to shared memory; what lies outside the window is swallowed.

    Setup has refused every command that would leave the window, so nothing is swallowed unless a block before this one
    is wrong. Addresses are compared in front of the register.

    Latency: one cycle. Throughput: one item a cycle; with ``late`` one every second cycle. ``i.ready`` depends
    combinationally on ``o.ready``.

    Parameters
    ----------
    params : TmauParams
    shape : shape-like
        Of an item.
    row : function
        From the payload of ``i`` to the row that it concerns: byte address >> 7.
    late : bool
        An item is accepted as it leaves, or as it is swallowed: then its source knows that it has arrived.

    Members
    -------
    windows : In(WindowsLayout)
        Of the item at ``i``; they hold while it waits.
    i : In(stream of shape)
    o : Out(stream of shape)
        Registered.
    """

    def __init__(self, params, shape, row, late=False):
        self._row = row
        self._late = late
        self.taken = Signal()  # with ``late``: the item at the input is in the register, or was swallowed
        super().__init__(
            {
                "windows": In(WindowsLayout(params)),
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        windows, row = self.windows, self._row(self.i.p)
        inside = Signal()
        m.d.comb += inside.eq(~windows.confine_shared | ((windows.shared_first <= row) & (row <= windows.shared_last)))
        done = ~self.o.valid | self.o.ready
        if self._late:
            m.d.comb += self.i.ready.eq(self.taken & done)
            m.d.sync += self.taken.eq(self.i.valid & ~self.i.ready)
        else:
            m.d.comb += self.i.ready.eq(done)
        with m.If(done):
            m.d.sync += [self.o.valid.eq(self.i.valid & inside & ~self.taken), self.o.p.eq(self.i.p)]
        return m
