"""Rows of dot-product units for integers only."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..lib.component import shared_module
from ..lib.logic import delay
from .groups import Groups, add_wrapping, check_units

__all__ = ["IntegerProduct", "IntegerRow"]

#: Products of a unit that are added in a chain, each by the adder after its multiplier.
_LINKS = 4
_PRODUCT_CYCLES = 2
_BITS = 32


class IntegerProduct(wiring.Component):
    """The product of two integers of 16 bits, or the products of two pairs of 8 bits.

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.

    Parameters
    ----------
    wide : bool
        There are integers of 16 bits. With them one multiplier has 17 bits and one 9, without them both have 9.
    waits : int
        Cycles that the factors wait, extended, in the input registers of the multipliers.
    """

    def __init__(self, *, wide=True, waits=0):
        self._wide, self._waits = wide, waits
        self.LATENCY = _PRODUCT_CYCLES + waits
        super().__init__(
            {
                "type": In(4),  # MmType
                "a": In(16),  # one element of 16 bits or two of 8 bits, each
                "b": In(16),
                "lower": Out(signed(_BITS)),  # modulo 2^32: the product, or the product of the lower pair
                "upper": Out(signed(18)),  # of the upper pair; 0 without one
            }
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
        # Without an upper pair one of its factors is zero.
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


class IntegerRow(wiring.Component):
    """A ``DotRow`` without floats: sums are modulo 2^32, and nothing is aligned or rounded.

    Each group has two words that are added to its products; one of both is zero, so that two sources need no
    multiplexer.

    With ``free_adders``, products of a unit are added in chains of ``_LINKS``: each product is added one cycle after
    the previous one, so that a multiplier, its adder and their registers are one block of the device. Products take two
    cycles, each link one, and sums of chains and over groups two. Otherwise neighbours are added in a tree, a cycle for
    each step, and then groups.

    Latency: ``LATENCY`` cycles for all types; accumulators arrive ``ACCUMULATORS_AFTER`` cycles after the factors.
    Throughput: one row a cycle; nothing stalls it.

    Parameters
    ----------
    count, unit_bytes, sizes
        See ``DotRow``.
    wide : bool
        There are integers of 16 bits.
    free_adders : bool
        Adders after multipliers cost nothing.
    """

    ACCUMULATORS_AFTER = 1

    def __init__(self, *, count, unit_bytes, sizes, wide=True, free_adders=True):
        check_units(unit_bytes, sizes)
        self._lanes, self._wide, self._free_adders = unit_bytes // 2, wide, free_adders
        self._links = min(_LINKS, self._lanes) if free_adders else 0
        self._groups = Groups(count, sizes)
        self._sums_after = _PRODUCT_CYCLES + self._links
        # Values of a unit: the sums of its chains, or both products of each lane and an accumulator.
        halvings = ceil_log2(2 * -(-self._lanes // self._links) if free_adders else 2 * self._lanes + 1)
        # Adders of three terms take more LUTs than adders of two.
        self._steps = (*((halvings,) if free_adders else (1,) * halvings), self._groups.depth)
        self.LATENCY = self._sums_after + len(self._steps)
        super().__init__(
            {
                "type": In(4),  # MmType, of integers
                "select": In(range(len(sizes))),
                "a": In(data.ArrayLayout(8 * unit_bytes, count)),
                "b": In(data.ArrayLayout(8 * unit_bytes, count)),
                "accumulators": In(data.ArrayLayout(32, count)),
                "others": In(data.ArrayLayout(32, count)),  # second words, zero where the accumulator is not
                "o": Out(data.ArrayLayout(32, count)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        make = self._chains if self._free_adders else self._terms
        words_select = delay(m, self.select, self.ACCUMULATORS_AFTER, name="words_select")
        rows = [make(m, platform, unit, self._groups.leads(words_select, unit)) for unit in range(self._groups.count)]
        selects = [delay(m, self.select, self._sums_after, name="select")]
        for cycle in range(1, len(self._steps)):
            selects.append(delay(m, selects[-1], 1, name=f"select_{cycle}"))
        sums = self._groups.reduce(m, rows, selects, add_wrapping, name="sum", steps=self._steps)
        m.d.comb += [o.eq(total) for o, total in zip(self.o, sums, strict=True)]
        return m

    def _chains(self, m, platform, unit, leads):
        """Chains of a unit, of lower and of upper products, which begin with the words of a unit that leads a group."""
        lowers, uppers = self._products(m, platform, unit)
        start, other = self._starts(m, unit, leads)
        return self._add_up(m, lowers, start, f"lower_{unit}") + self._add_up(m, uppers, other, f"upper_{unit}")

    def _terms(self, m, platform, unit, leads):
        """All terms of a unit, the upper products, which are narrow, first."""
        lowers, uppers = self._products(m, platform, unit)
        # Before an adder this OR takes no LUT of its own.
        return [*uppers, reduce(or_, self._starts(m, unit, leads)).as_signed(), *lowers]

    def _starts(self, m, unit, leads):
        """The words of a unit that leads a group, else 0, in the cycle of its products."""
        # Gates before a register become its reset.
        return [
            delay(m, Mux(leads, word[unit], 0), _PRODUCT_CYCLES - self.ACCUMULATORS_AFTER, name=f"start{n}_{unit}")
            for n, word in enumerate((self.accumulators, self.others))
        ]

    def _products(self, m, platform, unit):
        """The lower and the upper products of a unit; each waits for the previous one in its chain."""
        lowers, uppers = [], []
        for lane in range(self._lanes):
            waits = lane % self._links if self._links else 0
            product = IntegerProduct(wide=self._wide, waits=waits)
            m.submodules[f"product_{unit}_{lane}"] = shared_module(platform, product, self._wide, waits)
            m.d.comb += [
                product.type.eq(self.type),
                product.a.eq(self.a[unit].word_select(lane, 16)),
                product.b.eq(self.b[unit].word_select(lane, 16)),
            ]
            lowers.append(product.lower)
            uppers.append(product.upper)
        return lowers, uppers

    def _add_up(self, m, terms, start, name):
        """Sums of chains, modulo 2^32; the first one begins with ``start``."""
        sums = []
        for lane, term in enumerate(terms):
            link = lane % self._links
            total = term if start is None else start.as_signed() + term
            total = total[:_BITS].as_signed() if len(total) > _BITS else total
            start = delay(m, total, 1, name=f"{name}_{lane}")
            if link == self._links - 1 or lane == self._lanes - 1:
                # A shorter last chain waits for the others.
                sums.append(delay(m, start, self._links - 1 - link, name=f"{name}_whole"))
                start = None
        return sums
