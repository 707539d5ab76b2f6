"""Rows of dot-product units with one rounding of each sum to fp32."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..lib.component import shared_module
from ..lib.logic import delay, leading_zeros
from .groups import Groups, add, check_units, either, larger
from .terms import ACCUMULATOR_PLACES, PRODUCT_PLACES, TOP, AccumulatorTerm, Aligner, LaneProduct, Special, is_integer

__all__ = ["DotRow", "Normalizer"]

#: Zeros above a sum, which is only shifted left: by at least this number of places, or fewer if the result is
#: subnormal. 25 would suffice; with 32 the addition of the number of leading zeros costs nothing.
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
    """

    LATENCY = 5

    def __init__(self, width):
        if not 50 <= width <= 64:
            raise ValueError(f"the width of a sum must be 50 to 64, not {width!r}")
        self._bits = width - 1  # of the magnitude
        super().__init__(
            {
                "total": In(signed(width)),  # bit 48 has the weight of ``top``
                "top": In(TOP),
                "integer": In(1),  # the result is the low 32 bits of ``total``
                "special": In(Special),
                "o": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        i = self._register(
            m, "sized", self._size(m), infinite=self.special.infinite, nan=self.special.nan, integer=self.integer
        )
        for stage, make in (("counted", self._count), ("moved", self._shift), ("normal", self._finish)):
            passed = {name: getattr(i, name) for name in ("negative", "infinite", "nan", "integer")}
            i = self._register(m, stage, make(m, i), **passed)
        m.d.comb += self.o.eq(delay(m, self._pack(i), 1, name="packed"))
        return m

    @staticmethod
    def _register(m, stage, results, **passed):
        """Registers between two stages: new values, and those that the stage does not change."""
        values = passed | results
        return SimpleNamespace(**{name: delay(m, value, 1, name=f"{stage}_{name}") for name, value in values.items()})

    def _size(self, m):
        """Stage 1: the magnitude, the exponent of a leading one in the top bit, and the limit of the shift."""
        negative = Signal()
        m.d.comb += negative.eq(self.total[-1] & ~self.integer)
        exponent = Signal(signed(11))
        m.d.comb += exponent.eq(self.top + (self._bits - 49 - 128))
        # Down to exponent 1. A sum that would have to be shifted right vanishes.
        limit = Signal(signed(12))
        m.d.comb += limit.eq(exponent + (_ABOVE - 1))
        places = Mux(limit < 0, 0, Mux(limit > 127, 127, limit[:7]))
        return {
            "size": ((self.total ^ negative.replicate(self._bits)) + negative)[: self._bits],
            "exponent": exponent,
            "limit": Mux(self.integer, self._bits, places),
            "negative": self.special.negative | (negative & ~self.special.infinite),
        }

    def _count(self, m, i):
        """Stage 2: the distance of the leading one from the top; of an integer, of its low 32 bits."""
        zeros = leading_zeros(m, i.size)
        return {
            "size": i.size,
            "places": Mux(i.integer, self._bits, Cat(zeros[:5], ~zeros[5], zeros[5])),
            "limit": i.limit,
            "exponent": i.exponent - zeros,
        }

    def _shift(self, m, i):
        """Stage 3: the first shift. Of the places below the reach of the second one only their OR remains."""
        places = Signal(7)
        m.d.comb += places.eq(Mux(i.limit < i.places, i.limit, i.places))
        moved = Signal(self._bits + _ABOVE)
        m.d.comb += moved.eq(i.size << Cat(Const(0, _COARSE), places[_COARSE:]))
        reach = 32 + (1 << _COARSE) - 1
        return {
            "number": moved[-reach:],
            "rest": moved[:-reach].any(),
            "places": places[:_COARSE],
            "exponent": i.exponent,
        }

    @staticmethod
    def _finish(m, i):
        """Stage 4: the second shift, and whether to round up."""
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
        }

    @staticmethod
    def _pack(i):
        """Stage 5: rounds. A carry out of the mantissa increments the exponent, perhaps to infinity."""
        rounded = (Cat(i.number[8:31], i.exponent) + i.up)[:31]
        size = Mux(i.infinite, _INFINITY, rounded)
        return Mux(i.integer, i.number, Mux(i.nan, _NAN, Cat(size[:31], i.negative)))


_MAXIMUM_CYCLES = 2
_SUM_CYCLES = 3


class DotRow(wiring.Component):
    """``count`` units; each ``sizes[select]`` neighbours make one sum, rounded once (docs/pe.md, "Numbers").

    One data path serves all types: integers are terms that are neither aligned nor rounded. Terms are in two's
    complement after the multipliers. The path is

    ====== =======================================================
    cycles
    ====== =======================================================
    1–3    products; at the same time the largest top of each group
    4–5    alignment
    6–8    sums, within the units and over each group
    9–13   magnitude, leading zeros, two shifts, rounding
    ====== =======================================================

    A unit of n bytes has n multipliers: n/2 of 17 bits and n/2 of 9 bits, signed.

    Latency: ``LATENCY`` cycles for all types. Throughput: one row a cycle; nothing stalls it.

    Parameters
    ----------
    count : int
        Number of units.
    unit_bytes : int
        Bytes of each factor of a unit, even.
    sizes : sequence of int
        Units in a group. ``max(sizes)`` · ``unit_bytes`` is at most 64.
    """

    LATENCY = 13
    ACCUMULATORS_AFTER = 0

    def __init__(self, *, count, unit_bytes, sizes):
        check_units(unit_bytes, sizes)
        self._unit_bytes = unit_bytes
        self._groups = Groups(count, sizes)
        super().__init__(
            {
                "type": In(4),  # MmType
                "select": In(range(len(sizes))),
                "a": In(data.ArrayLayout(8 * unit_bytes, count)),  # elements, the first in the low bits
                "b": In(data.ArrayLayout(8 * unit_bytes, count)),
                "accumulators": In(data.ArrayLayout(32, count)),  # used in the first unit of each group
                "o": Out(data.ArrayLayout(32, count)),  # valid in the first unit of each complete group
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

        terms = [self._terms(m, platform, unit) for unit in range(self._groups.count)]
        maximum_selects = selects[1 : 1 + _MAXIMUM_CYCLES]
        highest = self._highest(m, terms, maximum_selects, selects[LaneProduct.LATENCY])
        flags = self._groups.reduce(
            m, [[term.flags.as_value() for term in row] for row in terms], maximum_selects, either, name="flags"
        )
        integer = integers[LaneProduct.LATENCY]
        aligned = [self._aligned(m, platform, row, integer, highest[unit], unit) for unit, row in enumerate(terms)]
        totals = self._groups.reduce(m, aligned, selects[sums_at:normalized_at], add, name="total")
        for unit, total in enumerate(totals):
            normalizer = Normalizer(len(total))
            m.submodules[f"normalizer_{unit}"] = shared_module(platform, normalizer, len(total))
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

    def _terms(self, m, platform, unit):
        """The sources of the terms of a unit: its lanes of 16 bits, and its accumulator."""
        terms = []
        for lane in range(self._unit_bytes // 2):
            product = LaneProduct()
            m.submodules[f"product_{unit}_{lane}"] = shared_module(platform, product)
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
    def _aligned(m, platform, terms, integer, highest, unit):
        aligned = []
        for number, term in enumerate(terms):
            places = PRODUCT_PLACES if isinstance(term, LaneProduct) else ACCUMULATOR_PLACES
            aligner = Aligner(places)
            m.submodules[f"aligner_{unit}_{number}"] = shared_module(platform, aligner, places)
            m.d.comb += [
                aligner.term.eq(term.term),
                aligner.integer.eq(integer),
                aligner.top.eq(delay(m, term.top, LaneProduct.LATENCY - 1, name=f"top_{unit}_{number}")),
                aligner.highest.eq(highest),
            ]
            aligned.append(aligner.o)
        return aligned


def _special(m, flags, unit):
    """``Special`` from the flags of all terms of a sum."""
    special = Signal(Special, name=f"special_{unit}")
    nan, plus, minus, positive = flags
    m.d.comb += [
        special.nan.eq(nan | (plus & minus)),
        special.infinite.eq(plus | minus),
        special.negative.eq(Mux(plus | minus, minus, ~positive)),
    ]
    return special.as_value()
