"""Division by a traversal stride."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CeilDivider"]

_PLACES = 11  # of a reciprocal: the fewest with which every quotient is right


class CeilDivider(wiring.Component):
    """Combinational ``ceil(n / t)`` for a traversal stride t of 1 to 8: a small multiplier and a table of reciprocals.

    A box has at most 256 elements, which keeps n below nine bits.

    Members
    -------
    n : In(unsigned(9))
        Dividend, 0 to 256.
    t : In(unsigned(3))
        Divisor minus one, as descriptors store it.
    o : Out(unsigned(9))
        Quotient, rounded up.
    """

    n: In(unsigned(9))
    t: In(unsigned(3))
    o: Out(unsigned(9))

    def elaborate(self, platform):
        m = Module()
        reciprocal = Signal(_PLACES + 1)
        with m.Switch(self.t):
            for divisor in range(1, 9):
                with m.Case(divisor - 1):
                    m.d.comb += reciprocal.eq(-(-(1 << _PLACES) // divisor))
        m.d.comb += self.o.eq((self.n + self.t) * reciprocal >> _PLACES)
        return m
