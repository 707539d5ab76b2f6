"""The multipliers of all threads."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...dot_product.row import DotRow

__all__ = ["MacArray"]


class MacArray(wiring.Component):
    """A dot-product unit for each thread; kb neighbours share an accumulator (docs/pe.md, "mm" and "Numbers").

    Latency: ``LATENCY`` cycles, for all types and kb. Throughput: one step a cycle; nothing stalls it.

    Parameters
    ----------
    params : PeParams

    Members
    -------
    type : In(4)
        ``MmType``.
    kb : In(2)
        Threads that share an accumulator, as stored: less one.
    a, b : In(array of params.threads params.unit_bits)
        Of every thread its elements of A, and those of its column.
    accumulators : In(array of params.threads 32)
    o : Out(array of params.threads 32)
        For the first of every kb threads, if all of them are there: its accumulator with all their products added. The
        other accumulators do not matter, and the other results mean nothing.
    """

    LATENCY = DotRow.LATENCY

    def __init__(self, params):
        unit = data.ArrayLayout(params.unit_bits, params.threads)
        word = data.ArrayLayout(32, params.threads)
        self._row = DotRow(count=params.threads, unit_bytes=params.unit_bytes, sizes=(1, 2, 3, 4))
        super().__init__(
            {"type": In(4), "kb": In(2), "a": In(unit), "b": In(unit), "accumulators": In(word), "o": Out(word)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.row = row = self._row
        m.d.comb += [
            row.type.eq(self.type),
            row.select.eq(self.kb),
            row.a.eq(self.a),
            row.b.eq(self.b),
            row.accumulators.eq(self.accumulators),
            self.o.eq(row.o),
        ]
        return m
