"""Compute units: rows of elements become factors, and products of two rows are summed point by point."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...dot_product.groups import Groups, add_wrapping
from ...dot_product.row import DotRow
from ...lib.component import shared_module
from ...lib.logic import delay
from ..params import FOLDS

__all__ = ["ComputeUnit", "FactorLayout", "Factors", "FloatUnit", "factors_layout"]

_SUM_CYCLES = 3
#: Two elements whose product, -0, changes no sum.
_NEUTRAL = Const(0x8000, 16), Const(0, 16)


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
    """Splits a row into elements and subtracts the zero point from each (docs/conv.md, "Operations").

    Latency: 1 cycle. Throughput: a row a cycle, without stalls.

    Parameters
    ----------
    row_bytes : int
    wide : bool
        There are elements of 16 bits.
    """

    def __init__(self, row_bytes, *, wide):
        self._has_wide = wide
        super().__init__(
            {
                "row": In(8 * row_bytes),
                "wide": In(1),  # elements have 16 bits
                "is_signed": In(1),
                "zero": In(signed(17)),  # as a number of the elements' type
                "o": Out(factors_layout(row_bytes, wide=wide)),  # ``upper`` is 0 for elements of 16 bits
            }
        )

    def elaborate(self, platform):
        m = Module()
        wide = self.wide if self._has_wide else 0
        zero = Signal(signed(17 if self._has_wide else 9))
        m.d.comb += zero.eq(self.zero)
        for number, factor in enumerate(self.o):
            pair = self.row.word_select(number, 16)
            narrow, upper, whole = (
                Cat(bits, self.is_signed & bits[-1]).as_signed() for bits in (pair[:8], pair[8:], pair)
            )
            m.d.sync += factor.lower.eq(Mux(wide, whole, narrow) - zero)
            m.d.sync += factor.upper.eq(Mux(wide, 0, upper - zero))
        return m


class ComputeUnit(wiring.Component):
    """Multiplies two rows element by element, and adds the products of each point.

    A row has up to 16 points of 2^``split`` sixteenths of its bytes. The sum of a point is at the place of its first
    sixteenth; other places are undefined. In lane-private mode place j has a single product, that of element
    16 · ``number`` + j, so that the units of a slave together have the products of all elements.

    Latency: ``LATENCY`` cycles. Throughput: a row a cycle, without stalls.

    Parameters
    ----------
    row_bytes : int
        16 to 64, a power of two.
    number : int
        Index of the unit in its slave.
    wide : bool
        There are elements of 16 bits.
    """

    LATENCY = 1 + _SUM_CYCLES

    def __init__(self, row_bytes, number, *, wide):
        self._row_bytes, self._number, self._has_wide = row_bytes, number, wide
        factors = factors_layout(row_bytes, wide=wide)
        super().__init__(
            {
                "a": In(factors),
                "b": In(factors),
                "split": In(range(exact_log2(FOLDS) + 1)),
                "lanes": In(1),  # lane-private mode
                "wide": In(1),  # elements have 16 bits
                "o": Out(data.ArrayLayout(signed(32), FOLDS)),  # modulo 2^32
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
        place_bytes = self._row_bytes // FOLDS
        rows = [products[place * place_bytes : (place + 1) * place_bytes] for place in range(FOLDS)]
        # If a place has a single element, that product is also the sum of a point of one sixteenth.
        single = place_bytes == 1 and not self._has_wide
        selects = [Mux(self.lanes, 0, self.split) if single else self.split]
        for cycle in range(1, self.LATENCY):
            selects.append(delay(m, selects[-1], 1, name=f"split{cycle}"))
        # Products are registered without an addition; where there are more steps than cycles the last cycles take two.
        count = exact_log2(self._row_bytes)
        steps = [0, *((count + cycle) // _SUM_CYCLES for cycle in range(_SUM_CYCLES))]
        sums = groups.reduce(m, rows, selects, add_wrapping, name="sum", steps=steps)
        for place, total in enumerate(sums):
            own = None if single else self._own_product(m, products, place)
            m.d.comb += self.o[place].eq(total if own is None else Mux(self.lanes, own, total))
        return m

    def _own_product(self, m, products, place):
        """The product of a place's element in lane-private mode, as late as the sums; None if there is none."""
        element = FOLDS * self._number + place
        if element >= len(products):
            return None
        product = delay(m, products[element], 1, name=f"product{place}")
        if self._has_wide:
            wide = delay(m, products[2 * element], 1, name=f"wide{place}") if 2 * element < len(products) else 0
            narrow, product = product, Signal(signed(32), name=f"own{place}")
            m.d.comb += product.eq(Mux(self.wide, wide, narrow))
        return delay(m, product, _SUM_CYCLES, name=f"own{place}")


