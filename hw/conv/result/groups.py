"""Groups of places, whose results are read out together."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ...lib.stream import ShallowQueue
from ..fetch.places import PlaceLayout
from ..layouts import PlanLayout
from ..params import FOLDS
from .layouts import GroupPlaceLayout, ResultSizes, both_places

__all__ = ["Grouper", "LinePairs"]

_NUMBERS = ("y", "addend")


class Grouper(wiring.Component):
    """Adds the numbers of the pass to places, and divides them into groups.

    A group has the places of a transfer: P in a convolution; in lane-private mode those of R elements of a row, or one
    place if it has more elements. Latency 1; a payload, of one place or two, a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        self.queue = ShallowQueue(GroupPlaceLayout(params), 4)
        super().__init__(
            {
                "plan": In(PlanLayout(params)),  # constant from ``start`` on while places arrive
                "start": In(1),  # Strobe, before the first place of a job.
                "i": In(stream.Signature(PlaceLayout(params, _NUMBERS, self._sizes.pairs))),
                "o": Out(stream.Signature(GroupPlaceLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        plan, i, o = self.plan, self.i.payload, queue.i.payload
        first, channels_left = Signal(16), Signal(16)  # channel of the pass; channels of the job after that one
        place, some = Signal(range(self._params.places)), Signal()
        span_last = Signal(range(self._sizes.most_channels))  # channels of a full pass, minus one
        group_mask = Signal(4)  # places of a group, minus one
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

        both = both_places(self._sizes, i)
        m.d.comb += [
            self.i.ready.eq(queue.i.ready),
            queue.i.valid.eq(self.i.valid),
            o.there.eq(i.there),
            o.y.eq(i.values.y + (first << plan.result_log2)),
            o.addend.eq(i.values.addend + first),
            o.any.eq(Mux((place[:4] & group_mask) == 0, i.there, some)),
            o.channels.eq(Mux(channels_left <= span_last, channels_left, span_last)),
            o.place.eq(place),
            o.group_last.eq(i.last | ((place[:4] | both | ~group_mask)[:4].all())),
            o.tile_last.eq(i.last),
            o.pass_last.eq(i.last & i.final),
        ]
        connect(m, queue.o, flipped(self.o))
        if self._sizes.pairs:
            m.d.comb += o.both.eq(both)
        if self._params.halves > 1:
            m.d.comb += o.alone.eq(i.alone)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [place.eq(Mux(i.last, 0, (place | both) + 1)), some.eq(o.any)]
            with m.If(o.pass_last):
                m.d.sync += [first.eq(first + span_last + 1), channels_left.eq(channels_left - span_last - 1)]
        with m.If(self.start):
            m.d.sync += [first.eq(0), channels_left.eq(plan.out_channels - 1)]
        return m


class LinePairs(wiring.Component):
    """Repeats each group for the second line, if a job computes two lines at once.

    A memory holds the places of the group for that. The end of a tile or pass is marked in the second line. The places
    of other jobs pass unchanged. Latency 1; a payload, of one place or two, a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        place = GroupPlaceLayout(params)
        self.places = Memory(shape=place, depth=FOLDS, init=[])
        self.queue = ShallowQueue(place, 2)
        super().__init__(
            {
                "plan": In(PlanLayout(params)),  # constant while places are under way
                "i": In(stream.Signature(place)),  # ``second`` is ignored
                "o": Out(stream.Signature(place)),
                "idle": Out(1),  # nothing is to be repeated, and ``o`` is not valid
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.places, m.submodules.queue = self.places, self.queue
        write, read = self.places.write_port(), self.places.read_port(domain="comb")
        i, queue, o, plan = self.i, self.queue.i, self.queue.i.payload, self.plan
        repeats = Signal()  # the second line of a group is being sent
        number, alone = Signal(range(FOLDS)), Signal()  # place of the group; the first place is alone
        place = Signal(GroupPlaceLayout(self._params))
        m.d.comb += [
            read.addr.eq(number),
            write.addr.eq(number),
            write.data.eq(i.payload),
            write.en.eq(i.valid & i.ready),
            i.ready.eq(queue.ready & ~repeats),
            queue.valid.eq(i.valid | repeats),
            place.eq(Mux(repeats, read.data, i.payload)),
            o.eq(place),
            o.second.eq(repeats),
        ]
        with m.If(repeats):
            m.d.comb += [
                o.y.eq(place.y + plan.second.y),
                o.addend.eq(place.addend + plan.second.addend),
                o.there.eq(place.there & ~place.alone),
                o.any.eq(place.any & ~alone),
            ]
        with m.Elif(plan.pairs):
            m.d.comb += [o.tile_last.eq(0), o.pass_last.eq(0)]
        with m.If(queue.valid & queue.ready):
            m.d.sync += number.eq(Mux(place.group_last, 0, number + 1))
            with m.If(number == 0):
                m.d.sync += alone.eq(place.alone)
            with m.If(place.group_last):
                m.d.sync += repeats.eq(~repeats & plan.pairs)
        m.d.comb += self.idle.eq(~repeats & ~self.o.valid)
        connect(m, self.queue.o, flipped(self.o))
        return m
