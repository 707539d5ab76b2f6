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

    Latency: one cycle. Throughput: one item a cycle. ``i.ready`` depends combinationally on ``o.ready``.

    Parameters
    ----------
    params : TmauParams
    shape : shape-like
        Of an item.
    row : function
        From the payload of ``i`` to the row that it concerns: byte address >> 7.

    Members
    -------
    windows : In(WindowsLayout)
    i : In(stream of shape)
    o : Out(stream of shape)
        Registered.
    """

    def __init__(self, params, shape, row):
        self._row = row
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
        m.d.comb += [
            inside.eq(~windows.confine_shared | ((windows.shared_first <= row) & (row <= windows.shared_last))),
            self.i.ready.eq(~self.o.valid | self.o.ready),
        ]
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid & inside), self.o.p.eq(self.i.p)]
        return m
