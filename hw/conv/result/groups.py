"""Groups: places of tiles with what is known of the pass, and the groups that they are read out in."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.stream import ShallowQueue
from ..fetch.places import PlaceLayout
from ..layouts import PlanLayout
from .layouts import GroupPlaceLayout, ResultSizes, both_places

__all__ = ["Grouper", "LinePairs"]

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


class LinePairs(wiring.Component):
    """Puts behind each group the same one of the line below, where a job computes two lines at once.

    The places of a group are kept in a memory for that. What is the last of its tile, pass or job is so in the second
    line. Other jobs go through as they are.

    Latency 1; a place, or two that come together, a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        ``pairs`` and ``second`` are used. Must hold while places are under way.
    i : In(stream of GroupPlaceLayout(params))
        ``second`` is not looked at. ``ready`` is from registers.
    o : Out(stream of GroupPlaceLayout(params))
        From a memory that is read combinationally.
    idle : Out(1)
        Nothing is to be put behind a group, and nothing waits. From registers.
    """

    def __init__(self, params):
        self._params = params
        place = GroupPlaceLayout(params)
        self.places = Memory(shape=place, depth=params.folds, init=[])
        self.queue = ShallowQueue(place, 2)
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "i": In(stream.Signature(place)),
                "o": Out(stream.Signature(place)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.places, m.submodules.queue = self.places, self.queue
        write, read = self.places.write_port(), self.places.read_port(domain="comb")
        i, queue, plan = self.i, self.queue.i, self.plan
        again = Signal()  # the group is of the second line now
        number, alone = Signal(range(self._params.folds)), Signal()  # place of the group; its first one has no second
        place = Signal(GroupPlaceLayout(self._params))
        m.d.comb += [
            read.addr.eq(number),
            write.addr.eq(number),
            write.data.eq(i.p),
            write.en.eq(i.valid & i.ready),
            i.ready.eq(queue.ready & ~again),
            queue.valid.eq(i.valid | again),
            place.eq(Mux(again, read.data, i.p)),
            queue.p.eq(place),
            queue.p.second.eq(again),
        ]
        with m.If(again):
            m.d.comb += [
                queue.p.y.eq(place.y + plan.second.y),
                queue.p.addend.eq(place.addend + plan.second.addend),
                queue.p.there.eq(place.there & ~place.alone),
                queue.p.any.eq(place.any & ~alone),
            ]
        with m.Elif(plan.pairs):
            m.d.comb += [queue.p[name].eq(0) for name in ("tile_last", "pass_last", "job_last")]
        with m.If(queue.valid & queue.ready):
            m.d.sync += number.eq(Mux(place.group_last, 0, number + 1))
            with m.If(number == 0):
                m.d.sync += alone.eq(place.alone)
            with m.If(place.group_last):
                m.d.sync += again.eq(~again & plan.pairs)
        m.d.comb += [
            self.idle.eq(~again & ~self.o.valid),
            self.o.valid.eq(self.queue.o.valid),
            self.o.p.eq(self.queue.o.p),
            self.queue.o.ready.eq(self.o.ready),
        ]
        return m
