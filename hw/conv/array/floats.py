"""A compute unit of a slave for floats: the dot product of two rows, with the accumulators that it goes on from."""

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...dot_product.row import DotRow
from ...lib.alike import alike
from ..params import FOLDS

__all__ = ["FloatUnit"]

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
