"""Floating-point formats, and their numbers taken apart."""

from dataclasses import dataclass
from types import SimpleNamespace

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import Element
from tilewright.spec.tmau_registers import FLOAT_SUMS

from ..lib.logic import shift_down

__all__ = ["BF16", "F16", "F32", "FloatAdder", "FloatFormat", "FloatSums", "is_summed", "unpack"]


@dataclass(frozen=True)
class FloatFormat:
    """A binary format of IEEE 754.

    Attributes
    ----------
    exponent, mantissa : int
        Bits, the hidden one not counted.
    flush : bool
        Subnormal operands and sums are zeros of their sign.
    """

    exponent: int
    mantissa: int
    flush: bool = False

    @property
    def width(self):
        """Bits of a number."""
        return 1 + self.exponent + self.mantissa


F16 = FloatFormat(5, 10)
BF16 = FloatFormat(8, 7)
F32 = FloatFormat(8, 23, flush=True)


def unpack(m, name, formats, index, value, exponent_bits, mantissa_bits):
    """The parts of ``value``, a number of ``formats[index]``, at the widths of the largest format.

    Returns
    -------
    namespace of Signal
        ``sign``; ``size``, which orders the numbers without their signs; ``exponent``, at least 1; ``significand``,
        with the hidden bit on top and flushed to zero if the format says so; ``nan`` and ``infinite``.
    """
    parts = [_parts(fmt, value, mantissa_bits) for fmt in formats]
    widths = {
        "sign": 1,
        "size": exponent_bits + mantissa_bits,
        "exponent": exponent_bits,
        "significand": 1 + mantissa_bits,
        "nan": 1,
        "infinite": 1,
    }
    chosen = {part: Signal(width, name=f"{name}_{part}") for part, width in widths.items()}
    m.d.comb += [signal.eq(Array(each[part] for each in parts)[index]) for part, signal in chosen.items()]
    return SimpleNamespace(**chosen)


def _parts(fmt, value, mantissa_bits):
    mantissa, exponent = value[: fmt.mantissa], value[fmt.mantissa : fmt.width - 1]
    hidden = exponent.any()
    kept = mantissa & hidden.replicate(fmt.mantissa) if fmt.flush else mantissa
    return {
        "sign": value[fmt.width - 1],
        "size": value[: fmt.width - 1],
        "exponent": Cat(exponent[0] | ~hidden, exponent[1:]),
        "significand": Cat(Const(0, mantissa_bits - fmt.mantissa), kept, hidden),
        "nan": exponent.all() & mantissa.any(),
        "infinite": exponent.all() & ~mantissa.any(),
    }


#: Bits of an aligned number below its last place: one that rounding needs, one more that a shift by one place may bring
#: up, and one that says whether anything is below.
_GUARD = 3


def _named(m, value, name):
    """``value`` as a signal, so that what uses it several times does not repeat it."""
    signal = Signal.like(value, name=name)
    m.d.comb += signal.eq(value)
    return signal


def _leading_zeros(m, value):
    """How many bits above its highest one ``value`` has; it is not zero."""
    width = 1 << (len(value) - 1).bit_length()
    value = Cat(Const(0, width - len(value)), value)
    count = []
    while width > 1:
        width //= 2
        value = _named(m, value, f"last{2 * width}")
        high = value[width:]
        count.append(_named(m, ~high.any(), f"none_above{width}"))
        value = Mux(count[-1], value[:width], high)
    return Cat(reversed(count))


