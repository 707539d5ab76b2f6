"""Address generation: nested accumulators, one adder a level, or one for all, and no multiplier."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.logic import CeilDivider, chosen, first_of
from ..jobs import IntervalLayout

__all__ = ["AddressGenerator", "BoundsCheck", "BoundsDistance", "BoundsInterval"]


class AddressGenerator(wiring.Component):
    """Global address of the walker's run, modulo 2^addr_width.

    Each level keeps the address at which its current round began. When level d advances, its accumulator and those of
    all levels inside it move on to the next round: a level moves if all inside it are over. If all levels begin at one
    origin, the address is ``origin + Σ index[d] * stride[d]``.

    Parameters
    ----------
    addr_width : int
        Bits of an address.
    levels : int
        Nested loops of the walk, innermost first.
    shares : bool
        One adder for all levels, a power of two of them: fewer tables, and a choice in front of it.
    """

    def __init__(self, *, addr_width, levels, shares=False):
        self._shares = shares
        super().__init__(
            {
                # Start at ``origins``; has priority over ``step``.
                "load": In(1),
                # If anything comes next it is ``load``. So what the sums are does not wait for whether it comes.
                "loading": In(1),
                # The first is the address of the first run; that of level d is where the rounds of the levels inside d
                # begin.
                "origins": In(data.ArrayLayout(addr_width, levels)),
                # Bytes from one index to the next. Must hold from load to load.
                "strides": In(data.ArrayLayout(addr_width, levels)),
                # Go on. If every level is over, no address that means anything comes of it.
                "step": In(1),
                # For each level: it is in its last round. The innermost one that is not advances, levels inside it
                # start over.
                "over": In(levels),
                # Registered; follows ``load`` and ``step`` by one cycle.
                "address": Out(addr_width),
            }
        )
        self.rounds = [Signal(addr_width, name=f"round{d}") for d in range(levels)]

    def elaborate(self, platform):
        m = Module()
        moved = Signal(len(self.address))  # one for all levels that change
        m.d.comb += [self.address.eq(self.rounds[0]), moved.eq(self._shared() if self._shares else self._apart())]
        for d, accumulator in enumerate(self.rounds):
            with m.If(self.load | (self.step & self.over[:d].all())):
                m.d.sync += accumulator.eq(moved | Mux(self.loading, self.origins[d], 0))
        return m

    def _apart(self):
        """The sum of the level that advances."""
        # x + 1 turns the lowest zero of x into a one.
        # With ``loading`` none advances, so that an origin is one more term and no choice behind the others.
        advance = Mux(self.loading, 0, ~self.over & (self.over + 1))
        sums = (
            Mux(advance[d], (accumulator + self.strides[d])[: len(accumulator)], 0)
            for d, accumulator in enumerate(self.rounds)
        )
        return reduce(or_, sums)

    def _shared(self):
        """The same, of what is chosen by the level's number."""
        number = first_of([~over for over in self.over])
        accumulator = chosen(number, dict(enumerate(self.rounds)))
        stride = chosen(number, dict(enumerate(self.strides)))
        return Mux(self.loading, 0, (accumulator + stride)[: len(accumulator)])


class BoundsDistance(wiring.Component):
    """Elements from the start coordinate to both edges of the tensor, as far as a box of 256 elements can see.

    Combinational.
    """

    # Start coordinate c.
    coord: In(signed(32))
    # Elements of the tensor minus one.
    size: In(unsigned(32))
    # Step t minus one.
    traversal: In(unsigned(3))
    count: In(unsigned(9))
    # Elements from c up to coordinate 0: ``-c``, limited to 0 … 256, and ``traversal`` more.
    below: Out(unsigned(9))
    # Elements from c up to the tensor's end: ``size - c``, limited to 0 … 256, and ``traversal`` more.
    above: Out(unsigned(9))
    # The same two, limited to 0 … ``count``, and no more.
    start: Out(unsigned(9))
    end: Out(unsigned(9))

    def elaborate(self, platform):
        m = Module()
        rest, beyond = Signal(signed(34)), Signal(signed(34))
        m.d.comb += [
            rest.eq(self.size - self.coord + 1),
            # A chain of its own: no table is between the sum and what is chosen by it.
            beyond.eq(self.size - self.coord - 255),
        ]
        # Down to -255 a coordinate has all of these bits, and its lower ones are not zero.
        near = self.coord[8:].all() & self.coord[:8].any()
        for distance, negative, far, limited, within in (
            ((-self.coord)[:8], self.coord >= 0, ~near, self.below, self.start),
            (rest[:8], rest < 0, beyond >= 0, self.above, self.end),
        ):
            # What of the sum counts is there before the sign of the distance.
            more = distance + self.traversal
            m.d.comb += [
                limited.eq(Mux(negative, self.traversal, Mux(far, 256 | self.traversal, more))),
                within.eq(Mux(negative, 0, Mux(far | (distance >= self.count), self.count, distance))),
            ]
        return m


class BoundsInterval(wiring.Component):
    """The interval of indices inside the tensor, from the distances of :class:`BoundsDistance`. Combinational."""

    # Distances to the edges, in elements, and ``traversal`` more.
    below: In(unsigned(9))
    above: In(unsigned(9))
    # Step t minus one.
    traversal: In(unsigned(3))
    # Indices that the command takes.
    count: In(unsigned(9))
    # Its limits may be larger than ``count``.
    interval: Out(IntervalLayout())
    # None of the command's indices is inside, if any bit is set.
    empty: Out(2)

    def elaborate(self, platform):
        m = Module()
        first, end = self.interval.first, self.interval.end
        for name, distance, limit in (("first", self.below, first), ("end", self.above, end)):
            m.submodules[name] = divide = CeilDivider()
            m.d.comb += [divide.more.eq(distance), divide.t.eq(self.traversal), limit.eq(divide.o)]
        m.d.comb += self.empty.eq(Cat(first >= end, first >= self.count))
        return m


class BoundsCheck(wiring.Component):
    """Which of the walker's indices lie inside the tensor, told of the next ones while the walker is at these."""

    # Strobe: the walk with ``starting`` begins, at indices that are all zero. Wins over ``step``.
    start: In(1)
    starting: In(data.ArrayLayout(IntervalLayout(), 5))
    # Strobe: of a :class:`~tilewright.hw.lib.loop_nest.LoopNest`, which goes on from ``indices`` with ``at_last``.
    step: In(1)
    # One a level of the walk.
    indices: In(data.ArrayLayout(8, 5))
    at_last: In(5)
    # ``starting`` of the walk under way.
    intervals: In(data.ArrayLayout(IntervalLayout(), 5))
    # Of the indices of the next cycle.
    following: Out(5)
    # Registered: of the indices after ``start`` or ``step``.
    inside: Out(5)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.following.eq(self.inside)
        m.d.sync += self.inside.eq(self.following)
        for d in range(5):
            starting, interval, index = self.starting[d], self.intervals[d], self.indices[d] + 1
            with m.If(self.start):
                m.d.comb += self.following[d].eq(_has_first(starting))
            with m.Elif(self.step & self.at_last[:d].all()):
                inside = (interval.first <= index) & (index < interval.end)
                m.d.comb += self.following[d].eq(Mux(self.at_last[d], _has_first(interval), inside))
        return m


def _has_first(interval):
    """Whether index 0 is inside."""
    return (interval.first == 0) & (interval.end != 0)
