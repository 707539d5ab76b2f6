"""All that leaves for one mm, ld or st."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.instruction import Operation

from ..layouts import BASES_SETS, JobKind, JobLayout, MultiplyLayout, SegmentEntryLayout
from .decode import DecodedLayout, instruction_view
from .layouts import MultiplyRegistersLayout, RangeLayout

__all__ = ["JobSender"]


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
