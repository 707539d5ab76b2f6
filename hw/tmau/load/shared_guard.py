"""The last stage before shared memory: nothing leaves the shared window (docs/tmau.md, "Windows")."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...smem.layouts import LandedLayout, LineLayout
from ..layouts import WindowsLayout

__all__ = ["SharedGuard"]


class SharedGuard(wiring.Component):
    """Passes lines and landed bytes on; those that lie outside the window are swallowed.

    Setup has refused every command that would leave the window, so nothing is swallowed unless a room before this one
    is wrong. Combinational.

    Members
    -------
    windows : In(WindowsLayout)
    writes : In(stream of LineLayout)
    guarded_writes : Out(stream of LineLayout)
    landed : In(stream of LandedLayout)
    guarded_landed : Out(stream of LandedLayout)
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "windows": In(WindowsLayout(params)),
                "writes": In(stream.Signature(LineLayout(params.smem))),
                "guarded_writes": Out(stream.Signature(LineLayout(params.smem))),
                "landed": In(stream.Signature(LandedLayout(params.smem))),
                "guarded_landed": Out(stream.Signature(LandedLayout(params.smem))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        windows = self.windows
        for i, o, row in (
            (self.writes, self.guarded_writes, self.writes.p.row),
            (self.landed, self.guarded_landed, self.landed.p.barrier[7:]),
        ):
            inside = Signal()
            m.d.comb += [
                inside.eq(~windows.confine_shared | ((windows.shared_first <= row) & (row <= windows.shared_last))),
                o.p.eq(i.p),
                o.valid.eq(i.valid & inside),
                i.ready.eq(o.ready | ~inside),
            ]
        return m
