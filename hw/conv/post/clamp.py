"""Floating-point numbers as integers of 8 bits."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...lib.delay import delay
from ...lib.shift import shift_down
from .significand import PLACES, SIGNIFICANT, rounds_up

__all__ = ["Clamp", "widened"]

#: log2 of what is clamped whatever the zero point is.
_LARGE = 9
#: The least shift to the right that leaves less than that, and how many more there are until nothing is left.
_LEAST = SIGNIFICANT - _LARGE
_SHIFTS = _LARGE + 1


def widened(is_signed, value):
    """A number of 8 bits, as it lies in memory, as a signed one of 9."""
    return Cat(value, is_signed & value[-1]).as_signed()


class Clamp(wiring.Component):
    """A number rounded to an integer, nearest even; the zero point is added, and the sum clamped (docs/conv.md,
    "Requantisation", steps 4 and 5).

    What is 512 or more would be clamped in any case, so that a shifter of the upper places does; what lies below them
    only matters as a whole.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle; nothing stalls it.

    Members
    -------
    size : In(25)
        Zero, or 2^23 to 2^24.
    places : In(PLACES)
        The number is ``size`` · 2^``places``.
    negative : In(1)
        Times -1.
    infinite : In(1)
        The number is larger than all, or less.
    is_signed : In(1)
        The three following and the result are signed. They are to hold while results are under way.
    zero : In(8)
    minimum, maximum : In(8)
        ``minimum`` is the lesser one, or they are equal.
    o : Out(8)
    """

    LATENCY = 3

    size: In(SIGNIFICANT + 1)
    places: In(PLACES)
    negative: In(1)
    infinite: In(1)
    is_signed: In(1)
    zero: In(8)
    minimum: In(8)
    maximum: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        # Cycle 1: the integer, the place below, and whether there is anything further below.
        beyond = Signal(signed(PLACES.width + 1))  # shifts to the right, more than the least one
        m.d.comb += beyond.eq(-_LEAST - self.places)
        large = Signal()
        m.d.comb += large.eq(self.infinite | (beyond[-1] & self.size[-2:].any()))
        value = Cat(self.size[: _LEAST - 1].any(), self.size[_LEAST - 1 :])
        number = Signal(len(value), reset_less=True)
        m.d.sync += number.eq(shift_down(m, value, beyond[: (_SHIFTS - 1).bit_length()]))
        with m.If(large):
            m.d.sync += number.eq(Const((1 << _LARGE) << 2))
        with m.Elif(beyond >= _SHIFTS):
            m.d.sync += number.eq(0)
        negative = delay(m, self.negative, 1, name="negative")

        # Cycle 2: -(v + up) is ~v + 1 - up.
        whole, up = Cat(number[2:], 0), rounds_up(number[2:], number[:2])
        turned = (whole ^ negative.replicate(len(whole))).as_signed()
        total = delay(m, widened(self.is_signed, self.zero) + turned + (up ^ negative), 1, name="total")

        # Cycle 3.
        low, high = widened(self.is_signed, self.minimum), widened(self.is_signed, self.maximum)
        clamped = Mux(total < low, self.minimum, Mux(total > high, self.maximum, total[:8]))
        m.d.comb += self.o.eq(delay(m, clamped, 1, name="clamped"))
        return m
