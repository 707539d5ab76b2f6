"""Terms of a dot product (docs/pe.md, "Numbers"): products, accumulators, and their alignment."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..lib.logic import delay, named

__all__ = [
    "ACCUMULATOR_PLACES",
    "ALIGNED",
    "PRODUCT_PLACES",
    "TERM",
    "TOP",
    "AccumulatorTerm",
    "Aligner",
    "Flags",
    "LaneProduct",
    "Special",
    "is_integer",
]  # fmt: skip

#: A term in two's complement. Bit 31 is the highest place of M of a float; places that M does not have are zero.
TERM = signed(33)

#: Weight of the highest place of a term, log2 plus 255. 0, the least: the term is zero.
TOP = unsigned(9)

#: Places of M of a float: of a product (fp16; bf16 has 16), and of an accumulator.
PRODUCT_PLACES, ACCUMULATOR_PLACES = 22, 24


class Flags(data.Struct):
    """What the number of a term does not say. Flags of several terms are ORed."""

    nan: 1
    plus: 1  # infinite, and positive
    minus: 1  # infinite, and negative
    positive: 1  # not negative: its sign bit is clear


class Special(data.Struct):
    """What the number of a sum does not say."""

    nan: 1
    infinite: 1
    negative: 1  # sign of an infinity; otherwise no term is positive, so that a zero is -0


def is_integer(kind):
    """Whether an ``MmType`` is of integers."""
    return ~kind[3]


def _element(m, bits, kind, is_signed, name):
    """The meaning of 16 bits, as signals.

    ``factor`` (17 bits, two's complement) is an integer, the lower of two, or a significand without its sign;
    ``upper`` (9 bits) the upper of two integers. The others are of a float.
    """
    brain, floating, wide = kind[0], kind[3], kind[2]
    exponent = Mux(brain, bits[7:15], bits[10:15])
    hidden = Mux(brain, bits[7:15].any(), bits[10:15].any())
    ones = Mux(brain, bits[7:15].all(), bits[10:15].all())
    some = Mux(brain, bits[:7].any(), bits[:10].any())
    significand = Mux(brain, Cat(Const(0, 8), bits[:7], hidden), Cat(Const(0, 5), bits[:10], hidden))
    narrow = Cat(bits[:8], (is_signed & bits[7]).replicate(9))
    integer = Mux(wide, Cat(bits, is_signed & bits[15]), narrow)
    parts = {
        "negative": bits[15],
        "exponent": exponent | ~hidden,
        "zero": ~hidden & ~some,
        "infinite": ones & ~some,
        "nan": ones & some,
        "factor": Mux(floating, significand, integer),
        "upper": Cat(bits[8:], is_signed & bits[15]),
    }
    return SimpleNamespace(**{part: named(m, value, f"{name}_{part}") for part, value in parts.items()})


class LaneProduct(wiring.Component):
    """The product of two elements of 16 bits, or the sum of the products of two pairs of 8 bits.

    Significands are at the top of 16 bits, so that fp16 and bf16 products have the same highest place, and one
    multiplier of 17 bits serves 16-bit integers, both floats, and the lower pair of 8 bits. A second one of 9 bits
    multiplies the upper pair. Each of them fits one multiplier of any FPGA.

    Latency: 1 cycle to ``top`` and ``flags``, ``LATENCY`` to ``term``. Throughput: one a cycle. ``top`` and ``flags``
    are those of a float; 0 or undefined for integers.
    """

    LATENCY = 3

    type: In(4)  # MmType
    a: In(16)  # one element of 16 bits or two of 8 bits, each
    b: In(16)
    top: Out(TOP)
    flags: Out(Flags)
    term: Out(TERM)

    def elaborate(self, platform):
        m = Module()
        floating = ~is_integer(self.type)
        a = _element(m, self.a, self.type, ~self.type[1], "a")
        b = _element(m, self.b, self.type, ~self.type[0], "b")
        minus = Signal()
        m.d.comb += minus.eq((a.negative ^ b.negative) & floating)
        self._classify(m, a, b, floating, minus)

        # Cycle 1: factors. Without an upper pair one of its factors is zero.
        factors = [Signal(signed(17), name=f"factor_{name}", reset_less=True) for name in "ab"]
        uppers = [Signal(signed(9), name=f"upper_{name}", reset_less=True) for name in "ab"]
        m.d.sync += [factors[0].eq(a.factor), factors[1].eq(b.factor), uppers[0].eq(a.upper), uppers[1].eq(b.upper)]
        with m.If(floating | self.type[2]):
            m.d.sync += uppers[0].eq(0)
        # Cycle 2: products.
        product = Signal(signed(34), reset_less=True)
        upper_product = Signal(signed(18), reset_less=True)
        m.d.sync += [product.eq(factors[0] * factors[1]), upper_product.eq(uppers[0] * uppers[1])]
        # Cycle 3: the sum of the pair; or a float with its sign, when the other product is zero.
        term = Signal(TERM, reset_less=True)
        negate = delay(m, minus, 2, name="minus")
        m.d.sync += term.eq((product ^ negate.replicate(34).as_signed()) + (upper_product | negate))
        m.d.comb += self.term.eq(term)
        return m

    def _classify(self, m, a, b, floating, minus):
        """Cycle 1: the weight of the highest place of the product, and its flags."""
        top = Signal(TOP, reset_less=True)
        flags = Signal(Flags, reset_less=True)
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

    Latency: 1 cycle to ``top`` and ``flags``, ``LATENCY`` to ``term``. Throughput: one a cycle. ``top`` and ``flags``
    are those of a float; 0 or undefined for integers.
    """

    LATENCY = LaneProduct.LATENCY

    integer: In(1)
    enable: In(1)  # otherwise the term is zero
    i: In(32)
    top: Out(TOP)
    flags: Out(Flags)
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
        flags = Signal(Flags, reset_less=True)
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


#: W + 1 places and a sign: bit 48 is the highest place of the largest term, bit 0 the place below the window.
ALIGNED = signed(50)

_FINE = 4  # log2 of the step of the second shifter
_INTEGER = 3  # code with which the second shifter selects an integer


class Aligner(wiring.Component):
    """Shifts a term down by the distance of its highest place from the highest of all (docs/pe.md, "Numbers", step 3).

    The shift is arithmetic, and bit 0 is ORed with all bits that are lost. For negative terms this is the truncation of
    step 3 too: rounding down subtracts one from the places above, and a one in the lowest place adds half of it.

    A float has few places. The first shift, by less than sixteen, has room for all of them. The second one, by 0, 16 or
    32, also selects an integer, which is not shifted. A float at a distance of 48 places or more becomes one in the
    lowest place, or minus one, beside the shifters.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.

    Parameters
    ----------
    places : int
        Places of M at most, from the highest place of TERM down; lower places of a float are zero.
    """

    LATENCY = 2

    def __init__(self, places):
        self._places = places
        super().__init__(
            {
                "term": In(TERM),
                "integer": In(1),  # ``o`` is the term
                "top": In(TOP),  # of the term
                "highest": In(TOP),  # the largest of the sum
                "o": Out(ALIGNED),
            }
        )

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
