"""Dot-product units in a row, neighbours of which may work as one."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..lib.delay import delay
from .align import Aligner
from .groups import Groups, add, either, larger
from .normalize import Normalizer
from .products import AccumulatorTerm, LaneProduct
from .terms import ACCUMULATOR_PLACES, PRODUCT_PLACES, SpecialLayout, is_integer

__all__ = ["DotRow", "check_units"]

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
