"""The stride calculator: from the shape of a tensor to where its elements lie in lanes.

Specification: docs/layouts.md, "Lane-local memory".
"""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import LaneLayout

from .layouts import ShapeLayout, StridesLayout

__all__ = ["StrideCalculator"]


class StrideCalculator(wiring.Component):
    """Works out the strides (docs/layouts.md, "How it is made"). Latency 6, one tensor a cycle.

    Lanes and ``eu_bytes`` are powers of two, so that dividing by them is shifting, and nothing stalls. There is one
    product a stage at most.

    Members
    -------
    i : In(ShapeLayout)
    o : Out(StridesLayout)
        Six cycles later.
    """

    def __init__(self, params):
        self._width = params.smem.addr_width + 1
        super().__init__({"i": In(ShapeLayout()), "o": Out(StridesLayout(params))})

    def elaborate(self, platform):
        m = Module()
        i = self.i
        width, height, channels, batches = (i.sizes[d] + 1 for d in range(4))
        eu_mask = Signal(15)  # ones below ``eu_bytes``
        m.d.comb += eu_mask.eq((1 << i.eu_log2) - 1)
        by_row, by_channel = i.layout == LaneLayout.ROW_ALIGNED, i.layout == LaneLayout.ALIGNED
        last_lane = Signal(16)
        m.d.comb += last_lane.eq((1 << i.lanes_log2) - 1)

        packed_row = self._later(m, "packed_row", width << i.element_log2, 1)
        row_mask = self._later(m, "row_mask", Mux(by_row, eu_mask, 0), 1)
        row, large1 = self._stage(m, "row", self._rounded(packed_row, row_mask), 0)
        # Rows of channels that a batch takes: it begins on a new one, even where the batch before left lanes free.
        occupied = self._later(m, "occupied", i.start_lane + channels + last_lane, 1)
        slots = occupied >> self._later(m, "lanes_log2", i.lanes_log2, 1)

        plane, large2 = self._stage(m, "plane", row * self._later(m, "height", height, 2), large1)
        mask = self._later(m, "mask", Mux(by_channel, eu_mask, 0), 3)
        channel, large3 = self._stage(m, "channel", self._rounded(plane, mask), large2)
        batch, large4 = self._stage(m, "batch", channel * self._later(m, "slots", slots, 3), large3)
        total, large5 = self._stage(m, "total", batch * self._later(m, "batches", batches, 5), large4)
        m.d.comb += [
            self.o.row.eq(self._later(m, "row", row, 4)),
            self.o.channel.eq(self._later(m, "channel", channel, 2)),
            self.o.batch.eq(self._later(m, "batch", batch, 1)),
            self.o.bytes.eq(total),
            self.o.too_large.eq(large5),
        ]
        return m

    def _stage(self, m, name, value, was_large):
        """Registers of a stage: the value, and behind them whether it is cut, or one before it was.

        No factor is zero: what is cut once would have stayed too large.
        """
        kept, before = Signal.like(value, name=name), Signal(name=f"{name}_large")
        m.d.sync += [kept.eq(value), before.eq(was_large)]
        return kept[: self._width], kept[self._width :].any() | before

    @staticmethod
    def _rounded(value, mask):
        """``value`` rounded up to where the bits of ``mask`` are zero."""
        beyond = value + mask
        return beyond ^ (beyond & mask)

    @staticmethod
    def _later(m, name, value, cycles):
        """``value`` as it was some cycles ago."""
        for cycle in range(cycles):
            delayed = Signal.like(value, name=f"{name}_{cycle + 1}")
            m.d.sync += delayed.eq(value)
            value = delayed
        return value
