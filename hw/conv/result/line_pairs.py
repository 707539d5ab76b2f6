"""Groups of both lines of a pair (docs/conv.md, "Line pairs")."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ...lib.stream import ShallowQueue
from ..layouts import PlanLayout
from .layouts import GroupPlaceLayout

__all__ = ["LinePairs"]


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
