"""Asks for feature rows, in the order in which they are used (docs/conv.md, "Order of work", "Lane-private mode")."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.conv.params import KERNEL_ROWS

from ...lib.delay import delay
from ...lib.stream import ShallowQueue
from ..layouts import GatherLayout, PlanLayout
from .feature_pieces import PieceMaker
from .lanes import LaneWalker
from .points import PointWalker
from .sets import FeatureTagLayout, SetWalker
from .table import NUMBERS, PlaceTable

__all__ = ["FeatureFetcher"]

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
