"""A dot-product unit, whole or in parts."""

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..lib.logic import delay
from .integer_row import IntegerRow
from .row import DotRow

__all__ = ["DotUnit"]


class DotUnit(wiring.Component):
    """Accumulates the dot product of two rows, or of each of 2^split equal parts of them (docs/pe.md, "Numbers").

    Latency: ``LATENCY`` cycles, for all types. Throughput: one row a cycle; nothing stalls it.

    Parameters
    ----------
    width_bytes : int
        Bytes of a row, at most 64.
    segments : int
        Parts of a row, at most; a power of two. A part of the smallest size has at least two bytes.
    floats : bool
        Without them there are only integers.

    Members
    -------
    type : In(4)
        ``MmType``.
    a, b : In(8 * width_bytes)
        The rows, element 0 in the low bits.
    split : In(range(exact_log2(segments) + 1)) if segments > 1
        Log2 of the number of parts.
    accumulators : In(array of segments 32)
        That of part p is number p · segments / 2^split; the others do not matter.
    o : Out(array of segments 32)
        The accumulators with the products added, in the same places; what is in the others means nothing.
    """

    def __init__(self, width_bytes, segments=1, *, floats=True):
        if width_bytes % segments:
            raise ValueError(f"the width must be a multiple of {segments} bytes, not {width_bytes!r}")
        self._splits = exact_log2(segments)
        self._row = (DotRow if floats else IntegerRow)(
            count=segments,
            unit_bytes=width_bytes // segments,
            sizes=[segments >> split for split in range(self._splits + 1)],
        )
        self.LATENCY = self._row.LATENCY
        members = {
            "type": In(4),
            "a": In(8 * width_bytes),
            "b": In(8 * width_bytes),
            "accumulators": In(data.ArrayLayout(32, segments)),
            "o": Out(data.ArrayLayout(32, segments)),
        }
        if segments > 1:
            members["split"] = In(range(self._splits + 1))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.row = row = self._row
        m.d.comb += [
            row.type.eq(self.type),
            row.a.eq(self.a),
            row.b.eq(self.b),
            self.o.eq(row.o),
        ]
        words = [delay(m, word, row.ACCUMULATORS_AFTER, name=f"word{n}") for n, word in enumerate(self.accumulators)]
        m.d.comb += [to.eq(word) for to, word in zip(row.accumulators, words, strict=True)]
        if self._splits:
            m.d.comb += row.select.eq(self.split)
        return m
