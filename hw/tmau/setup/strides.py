"""The stride calculator: from the shape of a tensor to where its elements lie in lanes.

Specification: docs/layouts.md, "Lane-local memory".
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import LaneLayout

from ...lib.logic import delay
from .layouts import ShapeLayout, StridesLayout

__all__ = ["LaneCursor", "StrideCalculator"]


class StrideCalculator(wiring.Component):
    """Works out the strides (docs/layouts.md, "How it is made"). Latency 6, one tensor a cycle.

    Lanes and ``eu_bytes`` are powers of two, so that dividing by them is shifting, and nothing stalls. There is one
    product a stage at most.
    """

    def __init__(self, params):
        self._width = params.smem.addr_width + 1
        # Six cycles later.
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

        packed_row = delay(m, width << i.element_log2, 1, name="packed_row")
        row_mask = delay(m, Mux(by_row, eu_mask, 0), 1, name="row_mask")
        row, large1 = self._stage(m, "row", self._rounded(packed_row, row_mask), 0)
        # Rows of channels that a batch takes: it begins on a new one, even where the batch before left lanes free.
        occupied = delay(m, i.start_lane + channels + last_lane, 1, name="occupied")
        slots = occupied >> delay(m, i.lanes_log2, 1, name="lanes_log2")

        plane, large2 = self._stage(m, "plane", row * delay(m, height, 2, name="height"), large1)
        mask = delay(m, Mux(by_channel, eu_mask, 0), 3, name="mask")
        channel, large3 = self._stage(m, "channel", self._rounded(plane, mask), large2)
        batch, large4 = self._stage(m, "batch", channel * delay(m, slots, 3, name="slots"), large3)
        total, large5 = self._stage(m, "total", batch * delay(m, batches, 5, name="batches"), large4)
        m.d.comb += [
            self.o.row.eq(delay(m, row, 4, name="row")),
            self.o.channel.eq(delay(m, channel, 2, name="channel")),
            self.o.batch.eq(delay(m, batch, 1, name="batch")),
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


class LaneCursor(wiring.Component):
    """Follows one side of a copy from row to row, from channel to channel, and from batch to batch.

    A step takes one cycle and one addition.
    """

    def __init__(self, params):
        self._width = params.smem.addr_width
        super().__init__(
            {
                "strides": In(StridesLayout(params)),
                "lanes_log2": In(3),
                "start_lane": In(6),
                # The tensor's byte address in every lane. Like the strides constant from ``start`` on.
                "base": In(self._width),
                # Strobe: go to the first piece.
                "start": In(1),
                # Strobe: go to the next row; with ``next_channel`` to the next channel, with ``next_batch`` to the next
                # batch.
                "step": In(1),
                "next_channel": In(1),
                "next_batch": In(1),
                # Byte address in shared memory of the piece.
                "address": Out(self._width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        width, strides = self._width, self.strides
        lane, last_lane = Signal(6), Signal(6)
        row, channel, batch = Signal(width), Signal(width), Signal(width)  # offsets in the lane where each begins
        wraps = Signal()  # the next channel is in lane 0
        origin, stride, place = Signal(width), Signal(width), Signal(width)
        m.d.comb += [
            last_lane.eq(Cat(self.lanes_log2 > bit for bit in range(len(lane)))),  # a power of two, less one
            wraps.eq(lane == last_lane),
            origin.eq(row),
            stride.eq(strides.row),
            place.eq(origin + stride),
            # A lane is a power of two long, and the tensor lies in it.
            self.address.eq((lane << width >> self.lanes_log2) | row),
        ]
        with m.If(self.next_batch):
            m.d.comb += [origin.eq(batch), stride.eq(strides.batch)]
        with m.Elif(self.next_channel):
            m.d.comb += [origin.eq(channel), stride.eq(Mux(wraps, strides.channel, 0))]

        with m.If(self.start):
            m.d.sync += [
                lane.eq(self.start_lane),
                row.eq(self.base),
                channel.eq(self.base),
                batch.eq(self.base),
            ]
        with m.Elif(self.step):
            m.d.sync += row.eq(place)
            with m.If(self.next_batch):
                m.d.sync += [batch.eq(place), channel.eq(place), lane.eq(self.start_lane)]
            with m.Elif(self.next_channel):
                m.d.sync += [channel.eq(place), lane.eq(Mux(wraps, 0, lane + 1))]
        return m
