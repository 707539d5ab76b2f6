"""Dot-product units in a row that multiply integers only."""

from functools import partial, reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..lib.logic import delay
from .groups import Groups, add_wrapping
from .row import check_units

__all__ = ["IntegerProduct", "IntegerRow", "ShiftedProduct"]

#: Products of a unit that are added up one after the other, each by the adder that a multiplier has behind it.
_LINKS = 4
_PRODUCT_CYCLES = 2
_BITS = 32
#: How far to the left a ``ShiftedProduct`` has that of the upper pair.
_SHIFT = 16


class IntegerProduct(wiring.Component):
    """The product of two integers of 16 bits, or the products of two pairs of 8 bits.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.

    Parameters
    ----------
    wide : bool
        There are integers of 16 bits. Without them both multipliers have 9 bits, with them one has 17.
    waits : int
        So many cycles factors wait in front of the multiplier, extended: in registers that multipliers have.

    Members
    -------
    type : In(4)
        ``MmType``.
    a, b : In(16)
        One element of 16 bits or two of 8 bits, each.
    lower : Out(signed(32))
        Modulo 2^32: the product, or that of the lower pair.
    upper : Out(signed(18))
        That of the upper pair; 0 if there is none.
    """

    def __init__(self, *, wide=True, waits=0):
        self._wide, self._waits = wide, waits
        self.LATENCY = _PRODUCT_CYCLES + waits
        super().__init__(
            {"type": In(4), "a": In(16), "b": In(16), "lower": Out(signed(_BITS)), "upper": Out(signed(18))}
        )

    def elaborate(self, platform):
        m = Module()
        wide = self.type[2] if self._wide else Const(0)
        lowers, uppers = [], []
        for name, bits, is_signed in (("a", self.a, ~self.type[1]), ("b", self.b, ~self.type[0])):
            narrow = Cat(bits[:8], is_signed & bits[7])
            whole = Cat(bits, is_signed & bits[15])
            lower = Signal(signed(17 if self._wide else 9), name=f"lower_{name}", reset_less=True)
            upper = Signal(signed(9), name=f"upper_{name}", reset_less=True)
            m.d.sync += [lower.eq(Mux(wide, whole, narrow.as_signed())), upper.eq(whole[8:])]
            lowers.append(lower)
            uppers.append(upper)
        # One factor of the upper pair is zero, if there is no such pair.
        with m.If(wide):
            m.d.sync += uppers[0].eq(0)
        (lower_a, lower_b), (upper_a, upper_b) = (
            [delay(m, factor, self._waits, name=f"{factor.name}_waits") for factor in pair] for pair in (lowers, uppers)
        )
        m.d.comb += [
            self.lower.eq(delay(m, (lower_a * lower_b)[:_BITS].as_signed(), 1, name="lower")),
            self.upper.eq(delay(m, upper_a * upper_b, 1, name="upper")),
        ]
        return m


class ShiftedProduct(wiring.Component):
    """An ``IntegerProduct`` whose first multiplier has the upper pair where it lies in integers of 16 bits.

    So nothing is extended: what a factor has not is zero by the reset of its register, which is no table.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.

    Parameters
    ----------
    waits : int
        As of an ``IntegerProduct``.

    Members
    -------
    type : In(4)
        ``MmType``.
    a, b : In(16)
        One element of 16 bits or two of 8 bits, each.
    whole : Out(signed(34))
        The product, or that of the upper pair, times 2^16.
    lower : Out(signed(18))
        That of the lower pair; 0 if there is none.
    """

    def __init__(self, *, waits=0):
        self._waits = waits
        self.LATENCY = _PRODUCT_CYCLES + waits
        super().__init__({"type": In(4), "a": In(16), "b": In(16), "whole": Out(signed(34)), "lower": Out(signed(18))})

    def elaborate(self, platform):
        m = Module()
        wide = self.type[2]
        wholes, lowers = [], []
        for name, bits, is_signed in (("a", self.a, ~self.type[1]), ("b", self.b, ~self.type[0])):
            whole = Signal(signed(17), name=f"whole_{name}", reset_less=True)
            lower = Signal(signed(9), name=f"lower_{name}", reset_less=True)
            m.d.sync += [whole.eq(Cat(bits, bits[-1])), lower.eq(Cat(bits[:8], bits[7]))]
            with m.If(~is_signed):
                m.d.sync += [whole[-1].eq(0), lower[-1].eq(0)]
            with m.If(~wide):
                m.d.sync += whole[:8].eq(0)
            wholes.append(whole)
            lowers.append(lower)
        # One factor of the lower pair is zero, if there is no such pair.
        with m.If(wide):
            m.d.sync += lowers[0].eq(0)
        for factors, product, name in ((wholes, self.whole, "whole"), (lowers, self.lower, "lower")):
            a, b = (delay(m, factor, self._waits, name=f"{factor.name}_waits") for factor in factors)
            m.d.comb += product.eq(delay(m, a * b, 1, name=name))
        return m


