"""Kernel columns by merged columns: a division, a bit a cycle."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ColumnDivider"]

_BITS = 8


class ColumnDivider(wiring.Component):
    """``last`` = ceil(Kw / g) - 1 and ``rest`` = Kw - last · g - 1, of Kw and g from 1 to 256, stored minus one.

    That is Kw - 1 divided by g, with its remainder. Latency: 8 cycles.

    Members
    -------
    start : In(1)
        Strobe, while not ``busy``. ``columns`` and ``merge`` hold from then on while ``busy``.
    columns : In(8)
        Kw - 1.
    merge : In(8)
        g - 1.
    busy : Out(1)
        For 8 cycles from the one after ``start`` on.
    last : Out(8)
        From the end of ``busy`` until the next ``start``.
    rest : Out(8)
        Likewise.
    """

    start: In(1)
    columns: In(_BITS)
    merge: In(_BITS)
    busy: Out(1)
    last: Out(_BITS)
    rest: Out(_BITS)

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(_BITS))  # bits
        moved, fits = Signal(_BITS + 1), Signal()
        # ``last`` has the bits of the dividend that have not come yet above those of the quotient.
        m.d.comb += [moved.eq(Cat(self.last[-1], self.rest)), fits.eq(moved > self.merge)]
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), left.eq(_BITS - 1), self.last.eq(self.columns), self.rest.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += [
                self.busy.eq(left != 0),
                left.eq(left - 1),
                self.last.eq(Cat(fits, self.last)),
                self.rest.eq(moved - ((self.merge + 1) & fits.replicate(_BITS + 1))),
            ]
        return m
