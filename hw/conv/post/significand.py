"""Numbers of 24 significant bits."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...lib.delay import delay

__all__ = ["PLACES", "SIGNIFICANT", "Significand", "rounds_up"]

#: Bits of a significand of binary32, the hidden one among them.
SIGNIFICANT = 24
#: A logarithm of the weight of a significand's last place: more than any in a chain of sums and products reaches.
PLACES = signed(10)

#: Widths that are searched in the first cycle are above this one.
_FINE = 8


def rounds_up(kept, cut):
    """Whether a number is to be rounded up to be nearest, even of two: one bit.

    Parameters
    ----------
    kept : Value
        The places that stay; only the last one matters.
    cut : Value
        Those that are cut off, one or more.
    """
    return cut[-1] & Cat(kept[0], cut[:-1]).any()


class Significand(wiring.Component):
    """A number to 24 significant bits, nearest even (docs/conv.md, "Requantisation", step 2).

    The leading one goes to the top, by half of the width that is left at a time: first by 16 and more, in the next
    cycle by 8 and less, and in the third the places below 24 are rounded away.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle; nothing stalls it.

    Parameters
    ----------
    width : int
        Bits of the number, 26 to 64.

    Members
    -------
    i : In(width)
    o : Out(24)
        Its leading bit is one, but of zero.
    places : Out(PLACES)
        ``o`` · 2^``places`` is the number; of zero anything.
    """

    LATENCY = 3

    def __init__(self, width):
        if not isinstance(width, int) or isinstance(width, bool):
            raise TypeError(f"width must be an int, not {width!r}")
        if not 26 <= width <= 64:
            raise ValueError(f"width must be 26 to 64, not {width!r}")
        self._width = width
        super().__init__({"i": In(width), "o": Out(SIGNIFICANT), "places": Out(PLACES)})

    def elaborate(self, platform):
        m = Module()
        value, zeros = self.i, []
        step = 1 << (self._width - 1).bit_length() - 1
        while step:
            if step == _FINE:
                value = delay(m, value, 1, name="coarse")
                zeros = [delay(m, bit, 1, name="coarse_zeros") for bit in zeros]
            none, moved = Signal(name=f"none{step}"), Signal(self._width, name=f"moved{step}")
            m.d.comb += [none.eq(~value[-step:].any()), moved.eq(Mux(none, value << step, value))]
            value, zeros, step = moved, [none, *zeros], step // 2
        value = delay(m, value, 1, name="leading")
        zeros = delay(m, Cat(zeros), 1, name="zeros")

        kept, cut = value[-SIGNIFICANT:], value[:-SIGNIFICANT]
        up, rounded = Signal(), Signal(SIGNIFICANT + 1)
        # A carry leaves zeros below it: it becomes the leading bit of a number of a place more.
        m.d.comb += [up.eq(rounds_up(kept, cut)), rounded.eq(kept + up)]
        places = Const(self._width - SIGNIFICANT, PLACES) - zeros + rounded[-1]
        m.d.comb += [
            self.o.eq(delay(m, Cat(rounded[:-2], rounded[-2] | rounded[-1]), 1, name="significand")),
            self.places.eq(delay(m, places[: PLACES.width].as_signed(), 1, name="places")),
        ]
        return m
