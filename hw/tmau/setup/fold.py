"""Folding: rows that adjoin in the tensor and in shared memory become one run."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Fold"]


class Fold(wiring.Component):
    """Which dimensions fold into a run, and which part of a run is inside the tensor; one dimension a cycle.

    A dimension folds into the run if it continues those below it without a gap and they lie wholly inside. The
    outermost folded dimension then decides which part is inside: it is dimension 0 or has traversal 1, so that its
    distances need no division. Where dimension 0 is gathered a run is one unit, which is inside or not as a whole.

    Parameters
    ----------
    length : int
        Bits of a number of bytes.

    Members
    -------
    step : In(1)
        Strobe: the dimension at the inputs is done.
    first : In(1)
        It is dimension 0.
    piece : In(length)
        Bytes of one index of it, if all dimensions before are folded: of dimension 0's unit, or of those dimensions.
    gather : In(1)
        With ``first`` only.
    start, end : In(9)
        Elements to both edges of the tensor, limited to ``count``, as ``BoundsDistance`` gives them.
    count : In(9)
    dimension_bytes : In(length)
        Bytes of this dimension and those before.
    contiguous : In(1)
        It continues the dimension before on both sides without a gap; never with ``gather``.
    folded, whole : Out(1)
        It is part of the run; the next one may be. Combinational.
    start_bytes, end_bytes : Out(length)
        Bytes of the dimension before ``start``, and before ``end``. Combinational; if all dimensions before are folded,
        and not with ``gather``.
    bytes, data_start, data_end, data_bytes : Out(length)
        Registered, of the dimensions so far: bytes of a run; the part of it that is inside, if any is, and its bytes.
    """

    def __init__(self, length):
        self._length = length
        super().__init__(
            {
                "step": In(1),
                "first": In(1),
                "piece": In(length),
                "gather": In(1),
                "start": In(9),
                "end": In(9),
                "count": In(9),
                "dimension_bytes": In(length),
                "contiguous": In(1),
                "folded": Out(1),
                "whole": Out(1),
                "start_bytes": Out(length),
                "end_bytes": Out(length),
                "bytes": Out(length),
                "data_start": Out(length),
                "data_end": Out(length),
                "data_bytes": Out(length),
            }
        )

    def elaborate(self, platform):
        m = Module()
        before = Signal()  # all dimensions before are folded, and lie wholly inside
        gathered = self.first & self.gather
        m.d.comb += [
            self.folded.eq(Mux(self.first, ~self.gather, before & self.contiguous)),
            self.whole.eq(self.folded & (self.start == 0) & (self.end == self.count)),
            self.start_bytes.eq(self.start * self.piece),
            self.end_bytes.eq(self.end * self.piece),
        ]
        with m.If(self.step):
            m.d.sync += before.eq(self.whole)
            with m.If(gathered):
                m.d.sync += [
                    self.bytes.eq(self.piece),
                    self.data_start.eq(0),
                    self.data_end.eq(self.piece),
                    self.data_bytes.eq(self.piece),
                ]
            with m.Elif(self.folded):
                m.d.sync += [
                    self.bytes.eq(self.dimension_bytes),
                    self.data_start.eq(self.start_bytes),
                    self.data_end.eq(self.end_bytes),
                    self.data_bytes.eq(self.end_bytes - self.start_bytes),
                ]
        return m
