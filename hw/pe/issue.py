"""Issue: instructions leave in program order, each when the registers it needs are free."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.instruction import MEMORY_OPERATIONS, MmType, Operation, Source
from tilewright.golden.spec.pe_errors import PeError

from .decode import DecodedLayout, instruction_view
from .lane_ops import LaneOperationLayout
from .layouts import FaultLayout, JobKind, JobLayout, MultiplyLayout, SegmentEntryLayout
from .offset_reuse import OffsetReuse
from .scoreboard import RangeLayout
from .uniform import UniformRegisters
from .waits import WaitLayout

__all__ = ["Issue"]

_KINDS = {Operation.MM: JobKind.MULTIPLY, Operation.LD: JobKind.LOAD, Operation.ST: JobKind.STORE}


class Issue(wiring.Component):
    """Judges instructions where the word alone does not tell, and hands them to those that perform them.

    An mm, ld or st takes four cycles if nothing holds it up: uniform register; segment; registers free; job. Every
    instruction either becomes a job, whose faults are reported elsewhere, or ends here with one item of ``faults``.

    Members
    -------
    i : stream of DecodedLayout, in
        An instruction is accepted when it has left.
    jobs : stream of JobLayout, out
        Its segment is that of ``segment_entry``: a segment must not be written while an instruction uses it.
    multiplies : stream of MultiplyLayout, out
        One for each job of an mm, in the same order.
    lane_operations : stream of LaneOperationLayout, out
        A mov or setp, when its registers are free; accepted when it is done.
    waits : stream of WaitLayout, out
        Accepted when the wait is over.
    faults : stream of FaultLayout, out
        One for each instruction that is not a job.
    segment_number : unsigned, out
    segment_entry : SegmentEntryLayout, in
        That segment, one cycle later.
    reads_valid, reads, writes_valid, writes : 1, RangeLayout, out
        Registers that the instruction reads and writes, other than factors and products. Registered.
    clear : 1, in
        Nothing before it reads or writes these any more. Once it is high it stays so until an mm or ld is added.
    mm_add, mm_products, mm_factors, load_add, load : out
        Strobes: an mm, or ld, is added to those under way, with its registers; not later than its job.
    mm_ready, load_ready : 1, in
        One more can be.
    loading_idle : 1, in
        No job's registers or predicates are still to be read. Low from the cycle after a job was accepted.
    segment_written, page_written : 1, in
        Strobes.
    idle : 1, out
        No instruction is here.

    Attributes
    ----------
    starts, prepares, sends : Signal
        Where a job is: not here yet, not ready, leaving; for proofs.
    added, job_sent, multiply_sent : Signal
        What of it has left; for proofs.
    """

    def __init__(self, params):
        self.params = params
        self.starts, self.prepares, self.sends = Signal(), Signal(), Signal()
        self.added, self.job_sent, self.multiply_sent = Signal(), Signal(), Signal()
        super().__init__(
            {
                "i": In(stream.Signature(DecodedLayout())),
                "jobs": Out(stream.Signature(JobLayout(params))),
                "multiplies": Out(stream.Signature(MultiplyLayout(params))),
                "lane_operations": Out(stream.Signature(LaneOperationLayout(params))),
                "waits": Out(stream.Signature(WaitLayout(params))),
                "faults": Out(stream.Signature(FaultLayout(params))),
                "segment_number": Out(params.segment_width),
                "segment_entry": In(SegmentEntryLayout(params)),
                "reads_valid": Out(1),
                "reads": Out(RangeLayout(params)),
                "writes_valid": Out(1),
                "writes": Out(RangeLayout(params)),
                "clear": In(1),
                "mm_add": Out(1),
                "mm_ready": In(1),
                "mm_products": Out(RangeLayout(params)),
                "mm_factors": Out(RangeLayout(params)),
                "load_add": Out(1),
                "load_ready": In(1),
                "load": Out(RangeLayout(params)),
                "loading_idle": In(1),
                "segment_written": In(1),
                "page_written": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params, decoded = self.params, self.i.payload
        m.submodules.uniform = uniform = UniformRegisters(params)
        m.submodules.reuse = reuse = OffsetReuse(params)
        mm, setp = (instruction_view(op, decoded.word) for op in (Operation.MM, Operation.SETP))
        self._operation = operation = {op: Signal(name=f"is_{op.name.lower()}") for op in Operation}
        m.d.comb += [here.eq(decoded.word[:4] == op) for op, here in operation.items()]
        in_memory, in_lanes = Signal(), Signal()
        m.d.comb += [
            in_memory.eq(Cat(operation[op] for op in MEMORY_OPERATIONS).any()),
            in_lanes.eq(operation[Operation.MOV] | operation[Operation.SETP]),
        ]

        first, last = self._registers(m)  # that the instruction writes, or a store reads
        fault = Signal(data.StructLayout({"code": 4, "register": 16}))
        segment, is_set, exists = Signal(params.segment_width), Signal(), Signal()  # that it names
        second, rebuild, flush = Signal(), Signal(), Signal()
        must_flush = Signal(init=1)
        sent = Signal()
        m.d.comb += [
            uniform.number.eq(mm.ur),
            uniform.value.eq(mm.imm),
            self.segment_number.eq(Mux(self.starts, uniform.segment, segment)),
            reuse.segment.eq(segment),
            reuse.by_rows.eq(operation[Operation.MM] & mm.transpose),
            reuse.first.eq(mm.rf),
            reuse.last.eq(mm.rf + self.segment_entry.rank),
            reuse.forget.eq(self.segment_written),
            reuse.written_first.eq(first),
            reuse.written_last.eq(last),
            self.idle.eq(~self.i.valid),
            self.i.ready.eq(sent | (self.faults.valid & self.faults.ready)),
        ]
        verdict = self._judge(m, is_set, exists)
        with m.FSM():
            with m.State("START"):
                m.d.comb += self.starts.eq(1)
                m.d.sync += [
                    fault.code.eq(decoded.code),
                    fault.register.eq(decoded.register),
                    segment.eq(uniform.segment),
                    is_set.eq(uniform.is_set),
                    exists.eq(uniform.exists),
                    second.eq(0),
                ]
                with m.If(self.i.valid):
                    m.next = "REPORT"
                    with m.If(decoded.code == PeError.NONE):
                        with m.If(in_memory):
                            m.next = "CHECK"
                        with m.Elif(in_lanes):
                            m.next = "LANES"
                        with m.Elif(operation[Operation.MOVU]):
                            m.d.comb += uniform.write.eq(1)
                        with m.Else():
                            m.next = "WAIT"
            with m.State("CHECK"):
                m.d.comb += self.prepares.eq(1)
                m.d.sync += [
                    fault.eq(verdict),
                    self.reads_valid.eq(1),
                    self.reads.first.eq(reuse.first),
                    self.reads.last.eq(reuse.last),
                    self.writes_valid.eq(operation[Operation.LD]),
                    self.writes.first.eq(first),
                    self.writes.last.eq(last),
                ]
                m.next = "REPORT"
                with m.If(verdict.code == PeError.NONE):
                    m.next = "FREE"
            with m.State("FREE"):
                m.d.comb += self.prepares.eq(1)
                m.d.sync += [rebuild.eq(reuse.rebuild), flush.eq(must_flush)]
                with m.If(self.clear):
                    with m.If(operation[Operation.ST] & ~second):
                        # A store reads two ranges: one after the other.
                        m.d.sync += [second.eq(1), self.reads.first.eq(first), self.reads.last.eq(last)]
                    with m.Else():
                        m.d.sync += must_flush.eq(0)
                        m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += self.sends.eq(1)
                with m.If(sent):
                    m.next = "START"
            with m.State("LANES"):
                m.d.sync += [
                    self.reads_valid.eq(operation[Operation.SETP] & (setp.source == Source.GIVEN)),
                    self.reads.first.eq(first),
                    self.reads.last.eq(last),
                    self.writes_valid.eq(operation[Operation.MOV]),
                    self.writes.first.eq(first),
                    self.writes.last.eq(last),
                ]
                m.next = "LANES_FREE"
            with m.State("LANES_FREE"), m.If(self.clear & self.loading_idle):
                m.next = "LANES_RUN"
            with m.State("LANES_RUN"):
                m.d.comb += self.lane_operations.valid.eq(1)
                with m.If(self.lane_operations.ready):
                    m.next = "REPORT"
            with m.State("WAIT"):
                m.d.comb += self.waits.valid.eq(1)
                with m.If(self.waits.ready):
                    m.d.sync += must_flush.eq(1)
                    m.next = "REPORT"
            with m.State("REPORT"):
                m.d.comb += self.faults.valid.eq(1)
                with m.If(self.faults.ready):
                    m.next = "START"
        with m.If(self.segment_written | self.page_written):
            m.d.sync += must_flush.eq(1)

        moved = self.lane_operations.valid & self.lane_operations.ready & operation[Operation.MOV]
        m.d.comb += [
            reuse.issued.eq(sent),
            reuse.written.eq((sent & ~operation[Operation.ST]) | moved),
        ]
        self._send(m, sent, first, last)
        self._fill(m, fault, segment, rebuild, flush)
        return m

    def _registers(self, m):
        """First and last register of products, of those that ld and st move, of mov or setp, a cycle later."""
        mm, ld = (instruction_view(op, self.i.payload.word) for op in (Operation.MM, Operation.LD))
        limit, width = self.params.regs - 1, self.params.reg_width
        first, last = Signal(width), Signal(width)
        steps, product_last = Signal(9), Signal(range(self.params.regs + self.params.threads))
        with m.Switch(mm.ka):
            for ka in range(4):
                with m.Case(ka):
                    m.d.comb += steps.eq(-(-self.params.threads // (ka + 1)))
        outside = mm.rc > limit
        m.d.comb += product_last.eq(mm.rc[:width] + steps - 1)
        m.d.sync += [first.eq(mm.rc), last.eq(mm.rc)]
        with m.If(self._operation[Operation.MM]):
            m.d.sync += last.eq(Mux(outside | (product_last > limit), limit, product_last))
            with m.If(outside):
                m.d.sync += first.eq(limit)
        with m.If(self._operation[Operation.LD] | self._operation[Operation.ST]):
            m.d.sync += last.eq(ld.rd + ld.n - 1)
        return first, last

    def _judge(self, m, is_set, exists):
        """What is wrong with a memory operation, given its uniform register and segment."""
        decoded, segment = self.i.payload, self.segment_entry
        mm = instruction_view(Operation.MM, decoded.word)
        is_mm = self._operation[Operation.MM]
        wide = mm.type >= MmType.S16S16
        unfit = is_mm & ((segment.element_log2 != wide) | (mm.transpose & (segment.rank == 0)))
        refusals = (
            (PeError.UNIFORM, ~is_set, mm.ur),
            (PeError.SEGMENT, ~exists | ~segment.good | unfit, mm.ur),
            (PeError.REGISTER, decoded.file_outside, Mux(is_mm, mm.ra, mm.rc)),
            (PeError.REGISTER, decoded.offsets_outside.bit_select(segment.rank, 1), mm.rf),
        )
        verdict = Signal(data.StructLayout({"code": 4, "register": 16}))
        for code, wrong, register in reversed(refusals):
            with m.If(wrong):
                m.d.comb += [verdict.code.eq(code), verdict.register.eq(register)]
        return verdict

    def _send(self, m, sent, first, last):
        """While ``sends``: adds to the scoreboard; then, or with it, job and multiply. ``sent`` with the last."""
        mm = instruction_view(Operation.MM, self.i.payload.word)
        is_mm, is_ld = self._operation[Operation.MM], self._operation[Operation.LD]
        may_send = Signal()
        m.d.comb += [
            self.mm_add.eq(self.sends & is_mm & ~self.added & self.mm_ready),
            self.load_add.eq(self.sends & is_ld & ~self.added & self.load_ready),
            may_send.eq(self.sends & (self.added | self.mm_add | self.load_add | self._operation[Operation.ST])),
            self.jobs.valid.eq(may_send & ~self.job_sent),
            self.multiplies.valid.eq(may_send & is_mm & ~self.multiply_sent),
            sent.eq(
                may_send & (self.job_sent | self.jobs.ready) & (~is_mm | self.multiply_sent | self.multiplies.ready)
            ),
            self.load.first.eq(first),
            self.load.last.eq(last),
            self.mm_products.eq(self.load),
            self.mm_factors.first.eq(mm.ra),
            self.mm_factors.last.eq(mm.ra + self.params.factor_regs - 1),
        ]
        m.d.sync += [
            self.added.eq(may_send & ~sent),
            self.job_sent.eq((self.job_sent | (self.jobs.valid & self.jobs.ready)) & ~sent),
            self.multiply_sent.eq((self.multiply_sent | (self.multiplies.valid & self.multiplies.ready)) & ~sent),
        ]

    def _fill(self, m, fault, segment, rebuild, flush):
        """Payloads of what leaves."""
        decoded = self.i.payload
        views = {op: instruction_view(op, decoded.word) for op in Operation}
        mm, setp, bar_wait = views[Operation.MM], views[Operation.SETP], views[Operation.BAR_WAIT]
        job, multiply, report = self.jobs.payload, self.multiplies.payload, self.faults.payload
        lane_operation, wait = self.lane_operations.payload, self.waits.payload
        for op, kind in _KINDS.items():
            with m.If(self._operation[op]):
                m.d.comb += job.kind.eq(kind)
        is_setp = self._operation[Operation.SETP]
        m.d.comb += [
            job.number.eq(decoded.number),
            job.segment.eq(self.segment_entry),
            job.segment_number.eq(segment),
            job.rf.eq(mm.rf),
            job.imm.eq(mm.imm),
            job.guard.eq(mm.guard),
            job.predicate.eq(mm.predicate),
            job.register.eq(mm.rc),
            job.count.eq(views[Operation.LD].n),
            job.ka.eq(mm.ka),
            job.kb.eq(mm.kb),
            job.transpose.eq(mm.transpose),
            job.rebuild.eq(rebuild),
            job.flush.eq(flush),
            multiply.type.eq(mm.type),
            multiply.ka.eq(mm.ka),
            multiply.kb.eq(mm.kb),
            multiply.ra.eq(mm.ra),
            lane_operation.setp.eq(is_setp),
            lane_operation.source.eq(Mux(is_setp, setp.source, views[Operation.MOV].source)),
            lane_operation.register.eq(setp.rs),
            lane_operation.imm.eq(setp.imm),
            lane_operation.compare.eq(setp.compare),
            lane_operation.target.eq(setp.pd),
            lane_operation.guard.eq(setp.guard),
            lane_operation.predicate.eq(setp.predicate),
            wait.operation.eq(decoded.word),
            wait.address.eq(bar_wait.imm),
            wait.parity.eq(bar_wait.parity),
            report.code.eq(fault.code),
            report.number.eq(decoded.number),
            report.register.eq(fault.register),
            report.last.eq(Mux(fault.code == PeError.NONE, 0, self.params.threads - 1)),
        ]
