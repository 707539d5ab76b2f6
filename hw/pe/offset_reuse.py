"""Whether the offset registers of an instruction are those that were read last."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["OffsetReuse"]


class OffsetReuse(wiring.Component):
    """Remembers of which offsets the loading side holds its sums, and whether their registers were written since.

    Members
    -------
    segment, first, last : unsigned, in
        Of the job to be issued: segment, first and last offset register.
    rebuild : 1, out
        The loading side must read them. Combinational.
    issued : 1, in
        Strobe: that job is issued.
    written, written_first, written_last : in
        Strobe: an instruction writes these registers; in the cycle of ``issued`` it is that job, which reads first.
    forget : 1, in
        Strobe: numbers of segments may mean others. It comes before ``issued`` of the same cycle.
    """

    def __init__(self, params):
        self.kept = Signal()  # what the loading side holds is up to date
        self.kept_segment = Signal(params.segment_width)
        self.kept_first = Signal(params.reg_width)
        self.kept_last = Signal(params.reg_width)
        super().__init__(
            {
                "segment": In(params.segment_width),
                "first": In(params.reg_width),
                "last": In(params.reg_width),
                "rebuild": Out(1),
                "issued": In(1),
                "written": In(1),
                "written_first": In(params.reg_width),
                "written_last": In(params.reg_width),
                "forget": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.rebuild.eq(~self.kept | (self.kept_segment != self.segment) | (self.kept_first != self.first))
        with m.If(self.issued):
            m.d.sync += [
                self.kept.eq(~self._overwrites(self.first, self.last)),
                self.kept_segment.eq(self.segment),
                self.kept_first.eq(self.first),
                self.kept_last.eq(self.last),
            ]
        with m.Elif(self.forget | self._overwrites(self.kept_first, self.kept_last)):
            m.d.sync += self.kept.eq(0)
        return m

    def _overwrites(self, first, last):
        return self.written & (self.written_first <= last) & (first <= self.written_last)
