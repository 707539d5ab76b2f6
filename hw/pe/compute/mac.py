"""The multipliers of all threads."""

from ...dot_product.row import DotRow

__all__ = ["MacArray"]


class MacArray(DotRow):
    """A dot-product unit for each thread; kb neighbours share an accumulator (docs/pe.md, "mm" and "Numbers").

    Latency: ``LATENCY`` cycles, for all types and kb. Throughput: one step a cycle; nothing stalls it.

    Parameters
    ----------
    params : PeParams

    Members
    -------
    type : In(4)
        ``MmType``.
    select : In(2)
        kb, as stored.
    a, b : In(array of params.threads params.unit_bits)
        Of every thread its elements of A, and those of its column.
    accumulators : In(array of params.threads 32)
    o : Out(array of params.threads 32)
        For the first of every kb threads, if all of them are there: its accumulator with all their products added. The
        other accumulators do not matter, and the other results mean nothing.
    """

    def __init__(self, params):
        super().__init__(count=params.threads, unit_bytes=params.unit_bytes, sizes=(1, 2, 3, 4))