class FloatAdder(wiring.Component):
    """Adds two numbers, rounding to nearest even. NaN is a zero and ones, and ``x + (-x)`` is +0.

    All formats share one data path. Significands have their leading bit in one place, and those of a shorter format
    have zeros below. Exponents need no common bias, for a sum has the bias of its operands. Where the sum is rounded
    and what the largest exponent is are all that depends on the format.

    Latency: ``LATENCY`` enabled cycles. Throughput: one sum an enabled cycle.

    Specification: docs/tmau.md, "Stores and reductions".

    Parameters
    ----------
    formats : sequence of FloatFormat
        At least two.

    Members
    -------
    a, b : In(max(fmt.width for fmt in formats))
        The operands, in the low bits.
    format : In(range(len(formats)))
        Index of their format.
    enable : In(1)
        Advances the pipeline.
    o : Out(max(fmt.width for fmt in formats))
        The sum, in the low bits; those above are zero.
    """

    LATENCY = 6

    def __init__(self, formats):
        self._formats = tuple(formats)
        if len(self._formats) < 2:
            raise ValueError(f"formats must be at least two, not {formats!r}")
        self._exponent = max(fmt.exponent for fmt in self._formats)
        self._mantissa = max(fmt.mantissa for fmt in self._formats)
        width = max(fmt.width for fmt in self._formats)
        super().__init__(
            {
                "a": In(width),
                "b": In(width),
                "format": In(range(len(self._formats))),
                "enable": In(1),
                "o": Out(width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        compared = self._register(m, "compared", **self._compare(m))
        aligned = self._register(m, "aligned", **self._align(m, compared))
        added = self._register(m, "added", **self._add(aligned))
        counted = self._register(m, "counted", **self._count(m, added))
        shifted = self._register(m, "shifted", **self._shift(m, counted))
        with m.If(self.enable):
            m.d.sync += self.o.eq(self._round(m, shifted))
        return m

    def _register(self, m, stage, **values):
        """Registers between two stages, one for each value."""
        registers = {name: Signal.like(value, name=f"{stage}_{name}") for name, value in values.items()}
        with m.If(self.enable):
            m.d.sync += [registers[name].eq(value) for name, value in values.items()]
        return SimpleNamespace(**registers)

    def _compare(self, m):
        """Stage 1: unpacks the operands; which one is larger, and how far apart are they?"""
        a, b = (
            unpack(m, name, self._formats, self.format, value, self._exponent, self._mantissa)
            for name, value in (("a", self.a), ("b", self.b))
        )
        larger_b, subtract = a.size < b.size, a.sign ^ b.sign
        return {
            "a": a.significand,
            "b": b.significand,
            "a_exponent": a.exponent,
            "b_exponent": b.exponent,
            "a_above": (a.exponent - b.exponent)[: self._exponent],
            "b_above": (b.exponent - a.exponent)[: self._exponent],
            "larger_b": larger_b,
            "subtract": subtract,
            "negative": Mux(larger_b, b.sign, a.sign),
            "infinite": a.infinite | b.infinite,
            "nan": a.nan | b.nan | (a.infinite & b.infinite & subtract),
            "format": self.format,
        }

    @staticmethod
    def _align(m, i):
        """Stage 2: moves the smaller operand to the place of the larger one."""
        small = _named(m, Cat(Const(0, _GUARD), Mux(i.larger_b, i.a, i.b)), "small")
        distance = _named(m, Mux(i.larger_b, i.b_above, i.a_above), "distance")
        return {
            "large": Mux(i.larger_b, i.b, i.a),
            "small": shift_down(m, small, distance),
            "exponent": Mux(i.larger_b, i.b_exponent, i.a_exponent),
            "subtract": i.subtract,
            "negative": i.negative,
            "infinite": i.infinite,
            "nan": i.nan,
            "format": i.format,
        }

    @staticmethod
    def _add(i):
        """Stage 3: the sum of the magnitudes, or their difference, which is not negative."""
        large, small = Cat(Const(0, _GUARD), i.large), i.small
        carry_in = i.subtract
        # One adder: the carry comes in through a place below.
        total = (Cat(1, large, 0) + Cat(carry_in, small ^ carry_in.replicate(len(small)), carry_in))[1:]
        return {
            "total": total[: len(large) + 1],
            "exponent": i.exponent,
            "subtract": i.subtract,
            "negative": i.negative,
            "infinite": i.infinite,
            "nan": i.nan,
            "format": i.format,
        }

    @staticmethod
    def _count(m, i):
        """Stage 4: by how many places the sum is too low; fewer if its exponent cannot go down so far."""
        # A one where the exponent would be zero ends the count.
        top = len(i.total) - 1
        end = Cat(i.exponent == top - place for place in range(top))
        return {
            "total": i.total,
            "places": _leading_zeros(m, i.total | end),
            "exponent": (i.exponent + 1)[: len(i.exponent)],
            "negative": i.negative & (~i.subtract | i.total.any()),
            "infinite": i.infinite,
            "nan": i.nan,
            "format": i.format,
        }

    def _shift(self, m, i):
        """Stage 5: puts the leading one to its place, and decides whether to round up."""
        width = len(i.total)
        total = Signal(width, name="moved")
        m.d.comb += total.eq(i.total << i.places)
        normal = total[-1]
        flushed = Array(fmt.flush for fmt in self._formats)[i.format] & ~normal
        ups = []
        for fmt in self._formats:
            last = width - 1 - fmt.mantissa
            ups.append(total[last - 1] & (total[last] | total[: last - 1].any()))
        return {
            "mantissa": total[width - 1 - self._mantissa : -1],
            "exponent": Mux(normal, (i.exponent - i.places)[: len(i.exponent)], 0),
            "up": Array(ups)[i.format],
            "negative": i.negative,
            "flushed": flushed,
            "infinite": i.infinite,
            "nan": i.nan,
            "format": i.format,
        }

    def _round(self, m, i):
        """Stage 6: rounds, and packs. A carry out of the mantissa counts the exponent up."""
        number = Cat(i.mantissa, i.exponent)
        rounded = Signal(len(number))
        last = Array(1 << self._mantissa - fmt.mantissa for fmt in self._formats)[i.format]
        m.d.comb += rounded.eq(number + Mux(i.up, last, 0))
        packed = []
        for fmt in self._formats:
            low, high = self._mantissa - fmt.mantissa, self._mantissa + fmt.exponent
            infinity = (1 << fmt.exponent) - 1 << fmt.mantissa
            # What would be seen after the addition is seen before, so that nothing waits for its carry.
            overflow = i.exponent[: fmt.exponent].all() | ((number[low:high] == infinity - 1) & i.up)
            size = Mux(i.infinite | overflow, infinity, Mux(i.flushed, 0, rounded[low:high]))
            packed.append(Mux(i.nan, (1 << fmt.width - 1) - 1, Cat(size, i.negative)))
        return Array(packed)[i.format]


#: Formats of the adders; an index into the longer tuple, cut to one bit, is one into the shorter.
_WIDE, _NARROW = (BF16, F16, F32), (BF16, F16)


class FloatSums(wiring.Component):
    """Adds floats of three types.

    Four words of 32 bits have two adders each: a wide one for an F32 or for the 16-bit float in the low half, and a
    narrow one for that in the high half.

    Latency: ``LATENCY`` enabled cycles. Throughput: sixteen bytes an enabled cycle.

    Members
    -------
    old, source : In(128)
    element : In(4)
        ``spec.Element``. For another type than F16, BF16 and F32 the result has no meaning.
    enable : In(1)
        Advances the pipeline.
    o : Out(128)
    """

    LATENCY = FloatAdder.LATENCY

    old: In(128)
    source: In(128)
    element: In(4)
    enable: In(1)
    o: Out(128)

    def elaborate(self, platform):
        m = Module()
        is_f32 = self.element == Element.F32
        chosen = is_f32
        for stage in range(self.LATENCY):
            later = Signal(name=f"is_f32_{stage}")
            with m.If(self.enable):
                m.d.sync += later.eq(chosen)
            chosen = later
        fmt = Cat(self.element == Element.F16, is_f32)
        for number in range(4):
            old, source = self.old.word_select(number, 32), self.source.word_select(number, 32)
            m.submodules[f"wide{number}"] = wide = FloatAdder(_WIDE)
            m.submodules[f"narrow{number}"] = narrow = FloatAdder(_NARROW)
            for adder, low in ((wide, 0), (narrow, 16)):
                m.d.comb += [
                    adder.a.eq(old[low:]),
                    adder.b.eq(source[low:]),
                    adder.format.eq(fmt),  # what the narrow one makes of F32 is not looked at
                    adder.enable.eq(self.enable),
                ]
            m.d.comb += self.o.word_select(number, 32).eq(Cat(wide.o[:16], Mux(chosen, wide.o[16:], narrow.o)))
        return m


def is_summed(element):
    """Whether elements are floats, as ``spec.Element``."""
    return Cat(element == kind for kind in FLOAT_SUMS).any()
