"""Pieces of feature rows: addresses, and which of their bytes are of X (docs/conv.md, "From a kernel to rows")."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import PieceLayout, PlanLayout
from .sets import OffsetsLayout
from .table import TablePlaceLayout

__all__ = ["PieceMaker"]


class PieceMaker(wiring.Component):
    """Makes the pieces of a request, one a lane, of places and offsets. A request a cycle, latency 4, no stalls.

    Byte i of a piece lies in X if its row does, and its column, or where columns are merged its place in the line, and
    if the pixel has so many bytes. Distances to these ends are cut to multiples of 16 that a few bits hold before the
    distance of the piece from the first one of its place is added: that is a multiple of 16 too, up to 112.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Constant while pieces are made.
    offsets : In(OffsetsLayout(params))
    places : In(array of params.lanes TablePlaceLayout(params))
        By lane. With ``offsets.kernel`` ignored.
    pieces : Out(array of params.lanes PieceLayout(params))
        Registered.
    """

    LATENCY = 4

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "offsets": In(OffsetsLayout(params)),
                "places": In(data.ArrayLayout(TablePlaceLayout(params), params.lanes)),
                "pieces": Out(data.ArrayLayout(PieceLayout(params), params.lanes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        granularity, offsets, slots = self.plan.granularity, self.offsets, self.params.row_slots

        # What is left of the pixel, at most a piece if that has less than 16 bytes; and which block is meant.
        least, rests, seconds = Signal(4), [Signal(8, name=f"rest{n}") for n in (1, 2)], Signal(data.ArrayLayout(2, 2))
        kernel = Signal()
        m.d.comb += least.eq(Cat(granularity == bit for bit in range(4)))
        m.d.sync += [
            rests[0].eq(Mux((least != 0) & (offsets.rest > least), least, offsets.rest)),
            rests[1].eq(rests[0]),
            seconds[0].eq(offsets.second),
            seconds[1].eq(seconds[0]),
            kernel.eq(offsets.kernel),
        ]
        for lane in range(self.params.lanes):
            number = Signal(range(2 * slots), name=f"number{lane}")  # of the piece in what is asked of its place
            in_block = Cat((granularity > 4 + bit) & (lane >> bit & 1) for bit in range(slots.bit_length() - 1))
            m.d.comb += number.eq(Cat(in_block, seconds[1][2 * lane // self.params.lanes]))
            self._piece(m, lane, number, kernel, rests[1])
        return m

    def _piece(self, m, lane, number, kernel, rest):
        """The piece of a lane in four stages."""
        plan, offsets, place, piece = self.plan, self.offsets, self.places[lane], self.pieces[lane]

        def signal(shape, name):
            return Signal(shape, name=f"{name}{lane}", reset_less=True)

        # Sums; whether there is anything at all.
        address, inside = signal(piece.address.shape(), "address"), signal(1, "inside")
        begin, end = (signal(signed(self.params.position_width), name) for name in ("begin", "end"))
        of_row = (place.row >= offsets.row_begin) & (place.row < offsets.row_end)
        m.d.sync += [
            address.eq(Mux(offsets.kernel, 0, place.x) + offsets.x),
            begin.eq(place.position + offsets.position),
            end.eq(offsets.position_end - place.position),
            inside.eq(Mux(offsets.kernel, self._of_kernel(lane), self._of_set(lane) & place.there & of_row)),
        ]

        # Distances to both ends of the line in parts of 16 bytes, as far as matters, and what remains. Where columns
        # count all is inside or nothing, and ``end`` is one less.
        address_2, inside_2 = signal(address.shape(), "address_2"), signal(1, "inside_2")
        m.d.sync += [address_2.eq(address), inside_2.eq(inside)]
        parts = []
        for name, distance in (("begin", begin), ("end", end)):
            part, remainder = signal(signed(5), f"{name}_part"), signal(4, f"{name}_rest")
            near = distance[8:-1] == distance[-1].replicate(len(distance) - 9)
            m.d.sync += [
                part.eq(Mux(plan.merged & near, distance[4:9], Cat((~distance[-1]).replicate(4), distance[-1]))),
                remainder.eq(distance[:4]),
            ]
            with m.If(kernel):
                m.d.sync += part.eq(15)
            parts.append((part, remainder))

        # Bytes before the begin, up to the end, and up to the pixel's end.
        (begin_part, begin_rest), (end_part, end_rest) = parts
        address_3, inside_3 = signal(address.shape(), "address_3"), signal(1, "inside_3")
        before, behind, left = (signal(5, name) for name in ("before", "behind", "left"))
        first, last, whole = (Signal(signed(6), name=f"{name}{lane}") for name in ("first", "last", "whole"))
        m.d.comb += [
            first.eq(begin_part + number),
            last.eq(end_part - number),
            whole.eq(rest[4:] - number),
        ]
        m.d.sync += [
            address_3.eq(address_2 + (number << 4)),
            inside_3.eq(inside_2),
            before.eq(Mux(first >= 0, 0, Mux(first == -1, 16 - begin_rest, 16))),
            behind.eq(Mux(last < 0, 0, Mux(last == 0, end_rest, 16))),
            left.eq(Mux(whole < 0, 0, Mux(whole == 0, rest[:4], 16))),
        ]
        m.d.sync += [
            piece.address.eq(address_3),
            piece.low.eq(before),
            piece.high.eq(Mux(inside_3, Mux(behind < left, behind, left), 0)),
        ]

    def _of_kernel(self, lane):
        """Whether a row of the kernel has the piece: it is one block."""
        return ~self.plan.pool & (self.plan.granularity >= 4 + lane.bit_length() if lane else 1)

    def _of_set(self, lane):
        """Whether sets have it: all rows of few slaves may be less than a request."""
        rows = self.params.conv.slaves * self.params.row_slots
        if lane < rows:
            return 1
        return ~self.plan.lanes | (self.plan.granularity <= 4 - (lane // rows).bit_length())
