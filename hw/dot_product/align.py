"""Terms moved to their places in the window of a sum."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..lib.delay import delay
from .terms import TERM, TOP

__all__ = ["ALIGNED", "Aligner"]

#: W + 1 places and a sign: bit 48 is the highest place of the largest term, bit 0 the one below the window.
ALIGNED = signed(50)

_FINE = 4  # log2 of the step of the second shifter
_INTEGER = 3  # what the second shifter chooses, instead of a number of steps


class Aligner(wiring.Component):
    """Shifts a term down by the distance of its highest place from the highest of all; docs/pe.md, "Numbers", step 3.

    The shift is arithmetic, and bit 0 also takes the OR of all that falls off. That is the cut of step 3 for negative
    terms too: rounding down takes one from the places above, a one in the place below gives a half of it back.

    A float has few places: the first shift, by less than sixteen, has room for all of it. The second one, by 0, 16 or
    32, chooses between it and an integer, which is not moved. A float that is 48 places and more away is one in the
    place below, or minus one: that is put in beside the shifters.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.

    Parameters
    ----------
    places : int
        Those that M has at most, counted from the highest one of TERM; lower ones of a float are zero.

    Members
    -------
    term : In(TERM)
    integer : In(1)
        ``o`` is the term.
    top : In(TOP)
        Its own; no larger than ``highest``.
    highest : In(TOP)
        The largest of the sum.
    o : Out(ALIGNED)
    """

    LATENCY = 2

    def __init__(self, places):
        self._places = places
        super().__init__({"term": In(TERM), "integer": In(1), "top": In(TOP), "highest": In(TOP), "o": Out(ALIGNED)})

    def elaborate(self, platform):
        m = Module()
        distance = Signal(TOP)
        far = Signal()
        m.d.comb += [
            distance.eq(self.highest - self.top),
            far.eq(~self.integer & (distance[6:].any() | distance[_FINE:6].all())),
        ]
        value = Cat(Const(0, (1 << _FINE) - 1), self.term[-1 - self._places :]).as_signed()
        for bit in range(_FINE):
            moved = Signal(signed(len(value)), name=f"fine_{1 << bit}")
            m.d.comb += moved.eq(Mux(distance[bit], value >> (1 << bit), value))
            value = moved

        number = Signal(signed(len(value)), reset_less=True)
        m.d.sync += number.eq(value)
        with m.If(far):
            m.d.sync += number.eq(0)
        integer = delay(m, self.term, 1, name="integer")
        coarse = delay(m, Mux(self.integer, _INTEGER, Mux(far, 0, distance[_FINE:6])), 1, name="coarse")
        below = delay(m, far & ~self.term[-1] & (self.top != 0), 1, name="below")
        minus = delay(m, far & self.term[-1], 1, name="minus")

        whole = Cat(Const(0, ALIGNED.width - len(number)), number).as_signed()
        moved, lost = Signal(ALIGNED), Signal()
        with m.Switch(coarse):
            for step in range(_INTEGER):
                with m.Case(step):
                    m.d.comb += [moved.eq(whole >> (step << _FINE)), lost.eq(whole[: step << _FINE].any())]
            with m.Default():
                m.d.comb += moved.eq(integer)
        aligned = Signal(ALIGNED, reset_less=True)
        m.d.sync += aligned.eq(Cat(moved[0] | lost | below, moved[1:]))
        with m.If(minus):
            m.d.sync += aligned.eq(-1)
        m.d.comb += self.o.eq(aligned)
        return m
