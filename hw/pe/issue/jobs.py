"""Jobs: which set holds the offsets of a job, and everything that is sent for one mm, ld or st."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import Operation

from ..layouts import BASES_SETS, JobKind, JobLayout, MultiplyLayout, SegmentEntryLayout
from .decode import DecodedLayout, instruction_view
from .scoreboard import MultiplyRegistersLayout, RangeLayout

__all__ = ["JobSender", "OffsetReuse"]


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
            with m.Elif(self.forget | self._overwrites(known)):
                m.d.sync += self._valid[number].eq(0)
        with m.If(self.issued & self.rebuild & (self.bases_set == self._next)):
            m.d.sync += self._next.eq(self._next + 1)
        return m

    def _overwrites(self, offsets):
        return self.written & (self.written_first <= offsets.last) & (offsets.first <= self.written_last)


class JobSender(wiring.Component):
    """Enters an mm or ld in the scoreboard and, in the same cycle or later, sends its job, and the multiply of an mm.

    Latency: 0. Throughput: one instruction a cycle, if nothing waits.

    Attributes
    ----------
    added, job_sent, multiply_sent : Signal
        Parts of the instruction that have been sent, for proofs.
    """

    def __init__(self, params):
        self._params = params
        self.added, self.job_sent, self.multiply_sent = Signal(), Signal(), Signal()
        super().__init__(
            {
                "send": In(1),  # level, until ``sent``; the other inputs are stable meanwhile
                "decoded": In(DecodedLayout()),
                "is_mm": In(1),  # registers; neither: an st
                "is_ld": In(1),
                # Fields of the job:
                "segment_number": In(params.segment_width),
                "segment": In(SegmentEntryLayout(params)),
                "bases_set": In(range(BASES_SETS)),
                "rebuild": In(1),
                "flush": In(1),
                "moved": In(RangeLayout(params)),  # accumulators, or registers of ld or st
                "sent": Out(1),  # in the cycle in which the last part is sent
                "jobs": Out(stream.Signature(JobLayout(params))),
                "multiplies": Out(stream.Signature(MultiplyLayout(params))),
                # Once ready, it must stay ready until an mm, or a load, is entered.
                "mm_registers": Out(stream.Signature(MultiplyRegistersLayout(params))),
                "load_registers": Out(stream.Signature(RangeLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
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

        mm, ld = (instruction_view(operation, self.decoded.word) for operation in (Operation.MM, Operation.LD))
        factors = mm_registers.payload.factors
        m.d.comb += [
            job.payload.kind.eq(Mux(is_mm, JobKind.MULTIPLY, Mux(is_ld, JobKind.LOAD, JobKind.STORE))),
            job.payload.number.eq(self.decoded.number),
            job.payload.register.eq(mm.rc),
            job.payload.count.eq(ld.n),
            *(job.payload[name].eq(mm[name]) for name in ("rf", "imm", "guard", "predicate", "ka", "kb", "transpose")),
            *(
                job.payload[name].eq(getattr(self, name))
                for name in ("segment", "segment_number", "bases_set", "rebuild", "flush")
            ),
            *(multiply.payload[name].eq(mm[name]) for name in multiply.payload.shape().members),
            mm_registers.payload.accumulators.eq(self.moved),
            factors.first.eq(mm.ra),
            factors.last.eq(mm.ra + self._params.factor_regs - 1),
            load_registers.payload.eq(self.moved),
        ]
        return m
