"""Address generation: nested accumulators, one adder a level and no multiplier."""

from functools import reduce
from operator import or_

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["AddressGenerator"]


class AddressGenerator(wiring.Component):
    """Global address of the walker's run, modulo 2^addr_width.

    Each level keeps the address at which its current round began. When level d advances, its accumulator and those of
    all levels inside it move on to the next round. If all levels begin at one origin, the address is
    ``origin + Σ index[d] * stride[d]``.

    Parameters
    ----------
    addr_width : int
        Bits of an address.
    levels : int
        Nested loops of the walk, innermost first.

    Members
    -------
    load : In(1)
        Start at ``origins``; has priority over ``advance``.
    origins : In(array of levels addr_width)
        The first is the address of the first run; that of level d is where the rounds of the levels inside d begin.
    strides : In(array of levels addr_width)
        Bytes from one index to the next. Must hold from load to load.
    advance : In(levels)
        One-hot: the level that advances; levels inside it start over.
    address : Out(addr_width)
        Registered; follows ``load`` and ``advance`` by one cycle.
    """

    def __init__(self, *, addr_width, levels):
        super().__init__(
            {
                "load": In(1),
                "origins": In(data.ArrayLayout(addr_width, levels)),
                "strides": In(data.ArrayLayout(addr_width, levels)),
                "advance": In(levels),
                "address": Out(addr_width),
            }
        )
        self.rounds = [Signal(addr_width, name=f"round{d}") for d in range(levels)]

    def elaborate(self, platform):
        m = Module()
        moved = Signal(len(self.address))  # one for all levels that change
        sums = (
            Mux(self.advance[d], (accumulator + self.strides[d])[: len(moved)], 0)
            for d, accumulator in enumerate(self.rounds)
        )
        m.d.comb += [self.address.eq(self.rounds[0]), moved.eq(reduce(or_, sums))]
        for d, accumulator in enumerate(self.rounds):
            with m.If(self.load | self.advance[d:].any()):
                m.d.sync += accumulator.eq(Mux(self.load, self.origins[d], moved))
        return m
