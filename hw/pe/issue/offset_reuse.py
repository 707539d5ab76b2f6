"""Which offsets are held, and in which set an instruction's are."""

from amaranth import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import BASES_SETS

__all__ = ["OffsetReuse"]


class _HeldLayout(data.StructLayout):
    """Of which offsets a set of the loading side holds the sums."""

    def __init__(self, params):
        super().__init__(
            {
                "good": 1,  # there are some, and they are up to date
                "segment": unsigned(params.segment_width),
                "by_rows": 1,
                "first": unsigned(params.reg_width),
                "last": unsigned(params.reg_width),
            }
        )


class OffsetReuse(wiring.Component):
    """Remembers of which offsets the loading side holds its sums, and whether their registers were written since.

    A job whose offsets are held takes their set. Otherwise they are to be read: into a set that is of no use any more,
    or else into the next one, round robin.

    Members
    -------
    segment : In(params.segment_width)
        Of the job to be issued, as the next three.
    by_rows : In(1)
        It leaves out dimension 1.
    first, last : In(params.reg_width)
        Offset registers.
    look : In(1)
        Strobe: find the job's set.
    bases_set : Out(range(BASES_SETS))
        That set. Registered, as ``rebuild``; until ``look`` is high again.
    rebuild : Out(1)
        The loading side must read the offsets into it.
    issued : In(1)
        Strobe: the job is issued with them.
    written : In(1)
        Strobe: an instruction writes registers; in the cycle of ``issued`` it is that job, which reads first.
    written_first, written_last : In(params.reg_width)
        These registers.
    forget : In(1)
        Strobe: numbers of segments may mean others. It comes before ``issued`` of the same cycle.
    """

    def __init__(self, params):
        self._held = [Signal(_HeldLayout(params), name=f"held{number}") for number in range(BASES_SETS)]
        self._next = Signal(range(BASES_SETS))  # to be replaced if all are good
        super().__init__(
            {
                "segment": In(params.segment_width),
                "by_rows": In(1),
                "first": In(params.reg_width),
                "last": In(params.reg_width),
                "look": In(1),
                "bases_set": Out(range(BASES_SETS)),
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
        hits, useless = Signal(BASES_SETS), Signal(BASES_SETS)
        m.d.comb += [
            hits.eq(Cat(held.good & self._is_of_job(held) for held in self._held)),
            useless.eq(~Cat(held.good for held in self._held)),
        ]
        with m.If(self.look):
            m.d.sync += [self.bases_set.eq(self._next), self.rebuild.eq(~hits.any())]
            for candidates in (useless, hits):
                for number in reversed(range(BASES_SETS)):
                    with m.If(candidates[number]):
                        m.d.sync += self.bases_set.eq(number)

        for number, held in enumerate(self._held):
            with m.If(self.issued & (self.bases_set == number)):
                m.d.sync += [
                    held.good.eq(~self._overwrites(self.first, self.last)),
                    held.segment.eq(self.segment),
                    held.by_rows.eq(self.by_rows),
                    held.first.eq(self.first),
                    held.last.eq(self.last),
                ]
            with m.Elif(self.forget | self._overwrites(held.first, held.last)):
                m.d.sync += held.good.eq(0)
        with m.If(self.issued & self.rebuild & (self.bases_set == self._next)):
            m.d.sync += self._next.eq(self._next + 1)
        return m

    def _is_of_job(self, held):
        return (held.segment == self.segment) & (held.by_rows == self.by_rows) & (held.first == self.first)

    def _overwrites(self, first, last):
        return self.written & (self.written_first <= last) & (first <= self.written_last)
