"""A compute unit of a slave: one row of features times one row of weights, and the sum of each point."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...dot_product.groups import Groups, add_wrapping
from ...lib.delay import delay
from ..params import FOLDS
from .factors import factors_layout

__all__ = ["ComputeUnit"]

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
