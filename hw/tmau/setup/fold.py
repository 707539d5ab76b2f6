"""Folding: rows that adjoin in the tensor and in shared memory become one run."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Fold"]


class Fold(wiring.Component):
    """How many dimensions fold into a run, and which part of a run is inside the tensor. Combinational.

    A dimension folds into the run if it continues those below it without a gap and they lie wholly inside. The
    outermost folded dimension then decides which part is inside. Where dimension 0 is gathered a run is one unit, which
    is inside or not as a whole.

    Parameters
    ----------
    length : int
        Bits of a number of bytes.

    Members
    -------
    below, above : In(array of 5 unsigned(9))
        Distances to the edges, in elements, as ``BoundsDistance`` gives them.
    counts : In(array of 5 unsigned(9))
    run_bytes : In(array of 5 length)
        Bytes of counts[0] … counts[k].
    contiguous : In(array of 4 1)
        Dimension k + 1 continues dimension k on both sides without a gap; never with ``gather``.
    unit_log2 : In(3)
        Log2 of the bytes of dimension 0's unit.
    gather : In(1)
    folded : Out(4)
        Dimensions 1 to 4 that are part of the run.
    bytes, data_start, data_end : Out(length)
        Bytes of a run; the part of it that is inside, if any is.
    """

    def __init__(self, length):
        self._length = length
        distances = data.ArrayLayout(unsigned(9), 5)
        super().__init__(
            {
                "below": In(distances),
                "above": In(distances),
                "counts": In(distances),
                "run_bytes": In(data.ArrayLayout(length, 5)),
                "contiguous": In(data.ArrayLayout(1, 4)),
                "unit_log2": In(3),
                "gather": In(1),
                "folded": Out(4),
                "bytes": Out(length),
                "data_start": Out(length),
                "data_end": Out(length),
            }
        )

    def elaborate(self, platform):
        m = Module()
        folded = self.folded
        for k in range(4):
            whole = (self.below[k] == 0) & (self.above[k] >= self.counts[k])
            m.d.comb += folded[k].eq((folded[k - 1] if k else 1) & self.contiguous[k] & whole)

        # One index of the outermost dimension is `piece` bytes. It is dimension 0 or has traversal 1, so that its
        # distances need no division.
        unit, piece = Signal(6), Signal(self._length)
        start, end = Signal(9), Signal(9)
        m.d.comb += unit.eq(1 << self.unit_log2)
        with m.If(self.gather):
            m.d.comb += [piece.eq(unit), self.bytes.eq(unit), end.eq(1)]
        with m.Else(), m.Switch(sum(folded)):
            for d in range(5):
                with m.Case(d):
                    count = self.counts[d]
                    m.d.comb += [
                        piece.eq(self.run_bytes[d - 1] if d else unit),
                        self.bytes.eq(self.run_bytes[d]),
                        start.eq(Mux(self.below[d] < count, self.below[d], count)),
                        end.eq(Mux(self.above[d] < count, self.above[d], count)),
                    ]
        m.d.comb += [self.data_start.eq(start * piece), self.data_end.eq(end * piece)]
        return m