class FloatUnit(wiring.Component):
    """Adds the products of each point to its accumulator, and rounds once (docs/conv.md, "Order of sums").

    Places are those of a ``ComputeUnit``: a point has the place of its first sixteenth of the row. In lane-private mode
    place j has only the product of element 16 · ``number`` + j.

    Latency: ``LATENCY`` cycles. Throughput: a row a cycle, without stalls.

    Parameters
    ----------
    row_bytes : int
        16 to 64, a power of two.
    number : int
        Index of the unit in its slave.
    """

    LATENCY = DotRow.LATENCY

    def __init__(self, row_bytes, number):
        self._lane_elements = min(FOLDS, max(0, row_bytes // 2 - FOLDS * number))  # in lane-private mode
        self._number = number
        # A sixteenth of a row of 16 bytes is less than an element: there a unit of the row has two sixteenths.
        self._count = min(FOLDS, row_bytes // 2)
        self._unit_bytes = row_bytes // self._count
        super().__init__(
            {
                "a": In(8 * row_bytes),  # elements, the first in the low bits
                "b": In(8 * row_bytes),
                "brain": In(1),  # bf16, not fp16
                "split": In(range(exact_log2(FOLDS) + 1)),  # as for a ``ComputeUnit``; at least one element a point
                "lanes": In(1),  # lane-private mode
                "accumulators": In(data.ArrayLayout(32, FOLDS)),  # fp32
                "o": Out(data.ArrayLayout(32, FOLDS)),  # fp32; undefined at other places
            }
        )

    def elaborate(self, platform):
        m = Module()
        count, unit_bytes, stride = self._count, self._unit_bytes, FOLDS // self._count
        sizes = [1 << split for split in range(exact_log2(count) + 1)]
        row = DotRow(count=count, unit_bytes=unit_bytes, sizes=sizes)
        m.submodules.row = shared_module(platform, row, count, unit_bytes)
        m.d.comb += [
            row.type.eq(Cat(self.brain, Const(0b100, 3))),
            row.select.eq(Mux(self.lanes, 0, self.split - exact_log2(stride))),
            *(row.accumulators[unit].eq(self.accumulators[unit * stride]) for unit in range(count)),
            *(o.eq(row.o[place // stride]) for place, o in enumerate(self.o)),
        ]
        for port, elements in ((row.a, self.a), (row.b, self.b)):
            m.d.comb += [port[unit].eq(elements.word_select(unit, 8 * unit_bytes)) for unit in range(count)]
        with m.If(self.lanes):
            for lane in range(self._lane_elements):
                m.d.comb += [row.accumulators[lane].eq(self.accumulators[lane]), self.o[lane].eq(row.o[lane])]
                if unit_bytes > 2:
                    for port, elements, neutral in ((row.a, self.a, _NEUTRAL[0]), (row.b, self.b, _NEUTRAL[1])):
                        own = elements.word_select(FOLDS * self._number + lane, 16)
                        m.d.comb += port[lane].eq(Cat(own, neutral.replicate(unit_bytes // 2 - 1)))
        return m
