"""Reuse of offsets: which set of the loading side holds the offsets of a job."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import BASES_SETS

__all__ = ["OffsetReuse"]


class _OffsetsLayout(data.StructLayout):
    """Offsets of a job: their registers, and how they are summed."""

    def __init__(self, params):
        super().__init__(
            {
                "segment": unsigned(params.segment_width),
                "by_rows": 1,  # dimension 1 is left out
                "first": unsigned(params.reg_width),
                "last": unsigned(params.reg_width),
            }
        )


class OffsetReuse(wiring.Component):
    """Tracks which offsets the sets of the loading side hold, and whether their registers were written since.

    A job whose offsets are in a set uses that set. Otherwise its offsets must be read: into a set that is not valid, or
    else into the next one, round robin.
    """

    def __init__(self, params):
        self._computes = bool(params.units)
        self._sets = [Signal(_OffsetsLayout(params), name=f"set{number}") for number in range(BASES_SETS)]
        self._valid = Signal(BASES_SETS)
        self._next = Signal(range(BASES_SETS))  # to be replaced if all are valid
        super().__init__(
            {
                "offsets": In(_OffsetsLayout(params)),  # of the job to be issued
                "look": In(1),  # strobe: look up the job's set
                # Registered, until the next ``look``:
                "bases_set": Out(range(BASES_SETS)),
                "rebuild": Out(1),  # the loading side must read the offsets into this set
                "issued": In(1),  # strobe: the job is issued with them
                # Strobe: an instruction writes these registers. With ``issued`` it is that job, which reads first.
                "written": In(1),
                "written_first": In(params.reg_width),
                "written_last": In(params.reg_width),
                # With arithmetic. Strobe: an operation writes this register, of which the job has no offset.
                **({"operation": In(1), "operation_register": In(params.reg_width)} if params.units else {}),
                # Strobe: segments may have changed. In the same cycle as ``issued`` it takes effect before.
                "forget": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        hits = Signal(BASES_SETS)
        names = ("segment", "by_rows", "first")
        for number, known in enumerate(self._sets):
            same = Cat(known[name] == self.offsets[name] for name in names).all()
            m.d.comb += hits[number].eq(self._valid[number] & same)
        with m.If(self.look):
            m.d.sync += [self.bases_set.eq(self._next), self.rebuild.eq(~hits.any())]
            for candidates in (~self._valid, hits):
                for number in reversed(range(BASES_SETS)):
                    with m.If(candidates[number]):
                        m.d.sync += self.bases_set.eq(number)

        for number, known in enumerate(self._sets):
            with m.If(self.issued & (self.bases_set == number)):
                m.d.sync += [known.eq(self.offsets), self._valid[number].eq(~self._overwrites(self.offsets))]
            with m.Elif(self.forget | self._overwrites(known) | self._overwritten(known)):
                m.d.sync += self._valid[number].eq(0)
        with m.If(self.issued & self.rebuild & (self.bases_set == self._next)):
            m.d.sync += self._next.eq(self._next + 1)
        return m

    def _overwritten(self, offsets):
        if not self._computes:
            return 0
        register = self.operation_register
        return self.operation & (offsets.first <= register) & (register <= offsets.last)

    def _overwrites(self, offsets):
        return self.written & (self.written_first <= offsets.last) & (offsets.first <= self.written_last)
