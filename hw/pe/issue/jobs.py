"""Which offsets are held, and in which set an instruction's are."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import Operation

from ..layouts import BASES_SETS, JobKind, JobLayout, MultiplyLayout, SegmentEntryLayout
from .decode import DecodedLayout, instruction_view
from .scoreboard import MultiplyRegistersLayout, RangeLayout

__all__ = ["JobSender", "OffsetReuse"]


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


class JobSender(wiring.Component):
    """Adds an mm or ld to the scoreboard and, in the same cycle or later, sends its job, and of an mm its multiply.

    Latency 0; one instruction a cycle, if nothing waits.

    Members
    -------
    send : In(1)
        Level, until ``sent``; the other inputs stay meanwhile.
    decoded : In(DecodedLayout)
    is_mm, is_ld : In(1)
        What it is, from registers; neither: an st.
    segment_number : In(params.segment_width)
    segment : In(SegmentEntryLayout)
    bases_set : In(range(BASES_SETS))
    rebuild, flush : In(1)
        Of the job, as in ``JobLayout``.
    moved : In(RangeLayout)
        Accumulators, or registers of ld or st.
    sent : Out(1)
        In the cycle in which the last part leaves.
    jobs : Out(stream of JobLayout)
    multiplies : Out(stream of MultiplyLayout)
    mm_registers : Out(stream of MultiplyRegistersLayout)
        Once ready, it must be ready until an mm is added.
    load_registers : Out(stream of RangeLayout)
        Likewise.

    Attributes
    ----------
    added, job_sent, multiply_sent : Signal
        What of the instruction has left; for proofs.
    """

    def __init__(self, params):
        self.params = params
        self.added, self.job_sent, self.multiply_sent = Signal(), Signal(), Signal()
        super().__init__(
            {
                "send": In(1),
                "decoded": In(DecodedLayout()),
                "is_mm": In(1),
                "is_ld": In(1),
                "segment_number": In(params.segment_width),
                "segment": In(SegmentEntryLayout(params)),
                "bases_set": In(range(BASES_SETS)),
                "rebuild": In(1),
                "flush": In(1),
                "moved": In(RangeLayout(params)),
                "sent": Out(1),
                "jobs": Out(stream.Signature(JobLayout(params))),
                "multiplies": Out(stream.Signature(MultiplyLayout(params))),
                "mm_registers": Out(stream.Signature(MultiplyRegistersLayout(params))),
                "load_registers": Out(stream.Signature(RangeLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        mm = instruction_view(Operation.MM, self.decoded.word)
        is_mm, is_ld, adds, may_send = self.is_mm, self.is_ld, Signal(), Signal()
        job, multiply, mm_registers, load_registers = self.jobs, self.multiplies, self.mm_registers, self.load_registers
        m.d.comb += [
            mm_registers.valid.eq(self.send & is_mm & ~self.added),
            load_registers.valid.eq(self.send & is_ld & ~self.added),
            adds.eq((mm_registers.valid & mm_registers.ready) | (load_registers.valid & load_registers.ready)),
            may_send.eq(self.send & (self.added | adds | ~(is_mm | is_ld))),
            job.valid.eq(may_send & ~self.job_sent),
            multiply.valid.eq(may_send & is_mm & ~self.multiply_sent),
            self.sent.eq(may_send & (self.job_sent | job.ready) & (self.multiply_sent | multiply.ready | ~is_mm)),
        ]
        m.d.sync += [
            self.added.eq((self.added | adds) & ~self.sent),
            self.job_sent.eq((self.job_sent | (job.valid & job.ready)) & ~self.sent),
            self.multiply_sent.eq((self.multiply_sent | (multiply.valid & multiply.ready)) & ~self.sent),
        ]
        self._describe(m, mm)
        return m

    def _describe(self, m, mm):
        """All payloads."""
        job, multiply, mm_registers = self.jobs, self.multiplies, self.mm_registers
        ld = instruction_view(Operation.LD, self.decoded.word)
        m.d.comb += [
            job.payload.kind.eq(Mux(self.is_mm, JobKind.MULTIPLY, Mux(self.is_ld, JobKind.LOAD, JobKind.STORE))),
            job.payload.number.eq(self.decoded.number),
            job.payload.segment.eq(self.segment),
            job.payload.segment_number.eq(self.segment_number),
            job.payload.rf.eq(mm.rf),
            job.payload.imm.eq(mm.imm),
            job.payload.guard.eq(mm.guard),
            job.payload.predicate.eq(mm.predicate),
            job.payload.register.eq(mm.rc),
            job.payload.count.eq(ld.n),
            job.payload.ka.eq(mm.ka),
            job.payload.kb.eq(mm.kb),
            job.payload.transpose.eq(mm.transpose),
            job.payload.bases_set.eq(self.bases_set),
            job.payload.rebuild.eq(self.rebuild),
            job.payload.flush.eq(self.flush),
            multiply.payload.type.eq(mm.type),
            multiply.payload.ka.eq(mm.ka),
            multiply.payload.kb.eq(mm.kb),
            multiply.payload.ra.eq(mm.ra),
            mm_registers.payload.accumulators.eq(self.moved),
            mm_registers.payload.factors.first.eq(mm.ra),
            mm_registers.payload.factors.last.eq(mm.ra + self.params.factor_regs - 1),
            self.load_registers.payload.eq(self.moved),
        ]
