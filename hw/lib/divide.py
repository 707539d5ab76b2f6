"""Division by a traversal stride."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CeilDivider"]

# floor(m / d) = m * FACTOR >> SHIFT for every m up to 263; tests try them all.
_RECIPROCALS = {3: (171, 9), 5: (205, 10), 7: (293, 11)}


class CeilDivider(wiring.Component):
    """Combinational ``ceil(n / t)`` for a traversal stride t of 1 to 8.

    A box has at most 256 elements, which keeps n below nine bits, so that a small constant product does for each odd
    divisor and shifts do for the rest.

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
        # ceil(n / t) = floor((n + t - 1) / t), and the stored divisor is t - 1.
        top = Signal(9)
        m.d.comb += top.eq(self.n + self.t)

        def floor(value, divisor):
            factor, shift = _RECIPROCALS[divisor]
            return value * factor >> shift

        third = Signal(9)
        m.d.comb += third.eq(floor(Mux(self.t[2], top >> 1, top), 3))
        with m.Switch(self.t):
            for shift in range(4):
                with m.Case((1 << shift) - 1):
                    m.d.comb += self.o.eq(top >> shift)
            with m.Case(2, 5):
                m.d.comb += self.o.eq(third)
            for divisor in (5, 7):
                with m.Case(divisor - 1):
                    m.d.comb += self.o.eq(floor(top, divisor))
        return m