class IntegerRow(wiring.Component):
    """A ``DotRow`` without floats: sums are made modulo 2^32, and there is nothing to align or to round.

    Where adders behind multipliers are free, products of a unit are added up in chains of ``_LINKS``: what each adds
    comes a cycle after what the one before it adds, so that its multiplier, its adder and the registers in between are
    one block of the device. Two cycles for products, one for each link, two for sums of chains, and over each group.
    Elsewhere nothing waits for a link: neighbours are added up, a cycle for each step, and then groups.

    Latency: ``LATENCY`` cycles, for all types; accumulators come ``ACCUMULATORS_AFTER`` cycles behind their products'
    factors, and wait so much less. Throughput: one row a cycle; nothing stalls it.

    Parameters
    ----------
    count, unit_bytes, sizes
        As of a ``DotRow``.
    wide : bool
        There are integers of 16 bits.
    others : bool
        There is a second word for each accumulator. One of both is zero: so where it comes from two sources, it needs
        no choice between them.
    free_adders : bool
        Adders behind multipliers cost nothing, and have 48 bits: with ``wide`` each lane is a ``ShiftedProduct`` then,
        whose chain has its sums 16 bits to the left.

    Members
    -------
    type : In(4)
        ``MmType``, of integers.
    select : In(range(len(sizes)))
    a, b : In(data.ArrayLayout(8 * unit_bytes, count))
    accumulators : In(array of count 32)
    o : Out(array of count 32)
        All as of a ``DotRow``, but for when accumulators come.
    others : In(array of count 32) if others
        The second words, with the accumulators; where one is not zero, the other is.
    """

    ACCUMULATORS_AFTER = 1

    def __init__(self, *, count, unit_bytes, sizes, wide=True, others=False, free_adders=True):
        check_units(unit_bytes, sizes)
        self._lanes, self._wide, self._free_adders = unit_bytes // 2, wide, free_adders
        self._links = min(_LINKS, self._lanes) if free_adders else 0
        self._groups = Groups(count, sizes)
        self._sums_after = _PRODUCT_CYCLES + self._links
        # Of every unit: two chains for each of so many links, or both products of each lane and an accumulator.
        halvings = ceil_log2(2 * -(-self._lanes // self._links) if free_adders else 2 * self._lanes + 1)
        # Adders of three terms take more tables than those of two.
        self._steps = (*((halvings,) if free_adders else (1,) * halvings), self._groups.depth)
        self.LATENCY = self._sums_after + len(self._steps)
        super().__init__(
            {
                "type": In(4),
                "select": In(range(len(sizes))),
                "a": In(data.ArrayLayout(8 * unit_bytes, count)),
                "b": In(data.ArrayLayout(8 * unit_bytes, count)),
                "accumulators": In(data.ArrayLayout(32, count)),
                **({"others": In(data.ArrayLayout(32, count))} if others else {}),
                "o": Out(data.ArrayLayout(32, count)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        make = self._plain_chains if self._free_adders else self._terms
        if self._wide and self._free_adders:
            was_wide = delay(m, self.type[2], self._sums_after, name="wide")
            make = partial(self._shifted_chains, was_wide=was_wide)
        words_select = delay(m, self.select, self.ACCUMULATORS_AFTER, name="words_select")
        rows = [make(m, unit, self._groups.leads(words_select, unit)) for unit in range(self._groups.count)]
        selects = [delay(m, self.select, self._sums_after, name="select")]
        for cycle in range(1, len(self._steps)):
            selects.append(delay(m, selects[-1], 1, name=f"select_{cycle}"))
        sums = self._groups.reduce(m, rows, selects, add_wrapping, name="sum", steps=self._steps)
        m.d.comb += [o.eq(total) for o, total in zip(self.o, sums, strict=True)]
        return m

    def _plain_chains(self, m, unit, leads):
        """Chains of a unit, of lower and of upper products: they begin with the words of a unit that leads a group."""
        lowers, uppers = self._plain_products(m, unit)
        start, other = (*self._starts(m, unit, leads), None)[:2]
        return self._add_up(m, lowers, start, f"lower_{unit}") + self._add_up(m, uppers, other, f"upper_{unit}")

    def _terms(self, m, unit, leads):
        """All that is added up of a unit: the upper products, which are narrow, by themselves first."""
        lowers, uppers = self._plain_products(m, unit)
        # In front of an adder this takes no table of its own.
        return [*uppers, reduce(or_, self._starts(m, unit, leads)).as_signed(), *lowers]

    def _starts(self, m, unit, leads):
        """The words of a unit, if it leads a group, when its products are there."""
        # Gates in front of a register are its reset.
        return [
            delay(m, Mux(leads, word[unit], 0), _PRODUCT_CYCLES - self.ACCUMULATORS_AFTER, name=f"start{n}_{unit}")
            for n, word in enumerate(self._words)
        ]

    def _plain_products(self, m, unit):
        products = self._products(m, unit, partial(IntegerProduct, wide=self._wide))
        return zip(*((product.lower, product.upper) for product in products), strict=True)

    def _shifted_chains(self, m, unit, leads, *, was_wide):
        """Chains of a unit, of lower products and of whole ones; sums of the latter come back to their place.

        The lower ones begin with the accumulator of a unit that leads a group, the whole ones with its second word.
        """
        after, (accumulator, *others) = self.ACCUMULATORS_AFTER, (word[unit] for word in self._words)
        wide = delay(m, self.type[2], after, name=f"words_wide_{unit}")
        start = delay(m, Mux(leads, accumulator, 0), _PRODUCT_CYCLES - after, name=f"start_{unit}")
        moved = None
        for other in others:
            moved = Signal(_BITS + _SHIFT, name=f"moved_{unit}", reset_less=True)
            m.d.sync += moved.eq(Cat(other[:_SHIFT], Mux(wide, other[_SHIFT:], other[:_SHIFT]), other[_SHIFT:]))
            with m.If(~wide):
                m.d.sync += moved[:_SHIFT].eq(0)
            with m.If(~leads):
                m.d.sync += moved.eq(0)
            moved = delay(m, moved, _PRODUCT_CYCLES - after - 1, name=f"other_{unit}")
        products = self._products(m, unit, ShiftedProduct)
        lowers, wholes = zip(*((product.lower, product.whole) for product in products), strict=True)
        sums = []
        for lower, whole in zip(
            self._add_up(m, lowers, start, f"lower_{unit}"),
            self._add_up(m, wholes, moved, f"whole_{unit}", _BITS + _SHIFT),
            strict=True,
        ):
            total, here = (Signal(signed(_BITS), name=f"{name}_{unit}_{len(sums)}") for name in ("total", "here"))
            m.d.comb += [total.eq(lower), here.eq(Mux(was_wide, whole, whole >> _SHIFT))]
            # A difference, for Yosys may swap what it adds. The first operand of an adder enters the multiplexers of a
            # carry chain too, where a choice would be another table for each bit.
            sums.append((Cat(Const(0, 1), total) - Cat(Const(1, 1), ~here))[1 : _BITS + 1].as_signed())
        return sums

    @property
    def _words(self):
        """What is added to the products of each unit that leads a group."""
        return [getattr(self, name) for name in ("accumulators", "others") if name in self.signature.members]

    def _products(self, m, unit, make):
        """Those of a unit; each waits for the one before it in its chain."""
        products = []
        for lane in range(self._lanes):
            waits = lane % self._links if self._links else 0
            m.submodules[f"product_{unit}_{lane}"] = product = make(waits=waits)
            m.d.comb += [
                product.type.eq(self.type),
                product.a.eq(self.a[unit].word_select(lane, 16)),
                product.b.eq(self.b[unit].word_select(lane, 16)),
            ]
            products.append(product)
        return products

    def _add_up(self, m, terms, start, name, bits=_BITS):
        """Sums of chains, modulo 2^bits; the first one begins with ``start``, if that is not None."""
        sums = []
        for lane, term in enumerate(terms):
            link = lane % self._links
            total = term if start is None else start.as_signed() + term
            total = total[:bits].as_signed() if len(total) > bits else total
            start = delay(m, total, 1, name=f"{name}_{lane}")
            if link == self._links - 1 or lane == self._lanes - 1:
                # A last chain with fewer links waits for the others.
                sums.append(delay(m, start, self._links - 1 - link, name=f"{name}_whole"))
                start = None
        return sums
