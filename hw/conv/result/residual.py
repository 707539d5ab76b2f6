"""Residual addition: a multiply-add of a byte and binary32 numbers, rounded once, and a lane with two of them."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.logic import delay, shift_down
from .rounding import PLACES, SIGNIFICANT, Clamp, Significand, widened

__all__ = ["FusedMultiplyAdd", "NumberLayout", "ResidualAdder", "unpacked"]

_HALF = SIGNIFICANT // 2
#: Bits of a product with 8 bits, and guard bits below the last place of an aligned number: one for rounding, one that a
#: normalising shift by one place may bring up, and a sticky bit.
_PRODUCT = SIGNIFICANT + 8
_GUARD = 3
_WINDOW = _PRODUCT + _GUARD
#: Places of numbers from 2^128 on.
_TOO_LARGE = 128 - SIGNIFICANT + 1


class NumberLayout(data.StructLayout):
    """A number, ± significand · 2^places, with the leading bit on top unless it is a subnormal number of binary32."""

    def __init__(self):
        super().__init__({"negative": 1, "infinite": 1, "places": PLACES, "significand": SIGNIFICANT})


def unpacked(value):
    """A finite binary32 number as members of :class:`NumberLayout`, by name."""
    exponent, hidden = value[23:31], value[23:31].any()
    return {
        "negative": value[31],
        "infinite": Const(0, 1),
        "places": (Cat(exponent[0] | ~hidden, exponent[1:]) - 150).as_signed(),
        "significand": Cat(value[:23], hidden),
    }


class FusedMultiplyAdd(wiring.Component):
    """Computes ``factor`` · ``ratio`` + ``addend``, rounded once to 24 significant bits, nearest even (docs/conv.md,
    "Requantisation"). From 2^128 on the sum is infinite. Sums that are subnormal in binary32 are exact, and have their
    leading bit on top.

    ====== =======================================================
    cycles
    ====== =======================================================
    1      size of the factor
    2      products of the halves of a significand
    3      their sum; the distance of product and addend
    4–5    alignment of the lower one
    6      sum, or difference
    7–9    to 24 significant bits
    ====== =======================================================

    Exponents alone decide which of the two is the higher one. The leading bit of a product may be lower than its
    exponent says; if the product is taken for the higher one, either the addend is too low to lose bits, or all places
    of the product are in the window.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle, without stalls.
    """

    LATENCY = 6 + Significand.LATENCY
    #: Cycles from the factor to its addend.
    ADDEND = 2

    factor: In(signed(9))  # -255 to 255
    ratio: In(32)  # binary32, finite; constant while results are under way
    addend: In(NumberLayout())  # 2 cycles later than the factor
    o: Out(NumberLayout())  # ``places`` and ``negative`` are undefined for zero

    def elaborate(self, platform):
        m = Module()
        compared = self._register(m, "compared", **self._multiply(m))
        shifted = self._register(m, "shifted", **self._shift(m, compared))
        aligned = self._register(m, "aligned", **self._align(m, shifted))
        added = self._register(m, "added", **self._add(m, aligned))
        m.submodules.significand = significand = Significand(_WINDOW + 1)
        m.d.comb += significand.i.eq(added.total)
        # The last place of the window, and of the significand in it.
        lowest = delay(m, added.top - _WINDOW, Significand.LATENCY, name="lowest")
        places = Signal(PLACES)
        m.d.comb += [
            places.eq(significand.places + lowest),
            self.o.negative.eq(delay(m, added.negative, Significand.LATENCY, name="negative")),
            self.o.infinite.eq(
                delay(m, added.infinite, Significand.LATENCY, name="infinite")
                | (significand.o[-1] & (places >= _TOO_LARGE))
            ),
            self.o.places.eq(places),
            self.o.significand.eq(significand.o),
        ]
        return m

    @staticmethod
    def _register(m, stage, **values):
        """Registers between two stages, one for each value."""
        return SimpleNamespace(**{name: delay(m, value, 1, name=f"{stage}_{name}") for name, value in values.items()})

    def _multiply(self, m):
        """Cycles 1 to 3: the exact product, and the distance between its top and the addend's."""
        ratio, addend = SimpleNamespace(**unpacked(self.ratio)), self.addend
        minus = self.factor[-1]
        size = delay(m, ((self.factor[:8] ^ minus.replicate(8)) + minus)[:8], 1, name="size")
        halves = ratio.significand[:_HALF], ratio.significand[_HALF:]
        low, high = (delay(m, size * half, 1, name="product") for half in halves)
        zero = delay(m, ~size.any(), 1, name="zero")
        above, below, higher = Signal(PLACES), Signal(PLACES), Signal()
        m.d.comb += [
            above.eq(ratio.places + (_PRODUCT - SIGNIFICANT) - addend.places),
            below.eq(addend.places - ratio.places - (_PRODUCT - SIGNIFICANT)),
            # A subnormal addend, or zero, is never above a product.
            higher.eq(zero | (above[-1] & addend.significand[-1])),
        ]
        return {
            "product": (low + Cat(Const(0, _HALF), high))[:_PRODUCT],
            "addend": addend.significand,
            "higher": higher,
            "above": above,
            "below": below,
            "top": Mux(higher, addend.places + SIGNIFICANT, ratio.places + _PRODUCT)[: PLACES.width].as_signed(),
            "minus": delay(m, minus, 2, name="minus") ^ ratio.negative,
            "addend_minus": addend.negative,
            "infinite": addend.infinite,
        }

    @staticmethod
    def _shift(m, i):
        """Cycle 4: shifts the lower one by less than 8 places."""
        product = Cat(Const(0, _GUARD), i.product)
        addend = Cat(Const(0, _WINDOW - SIGNIFICANT), i.addend)
        distance = Signal(PLACES.width)
        m.d.comb += distance.eq(Mux(i.higher, i.below, i.above))
        return {
            "large": Mux(i.higher, addend, product),
            "small": shift_down(m, Mux(i.higher, product, addend), distance[:3]),
            "distance": distance[3:],
            "top": i.top,
            "minus": Mux(i.higher, i.addend_minus, i.minus),
            "subtract": i.minus ^ i.addend_minus,
            "infinite": i.infinite,
            "addend_minus": i.addend_minus,
        }

    @staticmethod
    def _align(m, i):
        """Cycle 5: shifts it further, by multiples of 8."""
        values = vars(i) | {"small": shift_down(m, i.small, i.distance, unit=8)}
        del values["distance"]
        return values

    @staticmethod
    def _add(m, i):
        """Cycle 6: the size of the sum. After a small shift the lower one may still be the larger one."""
        total, reverse = Signal(_WINDOW + 1), Signal(_WINDOW + 1)
        carry = i.subtract
        # One adder, with the carry at a place below the lowest one.
        operands = Cat(1, i.large, 0), Cat(carry, i.small ^ carry.replicate(_WINDOW), carry)
        m.d.comb += [total.eq((operands[0] + operands[1])[1:]), reverse.eq(i.small - i.large)]
        less = i.subtract & total[-1]
        return {
            "total": Mux(less, reverse, total),
            "top": i.top,
            "negative": Mux(i.infinite, i.addend_minus, i.minus ^ less),
            "infinite": i.infinite,
        }


