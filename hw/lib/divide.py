"""Division by a traversal stride."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CeilDivider"]

_LOW = 4  # bits of the lower half of a dividend


class CeilDivider(wiring.Component):
    """Combinational ``ceil(n / t)`` for a traversal stride t of 1 to 8.

    A box has at most 256 elements, which keeps n below nine bits: quotient and remainder of its upper half come from a
    table, and so does the quotient of that remainder with the lower half. No multiplier, and two short additions.

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
        upper, lower = self.n[_LOW:], self.n[:_LOW]
        quotient, remainder = Signal(9), Signal(3)
        rest, last = Signal(5), Signal(4)
        m.d.comb += [rest.eq(remainder + lower), self.o.eq(quotient + last)]
        with m.Switch(self.t):
            for divisor in range(1, 9):
                with m.Case(divisor - 1):
                    with m.Switch(upper):
                        for value in range((256 >> _LOW) + 1):
                            whole, part = divmod(value << _LOW, divisor)
                            with m.Case(value):
                                m.d.comb += [quotient.eq(whole), remainder.eq(part)]
                    with m.Switch(rest):
                        for value in range(divisor + (1 << _LOW) - 1):
                            with m.Case(value):
                                m.d.comb += last.eq(-(-value // divisor))
        return m
