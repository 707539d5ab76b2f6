"""Products of elements, and accumulators, as terms of a dot product."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..lib.delay import delay
from .terms import TERM, TOP, FlagsLayout, is_integer

__all__ = ["AccumulatorTerm", "LaneProduct"]


def _element(m, bits, kind, is_signed, name):
    """What 16 bits mean, as signals.

    ``factor`` (17 bits, two's complement) is an integer, the lower of two, or a significand without its sign;
    ``upper`` (9 bits) the upper of two integers. The others are those of a float.
    """
    brain, floating, wide = kind[0], kind[3], kind[2]
    exponent = Mux(brain, bits[7:15], bits[10:15])
    hidden = Mux(brain, bits[7:15].any(), bits[10:15].any())
    ones = Mux(brain, bits[7:15].all(), bits[10:15].all())
    some = Mux(brain, bits[:7].any(), bits[:10].any())
    significand = Mux(brain, Cat(Const(0, 8), bits[:7], hidden), Cat(Const(0, 5), bits[:10], hidden))
    narrow = Cat(bits[:8], (is_signed & bits[7]).replicate(9))
    integer = Mux(wide, Cat(bits, is_signed & bits[15]), narrow)
    values = {
        "negative": bits[15],
        "exponent": exponent | ~hidden,
        "zero": ~hidden & ~some,
        "infinite": ones & ~some,
        "nan": ones & some,
        "factor": Mux(floating, significand, integer),
        "upper": Cat(bits[8:], is_signed & bits[15]),
    }
    signals = {part: Signal.like(value, name=f"{name}_{part}") for part, value in values.items()}
    m.d.comb += [signals[part].eq(value) for part, value in values.items()]
    return SimpleNamespace(**signals)


class LaneProduct(wiring.Component):
    """The product of two elements of 16 bits, or the sum of the products of two pairs of 8 bits.

    Significands are moved to the top of 16 bits, so that fp16 and bf16 products have their highest place in common,
    and one multiplier of 17 bits does for 16-bit integers and for both; it multiplies the lower pair of 8 bits too.
    A second one of 9 bits multiplies the upper pair. Two multipliers of this size fit any FPGA's, one each.

    Latency: 1 cycle to ``top`` and ``flags``, ``LATENCY`` to ``term``. Throughput: one a cycle.

    Members
    -------
    type : In(4)
        ``MmType``.
    a, b : In(16)
        One element of 16 bits or two of 8 bits, each.
    top : Out(TOP)
    flags : Out(FlagsLayout)
        Of a float; 0 or unknown for integers.
    term : Out(TERM)
    """

    LATENCY = 3

    type: In(4)
    a: In(16)
    b: In(16)
    top: Out(TOP)
    flags: Out(FlagsLayout())
    term: Out(TERM)

    def elaborate(self, platform):
        m = Module()
        floating = ~is_integer(self.type)
        a = _element(m, self.a, self.type, ~self.type[1], "a")
        b = _element(m, self.b, self.type, ~self.type[0], "b")
        minus = Signal()
        m.d.comb += minus.eq((a.negative ^ b.negative) & floating)
        self._classify(m, a, b, floating, minus)

        # Cycle 1: factors. One of the upper pair is zero, if there is no such pair.
        factors = [Signal(signed(17), name=f"factor_{name}", reset_less=True) for name in "ab"]
        uppers = [Signal(signed(9), name=f"upper_{name}", reset_less=True) for name in "ab"]
        m.d.sync += [
            factors[0].eq(a.factor),
            factors[1].eq(b.factor),
            uppers[0].eq(a.upper),
            uppers[1].eq(b.upper),
        ]
        with m.If(floating | self.type[2]):
            m.d.sync += uppers[0].eq(0)
        # Cycle 2: products.
        product = Signal(signed(34), reset_less=True)
        upper_product = Signal(signed(18), reset_less=True)
        m.d.sync += [product.eq(factors[0] * factors[1]), upper_product.eq(uppers[0] * uppers[1])]
        # Cycle 3: the pair together, or a float with its sign; the other product is zero then.
        term = Signal(TERM, reset_less=True)
        negate = delay(m, minus, 2, name="minus")
        m.d.sync += term.eq((product ^ negate.replicate(34).as_signed()) + (upper_product | negate))
        m.d.comb += self.term.eq(term)
        return m

    def _classify(self, m, a, b, floating, minus):
        """Cycle 1: the weight of the product's highest place, and what else there is to know."""
        top = Signal(TOP, reset_less=True)
        flags = Signal(FlagsLayout(), reset_less=True)
        infinite = Signal()
        # log2 of the weight is ea - 15 + eb - 15 + 1 for fp16, ea - 127 + eb - 127 + 1 for bf16; 255 is added.
        offset = Mux(self.type[0], 2, 226)
        m.d.comb += infinite.eq(a.infinite | b.infinite)
        m.d.sync += [
            top.eq(Mux(floating & ~a.zero & ~b.zero, a.exponent + b.exponent + offset, 0)),
            flags.nan.eq(a.nan | b.nan | (infinite & (a.zero | b.zero))),
            flags.plus.eq(infinite & ~minus),
            flags.minus.eq(infinite & minus),
            flags.positive.eq(~minus),
        ]
        m.d.comb += [self.top.eq(top), self.flags.eq(flags)]


class AccumulatorTerm(wiring.Component):
    """An accumulator as a term: an integer, or an fp32 number.

    Latency: 1 cycle to ``top`` and ``flags``, ``LATENCY`` to ``term``. Throughput: one a cycle.

    Members
    -------
    integer : In(1)
    enable : In(1)
        Otherwise it is a term that changes no sum.
    i : In(32)
    top : Out(TOP)
    flags : Out(FlagsLayout)
        Of a float; 0 or unknown for integers.
    term : Out(TERM)
    """

    LATENCY = LaneProduct.LATENCY

    integer: In(1)
    enable: In(1)
    i: In(32)
    top: Out(TOP)
    flags: Out(FlagsLayout())
    term: Out(TERM)

    def elaborate(self, platform):
        m = Module()
        mantissa, exponent, minus = self.i[:23], self.i[23:31], self.i[31]
        hidden, ones, some = Signal(), Signal(), Signal()
        m.d.comb += [hidden.eq(exponent.any()), ones.eq(exponent.all()), some.eq(mantissa.any())]
        significand = Cat(Const(0, 8), mantissa, hidden)
        # The biased exponent, at least 1, and 128.
        weight = Cat(exponent[0] | ~hidden, exponent[1:7], ~exponent[7], exponent[7])

        top = Signal(TOP, reset_less=True)
        flags = Signal(FlagsLayout(), reset_less=True)
        size, negate = Signal(32, reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            top.eq(Mux(~self.integer & (hidden | some) & self.enable, weight, 0)),
            flags.nan.eq(ones & some & self.enable),
            flags.plus.eq(ones & ~some & ~minus & self.enable),
            flags.minus.eq(ones & ~some & minus & self.enable),
            flags.positive.eq(~minus & self.enable),
            size.eq(Mux(self.enable, Mux(self.integer, self.i, significand), 0)),
            negate.eq(~self.integer & minus & self.enable),
        ]
        m.d.comb += [self.top.eq(top), self.flags.eq(flags)]
        number = (size ^ negate.replicate(33)) + negate
        m.d.comb += self.term.eq(delay(m, number[:33], self.LATENCY - 1, name="number"))
        return m
