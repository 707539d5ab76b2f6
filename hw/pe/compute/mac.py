"""The multipliers of all threads."""

from amaranth.hdl import Module
from amaranth.lib import wiring

from ...dot_product.integer_row import IntegerRow
from ...dot_product.row import DotRow

__all__ = ["MacArray"]


class MacArray(wiring.Component):
    """A dot-product unit for each thread; kb neighbours share an accumulator (docs/pe.md, "mm" and "Numbers").

    Latency: ``LATENCY`` cycles, for all types and kb; without floats it is shorter, and accumulators come
    ``ACCUMULATORS_AFTER`` cycles behind the rest. Throughput: one step a cycle; nothing stalls it.

    Parameters
    ----------
    params : PeParams

    Members
    -------
    type : In(4)
        ``MmType``, one of ``params.types``.
    select : In(2)
        kb, as stored.
    a, b : In(array of params.threads params.unit_bits)
        Of every thread its elements of A, and those of its column.
    accumulators : In(array of params.threads 32)
    others : In(array of params.threads 32) if not params.floats
        Of each accumulator or of its other word one is zero; the other counts.
    o : Out(array of params.threads 32)
        For the first of every kb threads, if all of them are there: its accumulator with all their products added. The
        other accumulators do not matter, and the other results mean nothing.
    """

    def __init__(self, params):
        sizes = {"count": params.threads, "unit_bytes": params.unit_bytes, "sizes": (1, 2, 3, 4)}
        if params.floats:
            self._row = DotRow(**sizes)
        else:
            wide = "i16" in params.types
            self._row = IntegerRow(**sizes, wide=wide, others=True, free_adders=params.free_adders)
        self.LATENCY, self.ACCUMULATORS_AFTER = self._row.LATENCY, self._row.ACCUMULATORS_AFTER
        super().__init__(dict(self._row.signature.members))

    def elaborate(self, platform):
        m = Module()
        m.submodules.row = self._row
        wiring.connect(m, wiring.flipped(self), self._row)
        return m
