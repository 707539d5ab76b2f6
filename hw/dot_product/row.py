"""Sums, rounded once to fp32."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..lib.logic import delay
from .groups import Groups, add, either, larger
from .terms import (
    ACCUMULATOR_PLACES,
    PRODUCT_PLACES,
    TOP,
    AccumulatorTerm,
    Aligner,
    LaneProduct,
    SpecialLayout,
    is_integer,
)

__all__ = ["DotRow", "Normalizer", "check_units"]

#: Zeros above a sum. It is shifted left only: by this many places and more if its exponent is large enough, by less
#: if the result is subnormal. 25 would do; 32 make the sum with the number of leading zeros free.
_ABOVE = 32

#: Log2 of the step of the first shifter.
_COARSE = 4

_NAN = 0x7FC00000
_INFINITY = 0xFF << 23


class Normalizer(wiring.Component):
    """The sum of aligned terms as an fp32 number, rounded to nearest even, or its low 32 bits (docs/pe.md, "Numbers").

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.

    Parameters
    ----------
    width : int
        Bits of the sum with its sign, 50 to 64.

    Members
    -------
    total : In(signed(width))
        Its bit 48 has the weight of ``top``.
    top : In(TOP)
    integer : In(1)
        Give the low 32 bits of ``total``.
    special : In(SpecialLayout)
    o : Out(32)
    """

    LATENCY = 5

    def __init__(self, width):
        if not 50 <= width <= 64:
            raise ValueError(f"the width of a sum must be 50 to 64, not {width!r}")
        #: Bits of the magnitude.
        self._bits = width - 1
        super().__init__(
            {
                "total": In(signed(width)),
                "top": In(TOP),
                "integer": In(1),
                "special": In(SpecialLayout()),
                "o": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        sized = self._register(m, "sized", **self._size(m))
        counted = self._register(m, "counted", **self._count(m, sized))
        moved = self._register(m, "moved", **self._move(m, counted))
        normal = self._register(m, "normal", **self._finish(m, moved))
        m.d.comb += self.o.eq(delay(m, self._pack(normal), 1, name="packed"))
        return m

    @staticmethod
    def _register(m, stage, **values):
        """Registers between two stages, one for each value."""
        return SimpleNamespace(**{name: delay(m, value, 1, name=f"{stage}_{name}") for name, value in values.items()})

    def _size(self, m):
        """Stage 1: the magnitude; the exponent that a leading one on top would have; how far left it may go."""
        negative = Signal()
        m.d.comb += negative.eq(self.total[-1] & ~self.integer)
        exponent = Signal(signed(11))
        m.d.comb += exponent.eq(self.top + (self._bits - 49 - 128))
        # Down to exponent 1. Nothing is left of a sum that would have to go right.
        limit = Signal(signed(12))
        m.d.comb += limit.eq(exponent + (_ABOVE - 1))
        places = Mux(limit < 0, 0, Mux(limit > 127, 127, limit[:7]))
        return {
            "size": ((self.total ^ negative.replicate(self._bits)) + negative)[: self._bits],
            "exponent": exponent,
            "limit": Mux(self.integer, self._bits, places),
            "negative": self.special.negative | (negative & ~self.special.infinite),
            "infinite": self.special.infinite,
            "nan": self.special.nan,
            "integer": self.integer,
        }

    def _count(self, m, i):
        """Stage 2: how far left the leading one has to go. An integer's low 32 bits go to the top."""
        zeros = _leading_zeros(m, i.size)
        return {
            "size": i.size,
            "places": Mux(i.integer, self._bits, Cat(zeros[:5], ~zeros[5], zeros[5])),
            "limit": i.limit,
            "exponent": i.exponent - zeros,
            "negative": i.negative,
            "infinite": i.infinite,
            "nan": i.nan,
            "integer": i.integer,
        }

    def _move(self, m, i):
        """Stage 3: the first shift. Below what the second one can bring up only matters whether anything is there."""
        places = Signal(7)
        m.d.comb += places.eq(Mux(i.limit < i.places, i.limit, i.places))
        moved = Signal(self._bits + _ABOVE)
        m.d.comb += moved.eq(i.size << Cat(Const(0, _COARSE), places[_COARSE:]))
        kept = 32 + (1 << _COARSE) - 1
        return {
            "number": moved[-kept:],
            "rest": moved[:-kept].any(),
            "places": places[:_COARSE],
            "exponent": i.exponent,
            "negative": i.negative,
            "infinite": i.infinite,
            "nan": i.nan,
            "integer": i.integer,
        }

    @staticmethod
    def _finish(m, i):
        """Stage 4: the second shift; whether to round up."""
        moved = Signal(len(i.number))
        m.d.comb += moved.eq(i.number << i.places)
        number = moved[-32:]
        below = moved[:-32].any() | i.rest | number[:7].any()
        leading = number[-1]
        return {
            "number": number,
            "up": number[7] & (number[8] | below),
            "exponent": Mux(leading, i.exponent[:8], 0),
            # A leading one is never shifted beyond exponent 1.
            "infinite": i.infinite | (leading & (i.exponent >= 255)),
            "negative": i.negative,
            "nan": i.nan,
            "integer": i.integer,
        }

    @staticmethod
    def _pack(i):
        """Stage 5: rounds. A carry out of the mantissa counts the exponent up, to infinity if need be."""
        rounded = (Cat(i.number[8:31], i.exponent) + i.up)[:31]
        size = Mux(i.infinite, _INFINITY, rounded)
        return Mux(i.integer, i.number, Mux(i.nan, _NAN, Cat(size[:31], i.negative)))


