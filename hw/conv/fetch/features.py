"""Pieces of feature rows: addresses, and which of their bytes are of X (docs/conv.md, "From a kernel to rows")."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.conv import KERNEL_ROWS

from ...lib.logic import delay
from ...lib.stream import ShallowQueue
from ..layouts import GatherLayout, PieceLayout, PlanLayout
from .lanes import LaneWalker
from .places import NUMBERS, PlaceTable, PointWalker, TablePlaceLayout
from .sets import FeatureTagLayout, OffsetsLayout, SetWalker

__all__ = ["FeatureFetcher", "PieceMaker"]


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


#: Requests that wait, or are being made: as many as it takes to make one in each cycle.
_REQUESTS = 8
#: Cycles until the offsets of a request, and its places, are there.
_OFFSETS = 2


class FeatureFetcher(wiring.Component):
    """Asks for the sets of rows of a job, while the first buffer has room for them.

    A request is ``lanes`` pieces, and never of more than one set; but where a row is one point (pci = M) the same rows
    of two successive blocks are asked for together: even sets by the lower half of the pieces, odd ones by the upper
    half, so that the bytes of a pixel that adjoin are read together. In lane-private mode words of the slaves' memories
    are asked for, and rows of the kernel.

    A request a cycle, without a gap between sets, kernel rows and tiles, while the buffer has room and the next tile
    has been walked, at a place a cycle, or two (``params.place_pairs``). That begins when the tile before the last one
    has been asked for. In lane-private mode there are no places to be walked.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    start : In(1)
        Strobe, while not ``busy``.
    plan : In(PlanLayout(params))
        Constant from the cycle of ``start`` on while ``busy``.
    busy : Out(1)
        From the cycle after ``start`` until the last request has been taken.
    release : In(1)
        Strobe: the oldest set of the buffer is free. Sets begin with number 0 after a reset, and go on over jobs.
    freed : In(range(2 * params.words))
        Words before this one are free, which counts on over jobs and once more round the memory.
    freed_kernel : In(range(2 * KERNEL_ROWS))
        Rows of the kernel, likewise.
    requests : Out(stream of GatherLayout(params, FeatureTagLayout(params)))
    """

    def __init__(self, params):
        self.params = params
        self.walker = PointWalker(params, NUMBERS, pairs=params.place_pairs)
        self.table = PlaceTable(params)
        self.sets = SetWalker(params)
        self.lanes = LaneWalker(params)
        self.maker = PieceMaker(params)
        self.queue = ShallowQueue(GatherLayout(params, FeatureTagLayout(params)), _REQUESTS)
        self.free = Signal(range(params.sets + 1), init=params.sets)  # sets that nothing has been asked for
        self.asked = Signal(range(2 * params.words))  # words that have been asked for
        self.asked_kernel = Signal(range(2 * KERNEL_ROWS))
        self.places = Signal(range(_REQUESTS + 1), init=_REQUESTS)  # requests that the queue has room for
        self.made = Signal(_OFFSETS + self.maker.LATENCY)  # for each cycle: a request is being made
        super().__init__(
            {
                "start": In(1),
                "plan": In(PlanLayout(params)),
                "busy": Out(1),
                "release": In(1),
                "freed": In(range(2 * params.words)),
                "freed_kernel": In(range(2 * KERNEL_ROWS)),
                "requests": Out(stream.Signature(GatherLayout(params, FeatureTagLayout(params)))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.walker, m.submodules.table, m.submodules.sets = walker, table, sets = (
            self.walker,
            self.table,
            self.sets,
        )
        m.submodules.maker, m.submodules.queue = maker, queue = self.maker, self.queue
        m.submodules.lanes, plan = self.lanes, self.plan
        wiring.connect(m, walker.o, table.i)
        # Requests are made ahead; they wait for room here, so that a set is held for no longer than it must.
        taken, room, claimed = Signal(), Signal(), Signal(2)
        tag = queue.o.p.tag
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
            taken.eq(self.requests.valid & self.requests.ready),
            queue.o.ready.eq(self.requests.ready & room),
            claimed.eq(Mux(taken & first, Mux(pair, 2, 1), 0)),
        ]
        m.d.sync += [
            self.free.eq(self.free - Mux(in_set, claimed, 0) + self.release),
            self.asked.eq(self.asked + Mux(tag.slaves, claimed, 0)),
            self.asked_kernel.eq(self.asked_kernel + (taken & tag.kernel)),
        ]

        step = Signal()
        m.d.comb += [
            *(block.plan.eq(plan) for block in (walker, table, sets, self.lanes, maker)),
            walker.start.eq(self.start & ~plan.lanes),
            sets.start.eq(self.start & ~plan.lanes),
            self.lanes.start.eq(self.start & plan.lanes),
            step.eq((table.full | self.lanes.busy) & (self.places != 0)),
            sets.step.eq(step & ~plan.lanes),
            self.lanes.step.eq(step & plan.lanes),
            sets.final.eq(table.final),
            table.part.eq(sets.part),
            table.pair.eq(sets.pair),
            table.take.eq(sets.step & sets.last),
            maker.offsets.eq(Mux(plan.lanes, self.lanes.offsets, sets.offsets)),
            maker.places.eq(Mux(plan.lanes, self.lanes.places, table.o)),
            self.busy.eq(walker.o.valid | table.full | self.lanes.busy | (self.places != _REQUESTS)),
        ]
        m.d.sync += self.places.eq(self.places - step + taken)

        m.d.sync += self.made.eq(Cat(step, self.made))
        request = queue.i.p
        m.d.comb += [
            queue.i.valid.eq(self.made[-1]),
            request.tag.eq(delay(m, Mux(plan.lanes, self.lanes.tag, sets.tag), len(self.made), name="tag")),
            request.pieces.eq(maker.pieces),
            request.size.eq(Mux(plan.granularity > 4, 4, plan.granularity)),
            request.fill.eq(Mux(request.tag.kernel, plan.k_fill, plan.x_fill)),
        ]
        if self.params.keeps_reads:
            m.d.comb += [
                request.kept.part.eq(request.tag.part),
                request.kept.keep.eq(~(request.tag.slaves | request.tag.kernel | request.tag.pair)),
                request.kept.again.eq(delay(m, sets.again, len(self.made), name="again")),
            ]
        return m
