"""Accumulators become numbers of 8 bits."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...lib.delay import delay
from ...lib.product import digit_product
from .clamp import Clamp
from .significand import PLACES, SIGNIFICANT, Significand, rounds_up

__all__ = ["Requantiser"]

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
