"""A crossbar between equal lanes."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["LaneCrossbar"]


class LaneCrossbar(wiring.Component):
    """Every output lane shows any input lane: permutations, broadcasts and all between. Combinational.

    Parameters
    ----------
    shape : shape-like
        Of one lane.
    lanes : int
        Number of lanes, a power of two.

    Members
    -------
    i : In(array of lanes shape)
    sel : In(array of lanes ceil_log2(lanes))
        For each output lane, the input lane that it shows.
    o : Out(array of lanes shape)
        ``o[k] = i[sel[k]]``.
    """

    def __init__(self, shape, lanes):
        # A number that names no lane would need an answer: there is none if the lanes are a power of two.
        if not isinstance(lanes, int) or lanes < 2 or lanes & (lanes - 1):
            raise ValueError(f"lanes must be a power of two and at least 2, not {lanes!r}")
        self._lanes = lanes
        super().__init__(
            {
                "i": In(data.ArrayLayout(shape, lanes)),
                "sel": In(data.ArrayLayout(ceil_log2(lanes), lanes)),
                "o": Out(data.ArrayLayout(shape, lanes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for lane in range(self._lanes):
            m.d.comb += self.o[lane].eq(self.i[self.sel[lane]])
        return m
