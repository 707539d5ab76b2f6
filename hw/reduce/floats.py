"""Floating-point addition: formats, a pipelined adder for several of them, and sums of sixteen bytes."""

from dataclasses import dataclass
from types import SimpleNamespace

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import Element
from tilewright.spec.tmau_registers import FLOAT_SUMS

from ..lib.component import shared_module
from ..lib.logic import leading_zeros, named, shift_down

__all__ = ["BF16", "F16", "F32", "FloatAdder", "FloatFormat", "FloatSums", "delayed", "is_summed", "unpack"]


@dataclass(frozen=True)
class FloatFormat:
    """A binary format of IEEE 754.

    Attributes
    ----------
    exponent, mantissa : int
        Bits, without the hidden one.
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

#: Formats of the adders of FloatSums: an index into the longer tuple, cut to one bit, is one into the shorter.
_WIDE, _NARROW = (BF16, F16, F32), (BF16, F16)

#: Bits of an aligned number below its last place: one for rounding, one more that a shift by one place may bring up,
#: and one that says whether any lower bit is set.
_GUARD = 3


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
    selected = {part: Signal(width, name=f"{name}_{part}") for part, width in widths.items()}
    m.d.comb += [signal.eq(Array(each[part] for each in parts)[index]) for part, signal in selected.items()]
    return SimpleNamespace(**selected)


def _parts(fmt, value, mantissa_bits):
    mantissa, exponent = value[: fmt.mantissa], value[fmt.mantissa : fmt.width - 1]
    hidden = exponent.any()
    significand = mantissa & hidden.replicate(fmt.mantissa) if fmt.flush else mantissa
    return {
        "sign": value[fmt.width - 1],
        "size": value[: fmt.width - 1],
        "exponent": Cat(exponent[0] | ~hidden, exponent[1:]),
        "significand": Cat(Const(0, mantissa_bits - fmt.mantissa), significand, hidden),
        "nan": exponent.all() & mantissa.any(),
        "infinite": exponent.all() & ~mantissa.any(),
    }


class FloatAdder(wiring.Component):
    """Adds two numbers and rounds to nearest even. NaN is a zero and ones, and ``x + (-x)`` is +0.

    All formats share one data path. Significands have their leading bit in one place, and those of a shorter format
    have zeros below. Exponents need no common bias, because a sum has the bias of its operands. Only the place of
    rounding and the largest exponent depend on the format.

    Latency: ``LATENCY`` cycles with ``enable``. Throughput: one sum a cycle with ``enable``.

    Specification: docs/tmau.md, "Stores and reductions".

    Parameters
    ----------
    formats : sequence of FloatFormat
        At least two.
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
                "a": In(width),  # operands and sum are in the low bits
                "b": In(width),
                "format": In(range(len(self._formats))),  # index of their format
                "enable": In(1),  # advances the pipeline
                "o": Out(width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        i = self._register(m, "compared", self._compare(m), format=self.format)
        # ``infinite`` and ``nan`` are decided by the first stage, and pass all others with the format.
        for stage, make in (
            ("aligned", self._align),
            ("added", self._add),
            ("counted", self._count),
            ("shifted", self._shift),
        ):
            i = self._register(m, stage, make(m, i), infinite=i.infinite, nan=i.nan, format=i.format)
        with m.If(self.enable):
            m.d.sync += self.o.eq(self._round(m, i))
        return m

    def _register(self, m, stage, results, **passed):
        """Registers between two stages, one for each value."""
        values = results | passed
        registers = {name: Signal.like(value, name=f"{stage}_{name}") for name, value in values.items()}
        with m.If(self.enable):
            m.d.sync += [registers[name].eq(value) for name, value in values.items()]
        return SimpleNamespace(**registers)

    def _compare(self, m):
        """Stage 1: unpacks the operands; finds the larger one, and the distance of their exponents."""
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
        }

    def _align(self, m, i):
        """Stage 2: shifts the smaller operand to the place of the larger one."""
        small = named(m, Cat(Const(0, _GUARD), Mux(i.larger_b, i.a, i.b)), "small")
        distance = named(m, Mux(i.larger_b, i.b_above, i.a_above), "distance")
        return {
            "large": Mux(i.larger_b, i.b, i.a),
            "small": shift_down(m, small, distance),
            "exponent": Mux(i.larger_b, i.b_exponent, i.a_exponent),
            "subtract": i.subtract,
            "negative": i.negative,
        }

    def _add(self, m, i):
        """Stage 3: the sum of the magnitudes, or their difference, which is not negative."""
        large, small = Cat(Const(0, _GUARD), i.large), i.small
        carry_in = i.subtract
        # One adder: the carry enters through an additional place below.
        total = (Cat(1, large, 0) + Cat(carry_in, small ^ carry_in.replicate(len(small)), carry_in))[1:]
        return {
            "total": total[: len(large) + 1],
            "exponent": i.exponent,
            "subtract": i.subtract,
            "negative": i.negative,
        }

    def _count(self, m, i):
        """Stage 4: leading zeros of the sum; fewer if its exponent cannot decrease by so many."""
        # A one where the exponent would be zero ends the count.
        top = len(i.total) - 1
        end = Cat(i.exponent == top - place for place in range(top))
        return {
            "total": i.total,
            "places": leading_zeros(m, i.total | end),
            "exponent": (i.exponent + 1)[: len(i.exponent)],
            "negative": i.negative & (~i.subtract | i.total.any()),
        }

    def _shift(self, m, i):
        """Stage 5: shifts the leading one to its place, and decides whether to round up."""
        width = len(i.total)
        total = named(m, (i.total << i.places)[:width], "moved")
        normal = total[-1]
        ups = []
        for fmt in self._formats:
            last = width - 1 - fmt.mantissa
            ups.append(total[last - 1] & (total[last] | total[: last - 1].any()))
        return {
            "mantissa": total[width - 1 - self._mantissa : -1],
            "exponent": Mux(normal, (i.exponent - i.places)[: len(i.exponent)], 0),
            "up": Array(ups)[i.format],
            "negative": i.negative,
            "flushed": Array(fmt.flush for fmt in self._formats)[i.format] & ~normal,
        }

    def _round(self, m, i):
        """Stage 6: rounds, and packs. A carry out of the mantissa increments the exponent."""
        number = Cat(i.mantissa, i.exponent)
        last = Array(1 << self._mantissa - fmt.mantissa for fmt in self._formats)[i.format]
        rounded = named(m, (number + Mux(i.up, last, 0))[: len(number)], "rounded")
        packed = []
        for fmt in self._formats:
            low, high = self._mantissa - fmt.mantissa, self._mantissa + fmt.exponent
            infinity = (1 << fmt.exponent) - 1 << fmt.mantissa
            # Overflow is found before the addition, so that nothing waits for its carry.
            overflow = i.exponent[: fmt.exponent].all() | ((number[low:high] == infinity - 1) & i.up)
            size = Mux(i.infinite | overflow, infinity, Mux(i.flushed, 0, rounded[low:high]))
            packed.append(Mux(i.nan, (1 << fmt.width - 1) - 1, Cat(size, i.negative)))
        return Array(packed)[i.format]


