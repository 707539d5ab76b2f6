"""Addresses and bounds of a walk: where its runs lie, and which of them are inside the tensor.

Index i of a dimension has coordinate ``c + i * t`` and lies inside if ``0 <= c + i * t < size``. As t is positive,
these indices are one interval ``first <= i < end``. Setup computes the interval once per command, so that the walker
compares nine-bit indices instead of 33-bit coordinates in every cycle (docs/tmau.md, "Tile mode").
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.logic import ceil_divide
from ..jobs import IntervalLayout

__all__ = ["AddressGenerator", "BoundsCheck", "BoundsDistance", "BoundsInterval"]


class AddressGenerator(wiring.Component):
    """Global address of a run in ``levels`` nested loops, modulo 2^addr_width, without a multiplier.

    Each level has an accumulator with the address at which its current round began. When level d advances, the
    accumulators of d and of all levels inside it are loaded with the start of the next round. If all levels begin at
    one origin, the address is ``origin + Σ index[d] * stride[d]``.
    """

    def __init__(self, *, addr_width, levels):
        super().__init__(
            {
                "load": In(1),  # Start at ``origins``; has priority over ``step``.
                # High if the next strobe is ``load``. It arrives earlier than ``load``.
                "loading": In(1),
                # Address of the first run; for level d the address at which rounds of the levels inside d begin.
                "origins": In(data.ArrayLayout(addr_width, levels)),
                "strides": In(data.ArrayLayout(addr_width, levels)),  # Bytes per index. Constant between loads.
                "step": In(1),  # Next run. If every level is over, the address is undefined.
                # Levels in their last round. The innermost other level advances, levels inside it start again.
                "over": In(levels),
                "address": Out(addr_width),  # Registered; follows ``load`` and ``step`` by one cycle.
            }
        )
        self.rounds = [Signal(addr_width, name=f"round{d}") for d in range(levels)]

    def elaborate(self, platform):
        m = Module()
        # x + 1 sets the lowest zero of x. With ``loading`` no level advances, so that an origin is one more term of an
        # OR instead of a multiplexer after it.
        advance = Mux(self.loading, 0, ~self.over & (self.over + 1))
        sums = (
            Mux(advance[d], (accumulator + self.strides[d])[: len(accumulator)], 0)
            for d, accumulator in enumerate(self.rounds)
        )
        following = Signal(len(self.address))  # for all levels that change
        m.d.comb += [self.address.eq(self.rounds[0]), following.eq(reduce(or_, sums))]
        for d, accumulator in enumerate(self.rounds):
            with m.If(self.load | (self.step & self.over[:d].all())):
                m.d.sync += accumulator.eq(following | Mux(self.loading, self.origins[d], 0))
        return m


class BoundsDistance(wiring.Component):
    """Distances in elements from the start coordinate to both edges of the tensor. Combinational."""

    coord: In(signed(32))  # Start coordinate c.
    size: In(unsigned(32))  # Elements of the tensor minus one.
    traversal: In(unsigned(3))  # Step t minus one.
    count: In(unsigned(9))  # Indices that the command takes.
    below: Out(unsigned(9))  # To coordinate 0: ``-c`` limited to 0 … 256, plus ``traversal``.
    above: Out(unsigned(9))  # To the end of the tensor: ``size - c`` limited to 0 … 256, plus ``traversal``.
    # The same two distances, limited to 0 … ``count``, without ``traversal``.
    start: Out(unsigned(9))
    end: Out(unsigned(9))

    def elaborate(self, platform):
        m = Module()
        rest, beyond = Signal(signed(34)), Signal(signed(34))
        m.d.comb += [
            rest.eq(self.size - self.coord + 1),
            # A carry chain of its own, so that no LUT lies between the sum and the multiplexers.
            beyond.eq(self.size - self.coord - 255),
        ]
        # Coordinates from -255 to -1.
        near = self.coord[8:].all() & self.coord[:8].any()
        for distance, negative, far, limited, within in (
            ((-self.coord)[:8], self.coord >= 0, ~near, self.below, self.start),
            (rest[:8], rest < 0, beyond >= 0, self.above, self.end),
        ):
            # The lower bits of a sum are known before the sign of the distance.
            more = distance + self.traversal
            m.d.comb += [
                limited.eq(Mux(negative, self.traversal, Mux(far, 256 | self.traversal, more))),
                within.eq(Mux(negative, 0, Mux(far | (distance >= self.count), self.count, distance))),
            ]
        return m


class BoundsInterval(wiring.Component):
    """The interval of indices inside the tensor, from the distances of :class:`BoundsDistance`. Combinational."""

    below: In(unsigned(9))
    above: In(unsigned(9))
    traversal: In(unsigned(3))  # Step t minus one.
    count: In(unsigned(9))  # Indices that the command takes.
    interval: Out(IntervalLayout())  # Its limits may exceed ``count``.
    empty: Out(2)  # If any bit is set, all indices of the command are outside.

    def elaborate(self, platform):
        m = Module()
        first, end = self.interval.first, self.interval.end
        for distance, limit in ((self.below, first), (self.above, end)):
            m.d.comb += limit.eq(ceil_divide(distance, self.traversal))
        m.d.comb += self.empty.eq(Cat(first >= end, first >= self.count))
        return m


class BoundsCheck(wiring.Component):
    """Which indices of a walk are inside the tensor, computed one cycle ahead."""

    start: In(1)  # Strobe: a walk with the intervals ``starting`` begins at index 0 of all levels. Overrides ``step``.
    starting: In(data.ArrayLayout(IntervalLayout(), 5))
    step: In(1)  # Strobe: the loop nest advances from ``indices``, of which ``at_last`` are the last ones.
    indices: In(data.ArrayLayout(8, 5))
    at_last: In(5)
    intervals: In(data.ArrayLayout(IntervalLayout(), 5))  # Of the current walk.
    following: Out(5)  # Levels whose index in the next cycle is inside.
    inside: Out(5)  # Levels whose index is inside. Registered.

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
