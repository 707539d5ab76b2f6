"""Elements of a row as factors: the distance of each from its zero point."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...dot_product.groups import Groups, add_wrapping
from ...dot_product.row import DotRow
from ...lib.component import alike
from ...lib.logic import delay
from ..params import FOLDS

__all__ = ["ComputeUnit", "FactorLayout", "Factors", "FloatUnit", "factors_layout"]


class FactorLayout(data.StructLayout):
    """Two bytes of a row: an element of 16 bits in ``lower``, or two of 8 bits.

    Parameters
    ----------
    wide : bool
        There are elements of 16 bits.
    """

    def __init__(self, *, wide):
        super().__init__({"lower": signed(17 if wide else 9), "upper": signed(9)})


def factors_layout(row_bytes, *, wide):
    """A row of factors."""
    return data.ArrayLayout(FactorLayout(wide=wide), row_bytes // 2)


class Factors(wiring.Component):
    """Takes a row apart, and the zero point from each element (docs/conv.md, "Operations").

    Latency: 1 cycle. Throughput: a row a cycle; nothing stalls it.

    Parameters
    ----------
    row_bytes : int
    wide : bool
        There are elements of 16 bits.

    Members
    -------
    row : In(8 * row_bytes)
    wide : In(1)
        Elements have 16 bits.
    is_signed : In(1)
    zero : In(signed(17))
        Zero point, as a number of the elements' type.
    o : Out(factors_layout(row_bytes, wide=wide))
        ``upper`` is 0 for elements of 16 bits.
    """

    def __init__(self, row_bytes, *, wide):
        self._built_wide = wide
        super().__init__(
            {
                "row": In(8 * row_bytes),
                "wide": In(1),
                "is_signed": In(1),
                "zero": In(signed(17)),
                "o": Out(factors_layout(row_bytes, wide=wide)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        wide = self.wide if self._built_wide else 0
        bits = 17 if self._built_wide else 9
        zero = Signal(signed(bits))
        m.d.comb += zero.eq(self.zero)
        for number, factor in enumerate(self.o):
            pair = self.row.word_select(number, 16)
            low, high = pair[:8], pair[8:]
            narrow = Cat(low, self.is_signed & low[7]).as_signed()
            whole = Cat(pair, self.is_signed & pair[15]).as_signed()
            upper = Cat(high, self.is_signed & high[7]).as_signed()
            m.d.sync += factor.lower.eq(Mux(wide, whole, narrow) - zero)
            m.d.sync += factor.upper.eq(Mux(wide, 0, upper - zero))
        return m


_SUM_CYCLES = 3


class ComputeUnit(wiring.Component):
    """Multiplies two rows element by element, and adds the products of each point.

    A row has up to 16 points, of 2^``split`` sixteenths of its bytes each. The sum of a point is at the place of its
    first sixteenth; what is at other places means nothing. In lane-private mode place j has one product, that of
    element 16 · ``number`` + j, so that the units of a slave have all of them together.

    Latency: ``LATENCY`` cycles. Throughput: a row a cycle; nothing stalls it.

    Parameters
    ----------
    row_bytes : int
        16 to 64, a power of two.
    number : int
        Of the unit in its slave.
    wide : bool
        There are elements of 16 bits.

    Members
    -------
    a, b : In(factors_layout(row_bytes, wide=wide))
    split : In(range(5))
    lanes : In(1)
        Lane-private mode.
    wide : In(1)
        Elements have 16 bits.
    o : Out(array of 16 signed(32))
        Modulo 2^32.
    """

    LATENCY = 1 + _SUM_CYCLES

    def __init__(self, row_bytes, number, *, wide):
        self._row_bytes, self._number, self._built_wide = row_bytes, number, wide
        factors = factors_layout(row_bytes, wide=wide)
        super().__init__(
            {
                "a": In(factors),
                "b": In(factors),
                "split": In(range(exact_log2(FOLDS) + 1)),
                "lanes": In(1),
                "wide": In(1),
                "o": Out(data.ArrayLayout(signed(32), FOLDS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        products = []
        for pair, (a, b) in enumerate(zip(self.a, self.b, strict=True)):
            lower = Signal(signed(min(2 * len(a.lower), 32)), name=f"lower{pair}")
            upper = Signal(signed(2 * len(a.upper)), name=f"upper{pair}")
            m.d.comb += [lower.eq(a.lower * b.lower), upper.eq(a.upper * b.upper)]
            products += [lower, upper]

        groups = Groups(FOLDS, [1 << split for split in range(exact_log2(FOLDS) + 1)])
        each = self._row_bytes // FOLDS
        rows = [products[unit * each : (unit + 1) * each] for unit in range(FOLDS)]
        # Where a place has one element, its product is the sum of a point of one sixteenth.
        single = each == 1 and not self._built_wide
        selects = [Mux(self.lanes, 0, self.split) if single else self.split]
        for cycle in range(1, self.LATENCY):
            selects.append(delay(m, selects[-1], 1, name=f"split{cycle}"))
        # Behind multipliers nothing is added; the last cycles take two steps where there are more steps than cycles.
        count = exact_log2(self._row_bytes)
        steps = [0, *((count + cycle) // _SUM_CYCLES for cycle in range(_SUM_CYCLES))]
        sums = groups.reduce(m, rows, selects, add_wrapping, name="sum", steps=steps)
        for place, total in enumerate(sums):
            own = None if single else self._own(m, products, place)
            m.d.comb += self.o[place].eq(total if own is None else Mux(self.lanes, own, total))
        return m

    def _own(self, m, products, place):
        """The product of one element, as late as the sums; None if there is never one."""
        element = FOLDS * self._number + place
        if element >= len(products):
            return None
        product = delay(m, products[element], 1, name=f"product{place}")
        if self._built_wide:
            wide = delay(m, products[2 * element], 1, name=f"wide{place}") if 2 * element < len(products) else 0
            chosen = Signal(signed(32), name=f"own{place}")
            m.d.comb += chosen.eq(Mux(self.wide, wide, product))
            product = chosen
        return delay(m, product, _SUM_CYCLES, name=f"own{place}")


#: Two elements whose product, -0, changes no sum.
_NEUTRAL = Const(0x8000, 16), Const(0, 16)


class FloatUnit(wiring.Component):
    """Adds the products of each point to its accumulator, and rounds once (docs/conv.md, "Order of sums").

    Places are those of a ``ComputeUnit``: a point's is that of its first sixteenth of the row. In lane-private mode
    place j has the product of element 16 · ``number`` + j alone.

    Latency: ``LATENCY`` cycles. Throughput: a row a cycle; nothing stalls it.

    Parameters
    ----------
    row_bytes : int
        16 to 64, a power of two.
    number : int
        Of the unit in its slave.

    Members
    -------
    a, b : In(8 * row_bytes)
        Elements, the first in the low bits.
    brain : In(1)
        They are bf16, not fp16.
    split : In(range(5))
        As of a ``ComputeUnit``; an element is not split.
    lanes : In(1)
        Lane-private mode.
    accumulators : In(array of 16 32)
        fp32.
    o : Out(array of 16 32)
        fp32; what is at other places means nothing.
    """

    LATENCY = DotRow.LATENCY

    def __init__(self, row_bytes, number):
        self._own = min(FOLDS, max(0, row_bytes // 2 - FOLDS * number))  # elements in lane-private mode
        self._number = number
        # Sixteenths of rows of 16 bytes are no elements: two are a unit.
        self._count = min(FOLDS, row_bytes // 2)
        self._each = row_bytes // self._count
        super().__init__(
            {
                "a": In(8 * row_bytes),
                "b": In(8 * row_bytes),
                "brain": In(1),
                "split": In(range(exact_log2(FOLDS) + 1)),
                "lanes": In(1),
                "accumulators": In(data.ArrayLayout(32, FOLDS)),
                "o": Out(data.ArrayLayout(32, FOLDS)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, apart = self._count, FOLDS // self._count
        sizes = [1 << split for split in range(exact_log2(count) + 1)]
        row = DotRow(count=count, unit_bytes=self._each, sizes=sizes)
        m.submodules.row = alike(platform, row, count, self._each)
        m.d.comb += [
            row.type.eq(Cat(self.brain, Const(0b100, 3))),
            row.select.eq(Mux(self.lanes, 0, self.split - exact_log2(apart))),
        ]
        for unit in range(count):
            for to, given, neutral in ((row.a, self.a, _NEUTRAL[0]), (row.b, self.b, _NEUTRAL[1])):
                m.d.comb += to[unit].eq(given.word_select(unit, 8 * self._each))
                if self._each > 2 and unit < self._own:
                    own = given.word_select(FOLDS * self._number + unit, 16)
                    with m.If(self.lanes):
                        m.d.comb += to[unit].eq(Cat(own, neutral.replicate(self._each // 2 - 1)))
            m.d.comb += row.accumulators[unit].eq(self.accumulators[unit * apart])
            if unit < self._own:
                with m.If(self.lanes):
                    m.d.comb += row.accumulators[unit].eq(self.accumulators[unit])
        for place, o in enumerate(self.o):
            m.d.comb += o.eq(row.o[place // apart])
            if place < self._own:
                with m.If(self.lanes):
                    m.d.comb += o.eq(row.o[place])
        return m
