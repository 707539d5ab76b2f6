"""Requests for feature rows (docs/conv.md, "Order of work", "From a kernel to rows")."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from tilewright.spec.conv import KERNEL_ROWS

from ...lib.logic import delay
from ...lib.stream import ShallowQueue
from ..layouts import GatherLayout, PieceLayout, PlanLayout
from .lanes import LaneWalker
from .places import NUMBERS, PlaceTable, PointWalker, TablePlaceLayout
from .sets import FeatureTagLayout, OffsetsLayout, SetWalker

__all__ = ["FeatureFetcher", "PieceMaker"]


class PieceMaker(wiring.Component):
    """Makes the pieces of a request, one for each lane, from places and offsets.

    Byte i of a piece is in X if its row and its column are, or with merged columns its position in the line, and if the
    pixel has more than i bytes. The distances to these ends are first saturated to a few bits, in multiples of 16; then
    the distance of the piece from the first piece of its place is added, which is a multiple of 16 too, up to 112.

    Latency: ``LATENCY`` cycles. Throughput: a request a cycle, without stalls.

    Parameters
    ----------
    params : ConvUnitParams
    """

    LATENCY = 4

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "plan": In(PlanLayout(params)),  # constant while pieces are made
                "offsets": In(OffsetsLayout(params)),
                # By lane. With ``offsets.kernel`` ignored.
                "places": In(data.ArrayLayout(TablePlaceLayout(params), params.lanes)),
                "pieces": Out(data.ArrayLayout(PieceLayout(params), params.lanes)),  # registered
            }
        )

    def elaborate(self, platform):
        m = Module()
        granularity, offsets, slots = self.plan.granularity, self.offsets, self._params.row_slots

        # The remaining bytes of the pixel, at most one piece if a piece has less than 16 bytes; and the block.
        small = Signal(4)
        m.d.comb += small.eq(Cat(granularity == bit for bit in range(4)))
        rest = Mux((small != 0) & (offsets.rest > small), small, offsets.rest)
        rest, second = delay(m, rest[:8], 2, name="rest"), delay(m, offsets.second, 2, name="second")
        kernel = delay(m, offsets.kernel, 1, name="kernel")
        for lane in range(self._params.lanes):
            number = Signal(range(2 * slots), name=f"number{lane}")  # of the piece, of those for its place
            in_block = Cat((granularity > 4 + bit) & (lane >> bit & 1) for bit in range(slots.bit_length() - 1))
            m.d.comb += number.eq(Cat(in_block, second[2 * lane // self._params.lanes]))
            self._piece(m, lane, number, kernel, rest)
        return m

    def _piece(self, m, lane, number, kernel, rest):
        """Makes the piece of a lane in four stages."""
        plan, offsets, place, piece = self.plan, self.offsets, self.places[lane], self.pieces[lane]

        def signal(shape, name):
            return Signal(shape, name=f"{name}{lane}", reset_less=True)

        # Sums, and whether the piece has any bytes.
        address, inside = signal(piece.address.shape(), "address"), signal(1, "inside")
        begin, end = (signal(signed(self._params.position_width), name) for name in ("begin", "end"))
        of_row = (place.row >= offsets.row_begin) & (place.row < offsets.row_end)
        m.d.sync += [
            address.eq(Mux(offsets.kernel, 0, place.x) + offsets.x),
            begin.eq(place.position + offsets.position),
            end.eq(offsets.position_end - place.position),
            inside.eq(Mux(offsets.kernel, self._of_kernel(lane), self._of_set(lane) & place.there & of_row)),
        ]

        # Distances to both ends of the line in parts of 16 bytes, saturated, and their remainders. If positions are
        # columns the whole piece is inside or outside, and ``end`` is one less.
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

        # Bytes before the begin of the line, up to its end, and up to the end of the pixel.
        (begin_part, begin_rest), (end_part, end_rest) = parts
        address_3, inside_3 = signal(address.shape(), "address_3"), signal(1, "inside_3")
        before, in_line, in_pixel = (signal(5, name) for name in ("before", "in_line", "in_pixel"))
        first, last, whole = (Signal(signed(6), name=f"{name}{lane}") for name in ("first", "last", "whole"))
        m.d.comb += [first.eq(begin_part + number), last.eq(end_part - number), whole.eq(rest[4:] - number)]
        m.d.sync += [
            address_3.eq(address_2 + (number << 4)),
            inside_3.eq(inside_2),
            before.eq(Mux(first >= 0, 0, Mux(first == -1, 16 - begin_rest, 16))),
            in_line.eq(Mux(last < 0, 0, Mux(last == 0, end_rest, 16))),
            in_pixel.eq(Mux(whole < 0, 0, Mux(whole == 0, rest[:4], 16))),
        ]
        m.d.sync += [
            piece.address.eq(address_3),
            piece.low.eq(before),
            piece.high.eq(Mux(inside_3, Mux(in_line < in_pixel, in_line, in_pixel), 0)),
        ]

    def _of_kernel(self, lane):
        """Whether a row of the kernel, which is one block, has the piece."""
        return ~self.plan.pool & (self.plan.granularity >= 4 + lane.bit_length() if lane else 1)

    def _of_set(self, lane):
        """Whether sets have the piece: the rows of few slaves may be less than a request."""
        rows = self._params.conv.slaves * self._params.row_slots
        if lane < rows:
            return 1
        return ~self.plan.lanes | (self.plan.granularity <= 4 - (lane // rows).bit_length())


#: Requests that wait or are being made: enough to make one in each cycle.
_REQUESTS = 8
#: Cycles until the offsets of a request, and its places, are valid.
_OFFSETS = 2


class FeatureFetcher(wiring.Component):
    """Requests the sets of rows of a job, while the first buffer has room for them.

    A request has ``lanes`` pieces, all of one set. If a row is one point (pci = M), the same rows of two successive
    blocks are requested together, the even set by the lower half of the pieces and the odd set by the upper half, so
    that contiguous bytes of a pixel are read together. In lane-private mode words of the slaves' memories are
    requested, and rows of the kernel.

    Throughput: a request a cycle, also between sets, kernel rows and tiles, while the buffer has room and the next tile
    has been walked. A tile is walked one place a cycle, or two (``params.place_pairs``), beginning when the tile before
    the previous one has been requested. In lane-private mode no places are walked.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        self.walker = PointWalker(params, NUMBERS, pairs=params.place_pairs)
        self.table = PlaceTable(params)
        self.sets = SetWalker(params)
        self.lanes = LaneWalker(params)
        self.maker = PieceMaker(params)
        self.queue = ShallowQueue(GatherLayout(params, FeatureTagLayout(params)), _REQUESTS)
        self.free = Signal(range(params.sets + 1), init=params.sets)  # sets without requests
        self.asked = Signal(range(2 * params.words))  # words that have been requested
        self.asked_kernel = Signal(range(2 * KERNEL_ROWS))
        self.places = Signal(range(_REQUESTS + 1), init=_REQUESTS)  # requests for which the queue has room
        self.made = Signal(_OFFSETS + self.maker.LATENCY)  # for each stage: a request is being made
        super().__init__(
            {
                "start": In(1),  # Strobe, while not ``busy``
                "plan": In(PlanLayout(params)),  # constant from ``start`` on while ``busy``
                "busy": Out(1),  # from the cycle after ``start`` until the last request has been accepted
                # Strobe: the oldest set of the buffer is free. Sets are numbered from 0 after a reset, over jobs.
                "release": In(1),
                # Words before this one are free; a count over jobs that wraps after two rounds of the memory.
                "freed": In(range(2 * params.words)),
                "freed_kernel": In(range(2 * KERNEL_ROWS)),  # the same for rows of the kernel
                "requests": Out(stream.Signature(GatherLayout(params, FeatureTagLayout(params)))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.walker, m.submodules.table, m.submodules.sets = self.walker, self.table, self.sets
        m.submodules.lanes, m.submodules.maker, m.submodules.queue = self.lanes, self.maker, self.queue
        plan, walker, table, sets = self.plan, self.walker, self.table, self.sets
        lanes, maker, queue = self.lanes, self.maker, self.queue
        connect(m, walker.o, table.i)
        # Requests are made ahead and wait here until there is room, so that a set is reserved as late as possible.
        accepted, room, claimed = Signal(), Signal(), Signal(2)
        tag = queue.o.payload.tag
        first, pair, in_set = (tag.part == 0) & ~tag.turned, tag.pair, ~(tag.slaves | tag.kernel)
        full, full_kernel = Signal.like(self.freed), Signal.like(self.freed_kernel)
        with m.If(in_set):
            m.d.comb += room.eq(~first | (self.free > 1) | (self.free[0] & ~pair))
        with m.Elif(tag.slaves):
            m.d.comb += room.eq(~first | ~full[-1])
        with m.Else():
            m.d.comb += room.eq(~full_kernel[-1])
        m.d.comb += [
            full.eq(self.asked - self.freed + pair),
            full_kernel.eq(self.asked_kernel - self.freed_kernel),
            self.requests.payload.eq(queue.o.payload),
            self.requests.valid.eq(queue.o.valid & room),
            accepted.eq(self.requests.valid & self.requests.ready),
            queue.o.ready.eq(self.requests.ready & room),
            claimed.eq(Mux(accepted & first, Mux(pair, 2, 1), 0)),
        ]
        m.d.sync += [
            self.free.eq(self.free - Mux(in_set, claimed, 0) + self.release),
            self.asked.eq(self.asked + Mux(tag.slaves, claimed, 0)),
            self.asked_kernel.eq(self.asked_kernel + (accepted & tag.kernel)),
        ]

        step = Signal()
        m.d.comb += [
            *(block.plan.eq(plan) for block in (walker, table, sets, lanes, maker)),
            walker.start.eq(self.start & ~plan.lanes),
            sets.start.eq(self.start & ~plan.lanes),
            lanes.start.eq(self.start & plan.lanes),
            step.eq((table.full | lanes.busy) & (self.places != 0)),
            sets.step.eq(step & ~plan.lanes),
            lanes.step.eq(step & plan.lanes),
            sets.final.eq(table.final),
            table.part.eq(sets.part),
            table.pair.eq(sets.pair),
            table.take.eq(sets.step & sets.last),
            maker.offsets.eq(Mux(plan.lanes, lanes.offsets, sets.offsets)),
            maker.places.eq(Mux(plan.lanes, lanes.places, table.o)),
            self.busy.eq(walker.o.valid | table.full | lanes.busy | (self.places != _REQUESTS)),
        ]
        m.d.sync += [self.places.eq(self.places - step + accepted), self.made.eq(Cat(step, self.made))]

        request = queue.i.payload
        m.d.comb += [
            queue.i.valid.eq(self.made[-1]),
            request.tag.eq(delay(m, Mux(plan.lanes, lanes.tag, sets.tag), len(self.made), name="tag")),
            request.pieces.eq(maker.pieces),
            request.size.eq(Mux(plan.granularity > 4, 4, plan.granularity)),
            request.fill.eq(Mux(request.tag.kernel, plan.k_fill, plan.x_fill)),
        ]
        if self._params.reuses_reads:
            m.d.comb += [
                request.reuse.part.eq(request.tag.part),
                request.reuse.keep.eq(~(request.tag.slaves | request.tag.kernel | request.tag.pair)),
                request.reuse.again.eq(delay(m, sets.again, len(self.made), name="again")),
            ]
        return m
