"""Division by a traversal stride."""

from functools import reduce
from operator import or_

from amaranth import Module, Mux, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CeilDivider"]

_PLACES = 11  # of a reciprocal: the fewest with which every quotient is right


class CeilDivider(wiring.Component):
    """Combinational ``ceil(n / t)`` for a traversal stride t of 1 to 8: a small multiplier and a table of reciprocals.

    A box has at most 256 elements, which keeps n below nine bits. Whoever has it adds the divisor minus one, so that no
    sum is in front of the multiplier.

    Members
    -------
    more : In(unsigned(9))
        Dividend, 0 to 256, plus ``t``.
    t : In(unsigned(3))
        Divisor minus one, as descriptors store it.
    o : Out(unsigned(9))
        Quotient, rounded up.
    """

    more: In(unsigned(9))
    t: In(unsigned(3))
    o: Out(unsigned(9))

    def elaborate(self, platform):
        m = Module()
        # Not as a choice of constants, of which tools make a memory, whose contents a proof by induction does not know.
        reciprocals = (Mux(self.t == divisor - 1, -(-(1 << _PLACES) // divisor), 0) for divisor in range(1, 9))
        m.d.comb += self.o.eq(self.more * reduce(or_, reciprocals) >> _PLACES)
        return m
