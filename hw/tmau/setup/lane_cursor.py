"""Where the next piece of a tensor lies in its lanes."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import StridesLayout

__all__ = ["LaneCursor"]


class LaneCursor(wiring.Component):
    """Follows one side of a copy from row to row, from channel to channel, and from batch to batch.

    A step takes one cycle and one addition.

    Members
    -------
    strides : In(StridesLayout)
    lanes_log2 : In(3)
    start_lane : In(6)
    base : In(params.smem.addr_width)
        The tensor's byte address in every lane. Like the strides constant from ``start`` on.
    start : In(1)
        Strobe: go to the first piece.
    step : In(1)
        Strobe: go to the next row; with ``next_channel`` to the next channel, with ``next_batch`` to the next batch.
    next_channel, next_batch : In(1)
    address : Out(params.smem.addr_width)
        Byte address in shared memory of the piece.
    """

    def __init__(self, params):
        self._width = params.smem.addr_width
        super().__init__(
            {
                "strides": In(StridesLayout(params)),
                "lanes_log2": In(3),
                "start_lane": In(6),
                "base": In(self._width),
                "start": In(1),
                "step": In(1),
                "next_channel": In(1),
                "next_batch": In(1),
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
