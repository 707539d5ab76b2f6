"""Rounding: to 24 significant bits, to 16-bit floats, to clamped integers; and requantisation."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...lib.logic import delay, digit_product, shift_down

__all__ = ["PLACES", "SIGNIFICANT", "Clamp", "HalfRounder", "Requantiser", "Significand", "rounds_up", "widened"]

#: Bits of a significand of binary32, with the hidden one.
SIGNIFICANT = 24
#: The exponent of a significand's last place, large enough for all sums and products here.
PLACES = signed(10)

#: The normalising shifts of the first cycle are wider than this.
_FINE = 8
#: NaN of fp16 and of bf16, and infinity of fp16.
_NAN, _BRAIN_NAN, _INFINITY = 0x7E00, 0x7FC0, 0x7C00
#: Exponents in binary32 of the smallest normal number of fp16, and of the smallest number that is too large.
_NORMAL, _TOO_LARGE = 113, 143
#: After a shift by this many places only the sticky bit remains.
_FAR = 15
#: log2 of the smallest number that is clamped for any zero point.
_LARGE = 9
#: The smallest right shift after which all numbers are less than that, and the number of further shifts that matter.
_LEAST = SIGNIFICANT - _LARGE
_SHIFTS = _LARGE + 1
#: Places of an integer before it is clamped.
_WHOLE = _LARGE + 1
#: Places of a distance that may be half of the last place of a sum of 8 bits before the point, in 2^-25.
_NEAR = 9
#: Places of the lower part of a significand: the width of an ECP5 multiplier. Products of the upper parts, of 6 places,
#: use LUTs, because an ECP5-85 runs out of multipliers first.
_LOWER = 18


def rounds_up(kept, cut):
    """Whether a number is rounded up, to nearest even; one bit.

    Parameters
    ----------
    kept : Value
        The places that remain; only the last one matters.
    cut : Value
        The places that are cut off, at least one.
    """
    return cut[-1] & Cat(kept[0], cut[:-1]).any()


class Significand(wiring.Component):
    """Rounds a number to 24 significant bits, nearest even (docs/conv.md, "Requantisation", step 2).

    It shifts the leading one to the top, by 16 and more places in the first cycle and by 8 and fewer in the second; in
    the third cycle the places below 24 are rounded off.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle, without stalls.

    Parameters
    ----------
    width : int
        Bits of the number, 26 to 64.
    """

    LATENCY = 3

    def __init__(self, width):
        if not isinstance(width, int) or isinstance(width, bool):
            raise TypeError(f"width must be an int, not {width!r}")
        if not 26 <= width <= 64:
            raise ValueError(f"width must be 26 to 64, not {width!r}")
        self._width = width
        # The number is ``o`` · 2^``places``. The leading bit of ``o`` is one; of zero ``o`` is 0 and ``places``
        # undefined.
        super().__init__({"i": In(width), "o": Out(SIGNIFICANT), "places": Out(PLACES)})

    def elaborate(self, platform):
        m = Module()
        value, zeros = self.i, []
        step = 1 << (self._width - 1).bit_length() - 1
        while step:
            if step == _FINE:
                value = delay(m, value, 1, name="coarse")
                zeros = [delay(m, bit, 1, name="coarse_zeros") for bit in zeros]
            shifts, shifted = Signal(name=f"shifts{step}"), Signal(self._width, name=f"shifted{step}")
            m.d.comb += [shifts.eq(~value[-step:].any()), shifted.eq(Mux(shifts, value << step, value))]
            value, zeros, step = shifted, [shifts, *zeros], step // 2
        value = delay(m, value, 1, name="leading")
        zeros = delay(m, Cat(zeros), 1, name="zeros")

        kept, cut = value[-SIGNIFICANT:], value[:-SIGNIFICANT]
        up, rounded = Signal(), Signal(SIGNIFICANT + 1)
        # Below a carry there are only zeros; it becomes the leading bit, one place higher.
        m.d.comb += [up.eq(rounds_up(kept, cut)), rounded.eq(kept + up)]
        places = Const(self._width - SIGNIFICANT, PLACES) - zeros + rounded[-1]
        m.d.comb += [
            self.o.eq(delay(m, Cat(rounded[:-2], rounded[-2] | rounded[-1]), 1, name="significand")),
            self.places.eq(delay(m, places[: PLACES.width].as_signed(), 1, name="places")),
        ]
        return m


class HalfRounder(wiring.Component):
    """Rounds binary32 to fp16 or bf16, to nearest even, with subnormal numbers (docs/conv.md, "Types").

    Latency: ``LATENCY`` cycles. Throughput: one a cycle, without stalls.
    """

    LATENCY = 3

    i: In(32)
    brain: In(1)  # bf16; constant while results are under way
    o: Out(16)

    def elaborate(self, platform):
        m = Module()
        # Cycle 1: the shift of a number that is subnormal in fp16; the bits below 12 places become a sticky bit.
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

        # Cycle 3: a carry out of the mantissa increments the exponent, possibly to infinity.
        rounded = Cat(Mux(infinite, _INFINITY, (size + up)[:15])[:15], minus)
        m.d.comb += self.o.eq(delay(m, Mux(nan, Mux(self.brain, _BRAIN_NAN, _NAN), rounded)[:16], 1, name="packed"))
        return m


def widened(is_signed, value):
    """A byte, signed or unsigned, as a signed number of 9 bits."""
    return Cat(value, is_signed & value[-1]).as_signed()


class Clamp(wiring.Component):
    """Rounds a number to an integer, nearest even, adds the zero point, and clamps the sum (docs/conv.md,
    "Requantisation", steps 4 and 5).

    Numbers from 512 on are clamped in any case, so that only the upper places are shifted; the lower ones become a
    sticky bit.

    With ``zero_first`` the sum is rounded to 24 significant bits before. That matters only where it reaches a half: the
    distance to it is at most half of the last place of the sum. So all places are shifted, and the distance is compared
    with the sum.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle, without stalls.

    Parameters
    ----------
    zero_first : bool
        Whether there is the port ``zero_first``.
    """

    LATENCY = 3

    def __init__(self, *, zero_first=False):
        self._zero_first = zero_first
        super().__init__(
            {
                "size": In(SIGNIFICANT + 1),  # zero, or 2^23 to 2^24
                "places": In(PLACES),  # the number is ``size`` · 2^``places``
                "negative": In(1),  # times -1
                "infinite": In(1),  # the number is infinite
                # These are constant while results are under way.
                "is_signed": In(1),  # the next three and the result are signed
                "zero": In(8),
                "minimum": In(8),  # at most ``maximum``
                "maximum": In(8),
                **({"zero_first": In(1)} if zero_first else {}),  # the zero point is added before rounding
                "o": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        number = self._shift(m)
        negative = delay(m, self.negative, 1, name="negative")

        # Cycle 2: -(v + up) is ~v + 1 - up.
        whole, half, rest = Cat(number[-_WHOLE:], 0), number[-_WHOLE - 1], number[: -_WHOLE - 1]
        inverted = (whole ^ negative.replicate(len(whole))).as_signed()
        zero = widened(self.is_signed, self.zero)
        if self._zero_first:
            total, rounded = self._round_twice(m, zero, inverted, negative, half, rest)
        else:
            up = rounds_up(whole, Cat(rest, half))
            total = delay(m, zero + inverted + (up ^ negative), 1, name="total")
            rounded = total[:8]

        # Cycle 3. If ``total`` is not rounded yet, one is added to it only below the maximum.
        low, high = widened(self.is_signed, self.minimum), widened(self.is_signed, self.maximum)
        clamped = Mux(total < low, self.minimum, Mux(total >= high, self.maximum, rounded))
        m.d.comb += self.o.eq(delay(m, clamped, 1, name="clamped"))
        return m

    def _shift(self, m):
        """Cycle 1: the integer, the place below, and the rest: a sticky bit or, for ``zero_first``, all places."""
        beyond = Signal(signed(PLACES.width + 1))  # the right shift, minus the smallest one
        m.d.comb += beyond.eq(-_LEAST - self.places)
        large = Signal()
        m.d.comb += large.eq(self.infinite | (beyond[-1] & self.size[-2:].any()))
        lower, upper = self.size[: _LEAST - 1], self.size[_LEAST - 1 :]
        value, shifts = Cat(lower.any(), upper), _SHIFTS
        if self._zero_first:
            # A number from a quarter on may round to a half; it loses nothing.
            value, shifts = Cat(Const(0, _SHIFTS), lower, upper), _SHIFTS + 1
        number = Signal(len(value), reset_less=True)
        distance = beyond[: (_SHIFTS - 1).bit_length()]
        m.d.sync += number.eq(value >> distance if self._zero_first else shift_down(m, value, distance))
        with m.If(large):
            m.d.sync += number.eq(Const(1 << _LARGE) << len(value) - _WHOLE)
        with m.Elif(beyond >= shifts):
            m.d.sync += number.eq(0)
        return number

    def _round_twice(self, m, zero, inverted, negative, half, rest):
        """Cycles 2 and 3: the sum rounded down, and its low places rounded to nearest.

        The sum is ``total`` + 1/2 at a half. Its size there, rounded down, is ``size``, and half of its last place is
        2^-25 times the lowest power of two above ``size``. ``short`` is one less than the distance to the half in
        2^-25, if ``near`` says that the upper places allow it.
        """
        total = delay(m, zero + inverted, 1, name="total")
        more = delay(m, (zero + inverted + 1)[:8], 1, name="more")
        is_half = half & ~rest.any()
        even = inverted[0] ^ (zero[0] & self.zero_first)
        up = delay(m, Mux(is_half, even, half ^ negative), 1, name="up")
        # Sums from 256 on are clamped.
        upper = (rest[_NEAR:] ^ (~half).replicate(len(rest) - _NEAR)).any()
        near = delay(m, self.zero_first & ~upper, 1, name="near")
        short = delay(m, ((rest[:_NEAR] ^ (~half).replicate(_NEAR)) + half.replicate(_NEAR))[:_NEAR], 1, name="short")

        size, reaches = total[: _NEAR - 1] ^ total[-1].replicate(_NEAR - 1), Signal()
        # Whether the highest one of ``short`` is not above the one of ``size``.
        m.d.comb += reaches.eq(near & ~short[-1] & ((short[:-1] & ~size) <= size))
        return total, Mux(Mux(reaches, total[0], up), more, total[:8])


class Requantiser(wiring.Component):
    """One lane of requantisation (docs/conv.md, "Requantisation").

    ====== =======================================================
    cycles
    ====== =======================================================
    1      size of the accumulator
    2–4    to 24 significant bits
    5      products of parts: three multipliers, and LUTs for the upper parts
    6      their sum
    7      the product to 24 significant bits; its leading one is in one of two places
    8–10   to an integer, zero point, clamp
    ====== =======================================================

    Subnormal scales get a hidden one too: their results are too small to matter.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle, without stalls.

    Parameters
    ----------
    zero_first : bool
        As for :class:`Clamp`.
    """

    LATENCY = 4 + Significand.LATENCY + Clamp.LATENCY

    def __init__(self, *, zero_first=False):
        self._zero_first = zero_first
        # Constant while results are under way, as for :class:`Clamp`.
        constant = {"is_signed": 1, "zero": 8, "minimum": 8, "maximum": 8, **({"zero_first": 1} if zero_first else {})}
        self._constant = tuple(constant)
        super().__init__(
            {
                "acc": In(32),
                "scale": In(32),  # binary32
                **{name: In(width) for name, width in constant.items()},
                "o": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.significand = significand = Significand(32)
        m.submodules.clamp = clamp = Clamp(zero_first=self._zero_first)
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
        # The last place of the product's upper 24, if the leading one is in the lower of the two places.
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
            *(getattr(clamp, name).eq(getattr(self, name)) for name in self._constant),
            self.o.eq(clamp.o),
        ]
        return m
