"""All that leaves for one mm, ld or st."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.instruction import Operation

from ..layouts import BASES_SETS, JobKind, JobLayout, MultiplyLayout, SegmentEntryLayout
from .decode import DecodedLayout, instruction_view
from .scoreboard import RangeLayout

__all__ = ["JobSender"]

_KINDS = {Operation.MM: JobKind.MULTIPLY, Operation.LD: JobKind.LOAD, Operation.ST: JobKind.STORE}


class JobSender(wiring.Component):
    """Adds an mm or ld to the scoreboard and, in the same cycle or later, sends its job, and of an mm its multiply.

    Latency 0; one instruction a cycle, if nothing waits.

    Members
    -------
    send : 1, in
        Level, until ``sent``; the other inputs stay meanwhile.
    decoded, segment_number, segment, bases_set, rebuild, flush : in
        What the job is made of.
    moved : RangeLayout, in
        Products, or registers of ld or st.
    sent : 1, out
        In the cycle in which the last part leaves.
    jobs : stream of JobLayout, out
    multiplies : stream of MultiplyLayout, out
    mm_add, mm_products, mm_factors, load_add, load : out
        Strobes, with registers.
    mm_ready, load_ready : 1, in
        One more can be added; high until it is.

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
                "segment_number": In(params.segment_width),
                "segment": In(SegmentEntryLayout(params)),
                "bases_set": In(range(BASES_SETS)),
                "rebuild": In(1),
                "flush": In(1),
                "moved": In(RangeLayout(params)),
                "sent": Out(1),
                "jobs": Out(stream.Signature(JobLayout(params))),
                "multiplies": Out(stream.Signature(MultiplyLayout(params))),
                "mm_add": Out(1),
                "mm_ready": In(1),
                "mm_products": Out(RangeLayout(params)),
                "mm_factors": Out(RangeLayout(params)),
                "load_add": Out(1),
                "load_ready": In(1),
                "load": Out(RangeLayout(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        mm, ld = (instruction_view(operation, self.decoded.word) for operation in (Operation.MM, Operation.LD))
        is_mm, is_ld, may_send = Signal(), Signal(), Signal()
        adds = self.mm_add | self.load_add
        job, multiply = self.jobs, self.multiplies
        m.d.comb += [
            is_mm.eq(mm.opcode == Operation.MM),
            is_ld.eq(mm.opcode == Operation.LD),
            self.mm_add.eq(self.send & is_mm & ~self.added & self.mm_ready),
            self.load_add.eq(self.send & is_ld & ~self.added & self.load_ready),
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

        with m.Switch(mm.opcode):
            for operation, kind in _KINDS.items():
                with m.Case(operation):
                    m.d.comb += job.payload.kind.eq(kind)
        m.d.comb += [
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
            self.mm_products.eq(self.moved),
            self.mm_factors.first.eq(mm.ra),
            self.mm_factors.last.eq(mm.ra + self.params.factor_regs - 1),
            self.load.eq(self.moved),
        ]
        return m
