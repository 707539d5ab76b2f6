"""Numbers of 24 significant bits."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...lib.logic import delay, digit_product, shift_down

__all__ = ["PLACES", "SIGNIFICANT", "Clamp", "HalfRounder", "Requantiser", "Significand", "rounds_up", "widened"]

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


_NAN, _BRAIN_NAN, _INFINITY = 0x7E00, 0x7FC0, 0x7C00
#: Exponents of binary32 of the least normal number of fp16, and of the first one that is too large.
_NORMAL, _TOO_LARGE = 113, 143
#: A shift of so many places leaves nothing that counts.
_FAR = 15


class HalfRounder(wiring.Component):
    """binary32 rounded to fp16 or bf16, to nearest even; subnormal numbers are kept (docs/conv.md, "Types").

    Latency: ``LATENCY`` cycles. Throughput: one a cycle; nothing stalls it.

    Members
    -------
    i : In(32)
    brain : In(1)
        bf16. To hold while results are under way.
    o : Out(16)
    """

    LATENCY = 3

    i: In(32)
    brain: In(1)
    o: Out(16)

    def elaborate(self, platform):
        m = Module()
        # Cycle 1: by how many places a number moves that is subnormal in fp16; what lies below 12 places counts as one.
        mantissa, exponent = self.i[:23], self.i[23:31]
        normal, ones = exponent >= _NORMAL, exponent.all()
        distance = Mux(normal, 0, Mux(exponent < _NORMAL - _FAR, _FAR, (_NORMAL - exponent)[:4]))
        distance = delay(m, distance[:4], 1, name="distance")
        significand = delay(m, Cat(mantissa[:12].any(), mantissa[12:], exponent.any()), 1, name="significand")
        small = delay(m, Mux(normal, (exponent - (_NORMAL - 1))[:5], 0)[:5], 1, name="small")
        infinite = delay(m, ~self.brain & (exponent >= _TOO_LARGE), 2, name="infinite")
        nan = delay(m, ones & mantissa.any(), 2, name="nan")
        upper = delay(m, self.i[16:], 1, name="upper")
        brain_up = delay(m, rounds_up(self.i[16:], self.i[:16]), 1, name="brain_up")

        # Cycle 2.
        significand = shift_down(m, significand, distance)
        size = delay(m, Mux(self.brain, upper[:15], Cat(significand[2:12], small)), 1, name="number")
        up = delay(m, Mux(self.brain, brain_up, rounds_up(significand[2:], significand[:2])), 1, name="up")
        minus = delay(m, upper[15], 1, name="minus")

        # Cycle 3: a carry out of the mantissa counts the exponent up, to infinity if need be.
        rounded = Cat(Mux(infinite, _INFINITY, (size + up)[:15])[:15], minus)
        m.d.comb += self.o.eq(delay(m, Mux(nan, Mux(self.brain, _BRAIN_NAN, _NAN), rounded)[:16], 1, name="packed"))
        return m


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


#: Places of the lower part of a significand: as many as a multiplier of an ECP5 takes. Upper parts, of 6, are
#: multiplied in tables: multipliers are what an ECP5-85 runs out of first.
_LOWER = 18


class Requantiser(wiring.Component):
    """One lane of requantisation (docs/conv.md, "Requantisation").

    ====== =======================================================
    cycles
    ====== =======================================================
    1      size of the accumulator
    2–4    to 24 significant bits
    5      products of parts: three multipliers, and tables for the upper parts; nothing behind them
    6      their sum
    7      the product to 24 significant bits: its leading one is in one of two places
    8–10   to an integer, zero point, clamp
    ====== =======================================================

    Scales have a hidden one whatever their exponent: results of subnormal ones are too small to be seen.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle; nothing stalls it.

    Members
    -------
    acc : In(32)
    scale : In(32)
        binary32.
    is_signed : In(1)
        As the following of :class:`Clamp`.
    zero : In(8)
    minimum, maximum : In(8)
    o : Out(8)
    """

    LATENCY = 4 + Significand.LATENCY + Clamp.LATENCY

    acc: In(32)
    scale: In(32)
    is_signed: In(1)
    zero: In(8)
    minimum: In(8)
    maximum: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.significand = significand = Significand(32)
        m.submodules.clamp = clamp = Clamp()
        minus = self.acc[-1]
        size = (self.acc ^ minus.replicate(32)) + minus
        m.d.comb += significand.i.eq(delay(m, size[:32], 1, name="size"))
        before = 1 + Significand.LATENCY
        factor = Cat(delay(m, self.scale[:23], before, name="factor"), 1)
        exponent = delay(m, self.scale[23:31], before, name="exponent")
        negative = delay(m, minus ^ self.scale[31], before + 3, name="negative")

        (a, upper_a), (b, upper_b) = ((value[:_LOWER], value[_LOWER:]) for value in (significand.o, factor))
        low, *middle, high = (
            delay(m, product, 1, name="product")
            for product in (a * b, a * upper_b, upper_a * b, digit_product(m, upper_a, upper_b))
        )
        # The last place of a product's upper 24, if its leading one is in the lower of the two places.
        places = delay(m, (exponent + significand.places - 127)[: PLACES.width].as_signed(), 2, name="places")
        product = Signal(2 * SIGNIFICANT, reset_less=True)
        m.d.sync += product.eq(Cat(low, high) + Cat(Const(0, _LOWER), middle[0] + middle[1]))

        upper = product[-1]
        kept = Mux(upper, product[SIGNIFICANT:], product[SIGNIFICANT - 1 : -1])
        up = Mux(
            upper,
            rounds_up(product[SIGNIFICANT:], product[:SIGNIFICANT]),
            rounds_up(product[SIGNIFICANT - 1 :], product[: SIGNIFICANT - 1]),
        )
        m.d.comb += [
            clamp.size.eq(delay(m, (kept + up)[: SIGNIFICANT + 1], 1, name="rounded")),
            clamp.places.eq(delay(m, (places + upper)[: PLACES.width].as_signed(), 1, name="rounded_places")),
            clamp.negative.eq(negative),
            *(getattr(clamp, name).eq(getattr(self, name)) for name in ("is_signed", "zero", "minimum", "maximum")),
            self.o.eq(clamp.o),
        ]
        return m