def is_summed(element):
    """Whether an element, as ``spec.Element``, is a float."""
    return Cat(element == kind for kind in FLOAT_SUMS).any()


def delayed(m, value, cycles, enable):
    """``value`` after ``cycles`` cycles with ``enable``."""
    for _ in range(cycles):
        register = Signal(len(value))
        with m.If(enable):
            m.d.sync += register.eq(value)
        value = register
    return value


class FloatSums(wiring.Component):
    """Adds the floats of sixteen bytes: F16, BF16 or F32, as ``element`` says; undefined for other types.

    Each of the four words of 32 bits has two adders: a wide one for an F32 or the 16-bit float in the low half, and a
    narrow one for the high half.

    Latency: ``LATENCY`` cycles with ``enable``. Throughput: sixteen bytes a cycle with ``enable``.
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
        was_f32 = delayed(m, is_f32, self.LATENCY, self.enable)
        for number in range(4):
            old, source = self.old.word_select(number, 32), self.source.word_select(number, 32)
            wide, narrow = FloatAdder(_WIDE), FloatAdder(_NARROW)
            m.submodules[f"wide{number}"] = shared_module(platform, wide, _WIDE)
            m.submodules[f"narrow{number}"] = shared_module(platform, narrow, _NARROW)
            for adder, low in ((wide, 0), (narrow, 16)):
                m.d.comb += [
                    adder.a.eq(old[low:]),
                    adder.b.eq(source[low:]),
                    adder.format.eq(Cat(self.element == Element.F16, is_f32)),  # F32 is undefined in the narrow one
                    adder.enable.eq(self.enable),
                ]
            m.d.comb += self.o.word_select(number, 32).eq(Cat(wide.o[:16], Mux(was_f32, wide.o[16:], narrow.o)))
        return m