def _leading_zeros(m, value):
    """Zeros above the highest one of ``value``, 6 bits; all ones if there is none."""
    bits = Cat(Const(0, 64 - len(value)), value)
    #: From the lowest place up: whether a part has a one, and the zeros above it.
    parts = [(bit, Const(0, 0)) for bit in bits]
    while len(parts) > 1:
        joined = []
        for number, ((low, low_count), (high, high_count)) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
            name = f"{len(parts) // 2}_{number}"
            some, count = Signal(name=f"some_{name}"), Signal(len(high_count) + 1, name=f"zeros_{name}")
            m.d.comb += [some.eq(low | high), count.eq(Cat(Mux(high, high_count, low_count), ~high))]
            joined.append((some, count))
        parts = joined
    return parts[0][1]


_MAXIMUM_CYCLES = 2
_SUM_CYCLES = 3


def check_units(unit_bytes, sizes):
    """ValueError if units of so many bytes cannot make groups of these sizes."""
    if unit_bytes % 2 or unit_bytes < 2:
        raise ValueError(f"unit_bytes must be even and 2 or more, not {unit_bytes!r}")
    if max(sizes) * unit_bytes > 64:
        raise ValueError(f"a group must have at most 64 bytes, not {max(sizes) * unit_bytes!r}")


class DotRow(wiring.Component):
    """``count`` units, of which ``sizes[select]`` neighbours make one sum, rounded once (docs/pe.md, "Numbers").

    One data path serves all types: integers are terms that are not aligned and not rounded. Terms are in two's
    complement behind the multiplier. The path is

    ====== =======================================================
    cycles
    ====== =======================================================
    1–3    products; meanwhile the largest top of each group
    4–5    alignment
    6–8    sums, within the units and over each group
    9–13   magnitude, leading zeros, two shifts, rounding
    ====== =======================================================

    A unit of n bytes has n multipliers: n/2 of 17 bits and n/2 of 9 bits, signed.

    Latency: ``LATENCY`` cycles, for all types. Throughput: one row a cycle; nothing stalls it.

    Parameters
    ----------
    count : int
        Units.
    unit_bytes : int
        Bytes of each factor that a unit takes in a cycle, even.
    sizes : sequence of int
        Numbers of units that make a group. ``max(sizes)`` · ``unit_bytes`` is at most 64.

    Members
    -------
    type : In(4)
        ``MmType``.
    select : In(range(len(sizes)))
    a, b : In(data.ArrayLayout(8 * unit_bytes, count))
        Elements, the first in the low bits.
    accumulators : In(array of count 32)
        Those of units that do not begin a group are not looked at.
    o : Out(array of count 32)
        Valid for the first unit of each group that is complete.
    """

    LATENCY = 13
    ACCUMULATORS_AFTER = 0

    def __init__(self, *, count, unit_bytes, sizes):
        check_units(unit_bytes, sizes)
        self._unit_bytes = unit_bytes
        self._groups = Groups(count, sizes)
        super().__init__(
            {
                "type": In(4),
                "select": In(range(len(sizes))),
                "a": In(data.ArrayLayout(8 * unit_bytes, count)),
                "b": In(data.ArrayLayout(8 * unit_bytes, count)),
                "accumulators": In(data.ArrayLayout(32, count)),
                "o": Out(data.ArrayLayout(32, count)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        sums_at = LaneProduct.LATENCY + Aligner.LATENCY
        normalized_at = sums_at + _SUM_CYCLES
        selects, integers = [self.select], [is_integer(self.type)]
        for cycle in range(normalized_at):
            selects.append(delay(m, selects[-1], 1, name=f"select_{cycle}"))
            integers.append(delay(m, integers[-1], 1, name=f"integer_{cycle}"))

        terms = [self._terms(m, unit) for unit in range(self._groups.count)]
        maximum_selects = selects[1 : 1 + _MAXIMUM_CYCLES]
        highest = self._highest(m, terms, maximum_selects, selects[LaneProduct.LATENCY])
        flags = self._groups.reduce(
            m, [[term.flags.as_value() for term in row] for row in terms], maximum_selects, either, name="flags"
        )
        integer = integers[LaneProduct.LATENCY]
        aligned = [self._aligned(m, row, integer, highest[unit], unit) for unit, row in enumerate(terms)]
        totals = self._groups.reduce(m, aligned, selects[sums_at:normalized_at], add, name="total")
        for unit, total in enumerate(totals):
            m.submodules[f"normalizer_{unit}"] = normalizer = Normalizer(len(total))
            cycles = normalized_at - LaneProduct.LATENCY
            special = _special(m, flags[unit], unit)
            m.d.comb += [
                normalizer.total.eq(total),
                normalizer.top.eq(delay(m, highest[unit], cycles, name=f"top_{unit}")),
                normalizer.integer.eq(integers[normalized_at]),
                normalizer.special.eq(delay(m, special, cycles, name=f"special_{unit}")),
                self.o[unit].eq(normalizer.o),
            ]
        return m

    def _terms(self, m, unit):
        """What makes the terms of a unit: its lanes of 16 bits, and its accumulator."""
        terms = []
        for lane in range(self._unit_bytes // 2):
            m.submodules[f"product_{unit}_{lane}"] = product = LaneProduct()
            m.d.comb += [
                product.type.eq(self.type),
                product.a.eq(self.a[unit].word_select(lane, 16)),
                product.b.eq(self.b[unit].word_select(lane, 16)),
            ]
            terms.append(product)
        m.submodules[f"accumulator_{unit}"] = accumulator = AccumulatorTerm()
        m.d.comb += [
            accumulator.integer.eq(is_integer(self.type)),
            accumulator.enable.eq(self._groups.leads(self.select, unit)),
            accumulator.i.eq(self.accumulators[unit]),
        ]
        return [*terms, accumulator]

    def _highest(self, m, terms, selects, select):
        """The largest top of each unit's group."""
        tops = self._groups.reduce(m, [[term.top for term in row] for row in terms], selects, larger, name="highest")
        return self._groups.spread(m, tops, select, name="spread")

    @staticmethod
    def _aligned(m, terms, integer, highest, unit):
        aligned = []
        for number, term in enumerate(terms):
            places = PRODUCT_PLACES if isinstance(term, LaneProduct) else ACCUMULATOR_PLACES
            m.submodules[f"aligner_{unit}_{number}"] = aligner = Aligner(places)
            m.d.comb += [
                aligner.term.eq(term.term),
                aligner.integer.eq(integer),
                aligner.top.eq(delay(m, term.top, LaneProduct.LATENCY - 1, name=f"top_{unit}_{number}")),
                aligner.highest.eq(highest),
            ]
            aligned.append(aligner.o)
        return aligned


def _special(m, flags, unit):
    """``SpecialLayout`` from the flags of all terms of a sum."""
    special = Signal(SpecialLayout(), name=f"special_{unit}")
    nan, plus, minus, positive = flags
    m.d.comb += [
        special.nan.eq(nan | (plus & minus)),
        special.infinite.eq(plus | minus),
        special.negative.eq(Mux(plus | minus, minus, ~positive)),
    ]
    return special.as_value()
