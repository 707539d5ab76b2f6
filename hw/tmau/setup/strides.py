"""Tensors in lanes: the strides of a tensor, and the addresses of its pieces (docs/layouts.md, "Lane-local memory")."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import LaneLayout

from ...lib.logic import delay

__all__ = ["LaneCursor", "ShapeLayout", "StrideCalculator", "StridesLayout"]


class ShapeLayout(data.StructLayout):
    """A tensor and the lanes that hold it. Global memory is a single compact lane."""

    def __init__(self):
        super().__init__(
            {
                "sizes": data.ArrayLayout(16, 4),  # W H C N, elements minus one
                "element_log2": unsigned(2),  # log2 of the element's bytes
                "lanes_log2": unsigned(4),
                "eu_log2": unsigned(4),  # log2 of ``eu_bytes``
                "start_lane": unsigned(8),
                "layout": unsigned(2),  # spec.LaneLayout; GLOBAL and COMPACT are the same here
            }
        )


class StridesLayout(data.StructLayout):
    """Distances in bytes in one lane."""

    def __init__(self, params):
        length = params.smem.addr_width + 1
        super().__init__(
            {
                "row": unsigned(length),  # from row to row
                "channel": unsigned(length),  # from channel to channel in the same lane
                "batch": unsigned(length),  # from batch to batch
                "bytes": unsigned(length),  # of the tensor in one lane
                "too_large": unsigned(1),  # exceeds shared memory; the other members are undefined
            }
        )


class StrideCalculator(wiring.Component):
    """Computes strides (docs/layouts.md, "How it is made"). Latency 6, one tensor a cycle, without back-pressure.

    Lanes and ``eu_bytes`` are powers of two, so divisions are shifts. No stage has more than one multiplication.
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
        # Rows of channels per batch. A batch begins on a new row, even if the previous batch left lanes free.
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
        """Registers of a stage: the value, truncated, and whether this or an earlier value was too large.

        No factor is zero, so a value that has been too large stays too large.
        """
        result, before = Signal.like(value, name=name), Signal(name=f"{name}_large")
        m.d.sync += [result.eq(value), before.eq(was_large)]
        return result[: self._width], result[self._width :].any() | before

    @staticmethod
    def _rounded(value, mask):
        """``value`` rounded up until the bits of ``mask`` are zero."""
        beyond = value + mask
        return beyond ^ (beyond & mask)


class LaneCursor(wiring.Component):
    """Follows one side of a copy from row to row, channel to channel, and batch to batch, with one addition a cycle."""

    def __init__(self, params):
        self._width = params.smem.addr_width
        super().__init__(
            {
                "strides": In(StridesLayout(params)),
                "lanes_log2": In(3),
                "start_lane": In(6),
                "base": In(self._width),  # Byte address of the tensor in every lane. Constant, like the strides.
                "start": In(1),  # Strobe: go to the first piece.
                # Strobe: go to the next row, or with one of the following to the next channel or batch.
                "step": In(1),
                "next_channel": In(1),
                "next_batch": In(1),
                "address": Out(self._width),  # Byte address of the piece in shared memory.
            }
        )

    def elaborate(self, platform):
        m = Module()
        width, strides = self._width, self.strides
        lane, last_lane = Signal(6), Signal(6)
        row, channel, batch = Signal(width), Signal(width), Signal(width)  # offsets in the lane at which each begins
        wraps = Signal()  # the next channel is in lane 0
        origin, stride, place = Signal(width), Signal(width), Signal(width)
        m.d.comb += [
            last_lane.eq(Cat(self.lanes_log2 > bit for bit in range(len(lane)))),  # a power of two minus one
            wraps.eq(lane == last_lane),
            origin.eq(row),
            stride.eq(strides.row),
            place.eq(origin + stride),
            # The size of a lane is a power of two, and the tensor fits it.
            self.address.eq((lane << width >> self.lanes_log2) | row),
        ]
        with m.If(self.next_batch):
            m.d.comb += [origin.eq(batch), stride.eq(strides.batch)]
        with m.Elif(self.next_channel):
            m.d.comb += [origin.eq(channel), stride.eq(Mux(wraps, strides.channel, 0))]

        with m.If(self.start):
            m.d.sync += [lane.eq(self.start_lane), row.eq(self.base), channel.eq(self.base), batch.eq(self.base)]
        with m.Elif(self.step):
            m.d.sync += row.eq(place)
            with m.If(self.next_batch):
                m.d.sync += [batch.eq(place), channel.eq(place), lane.eq(self.start_lane)]
            with m.Elif(self.next_channel):
                m.d.sync += [channel.eq(place), lane.eq(Mux(wraps, 0, lane + 1))]
        return m