class ResidualAdder(wiring.Component):
    """One lane of residual addition (docs/conv.md, "Requantisation").

    The inner sum needs only the second operand, so that it is computed while the first one is requantised.

    Latency: ``LATENCY`` cycles from the first operand. Throughput: one a cycle, without stalls.
    """

    FIRST = FusedMultiplyAdd.LATENCY - FusedMultiplyAdd.ADDEND
    LATENCY = FusedMultiplyAdd.LATENCY + Clamp.LATENCY

    second: In(8)  # the operand in memory
    first: In(8)  # the requantised operand, ``FIRST`` cycles later
    # These are constant while results are under way; factors and offset are finite binary32.
    is_signed: In(1)  # operands and results are signed
    first_ratio: In(32)
    second_ratio: In(32)
    offset: In(32)
    minimum: In(8)  # at most ``maximum``
    maximum: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = FusedMultiplyAdd()
        m.submodules.outer = outer = FusedMultiplyAdd()
        m.submodules.clamp = clamp = Clamp()
        m.d.comb += [
            inner.factor.eq(widened(self.is_signed, self.second)),
            inner.ratio.eq(self.second_ratio),
            *(inner.addend[name].eq(value) for name, value in unpacked(self.offset).items()),
            outer.factor.eq(widened(self.is_signed, self.first)),
            outer.ratio.eq(self.first_ratio),
            outer.addend.eq(inner.o),
            clamp.size.eq(outer.o.significand),
            clamp.places.eq(outer.o.places),
            clamp.negative.eq(outer.o.negative),
            clamp.infinite.eq(outer.o.infinite),
            clamp.is_signed.eq(self.is_signed),
            clamp.minimum.eq(self.minimum),
            clamp.maximum.eq(self.maximum),
            self.o.eq(clamp.o),
        ]
        return m
