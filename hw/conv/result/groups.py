"""Groups: places of tiles with what is known of the pass, and the groups that they are read out in."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.stream import ShallowQueue
from ..fetch.points import PlaceLayout
from ..layouts import PlanLayout
from .layouts import GroupPlaceLayout, ResultSizes, both_places

__all__ = ["Grouper"]

_NUMBERS = ("y", "addend")


class Grouper(wiring.Component):
    """Gives places what they have in a pass, and says which of them are read out together.

    A group has the places of a transfer: P in a convolution; in lane-private mode those of R elements of a row, or one
    if its elements are more. Latency 1, a place or two that come together a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Must hold from ``start`` on while places come.
    start : In(1)
        Strobe, before the first place of a job.
    i : In(stream of PlaceLayout(params, ("y", "addend"), ResultSizes(params).pairs))
        ``ready`` is from registers.
    o : Out(stream of GroupPlaceLayout(params))
        From a memory that is read combinationally.
    """

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        self.queue = ShallowQueue(GroupPlaceLayout(params), 4)
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "start": In(1),
                "i": In(stream.Signature(PlaceLayout(params, _NUMBERS, self._sizes.pairs))),
                "o": Out(stream.Signature(GroupPlaceLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        plan, i, put = self.plan, self.i, queue.i
        taken = Signal()
        first = Signal(16)  # channel of the pass
        behind = Signal(16)  # channels of the job behind that one
        place, some = Signal(range(self._params.places)), Signal()
        span_last = Signal(range(self._sizes.most_channels))  # channels of a whole pass, less one
        group_mask = Signal(4)  # places of a group, less one
        log2_row, log2_results = exact_log2(self._params.conv.row_bytes), exact_log2(self._params.conv.results)
        in_row = [bit < log2_row - plan.granularity for bit in range(4)]  # ws - 1
        in_transfer = [plan.granularity < log2_results + plan.wide - bit for bit in range(4)]
        with m.If(plan.lanes):
            m.d.comb += [
                span_last.eq((1 << plan.granularity >> plan.wide) - 1),
                group_mask.eq(Cat(in_row) & Cat(in_transfer)),
            ]
        with m.Else():
            m.d.comb += [span_last.eq(self._sizes.pass_channels - 1), group_mask.eq(self._sizes.together - 1)]

        is_first, is_final = Signal(), Signal()  # place of its group; pass of the job
        both = both_places(self._sizes, i.p)
        m.d.comb += [
            taken.eq(i.valid & i.ready),
            is_first.eq((place[:4] & group_mask) == 0),
            is_final.eq(behind <= span_last),
            i.ready.eq(put.ready),
            put.valid.eq(i.valid),
            put.p.there.eq(i.p.there),
            put.p.y.eq(i.p.values.y + (first << plan.result_log2)),
            put.p.addend.eq(i.p.values.addend + first),
            put.p.any.eq(Mux(is_first, i.p.there, some)),
            put.p.channels.eq(Mux(is_final, behind, span_last)),
            put.p.place.eq(place),
            put.p.group_last.eq(i.p.last | ((place[:4] | both | ~group_mask)[:4].all())),
            put.p.tile_last.eq(i.p.last),
            put.p.pass_last.eq(i.p.last & i.p.final),
            put.p.job_last.eq(i.p.last & i.p.final & is_final),
            self.o.valid.eq(queue.o.valid),
            self.o.p.eq(queue.o.p),
            queue.o.ready.eq(self.o.ready),
        ]
        if self._sizes.pairs:
            m.d.comb += put.p.both.eq(both)
        if self._params.halves > 1:
            m.d.comb += put.p.alone.eq(i.p.alone)
        with m.If(taken):
            m.d.sync += [place.eq(Mux(i.p.last, 0, (place | both) + 1)), some.eq(put.p.any)]
            with m.If(put.p.pass_last):
                m.d.sync += [first.eq(first + span_last + 1), behind.eq(behind - span_last - 1)]
        with m.If(self.start):
            m.d.sync += [first.eq(0), behind.eq(plan.out_channels - 1)]
        return m
