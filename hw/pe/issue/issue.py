"""Issue: instructions leave in program order, each when the registers it needs are free."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.instruction import MEMORY_OPERATIONS, Operation, Source

from ...lib.join import join
from ..layouts import FaultLayout, JobLayout, MultiplyLayout, SegmentEntryLayout
from ..state.uniform import UniformRegisters
from .decode import DecodedLayout, instruction_view
from .job_sender import JobSender
from .lane_ops import LaneOperationLayout
from .moved import MovedRegisters
from .offset_reuse import OffsetReuse
from .scoreboard import RangeLayout
from .verdict import Verdict, VerdictLayout
from .waits import WaitLayout

__all__ = ["Issue"]

#: What the sender tells the scoreboard.
_ADDITIONS = ("mm_add", "mm_products", "mm_factors", "load_add", "load")


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
    sender : JobSender
    """

    def __init__(self, params):
        self.params = params
        self.starts, self.prepares, self.sends = Signal(), Signal(), Signal()
        self.sender = JobSender(params)
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
        m.submodules.verdict = verdict = Verdict(params)
        m.submodules.moved = moved = MovedRegisters(params)
        m.submodules.reuse = reuse = OffsetReuse(params)
        m.submodules.sender = sender = self.sender
        mm, setp = (instruction_view(op, decoded.word) for op in (Operation.MM, Operation.SETP))
        operation = {op: Signal(name=f"is_{op.name.lower()}") for op in Operation}
        in_memory, in_lanes = Signal(), Signal()
        m.d.comb += [
            *(here.eq(decoded.word[:4] == op) for op, here in operation.items()),
            in_memory.eq(Cat(operation[op] for op in MEMORY_OPERATIONS).any()),
            in_lanes.eq(operation[Operation.MOV] | operation[Operation.SETP]),
        ]

        fault = Signal(VerdictLayout())
        segment, is_set, exists = Signal(params.segment_width), Signal(), Signal()  # that it names
        second = Signal()  # a store asks for the registers that it stores
        flush, must_flush = Signal(), Signal(init=1)
        m.d.comb += [
            uniform.number.eq(mm.ur),
            uniform.value.eq(mm.imm),
            self.segment_number.eq(Mux(self.starts, uniform.segment, segment)),
            verdict.decoded.eq(decoded),
            verdict.is_set.eq(is_set),
            verdict.exists.eq(exists),
            verdict.segment.eq(self.segment_entry),
            moved.word.eq(decoded.word),
            reuse.segment.eq(segment),
            reuse.first.eq(mm.rf),
            reuse.last.eq(mm.rf + self.segment_entry.rank),
            reuse.by_rows.eq(operation[Operation.MM] & mm.transpose),
            reuse.forget.eq(self.segment_written),
            self.idle.eq(~self.i.valid),
            self.i.ready.eq(sender.sent | (self.faults.valid & self.faults.ready)),
        ]
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
                    fault.eq(verdict.o),
                    self.reads_valid.eq(1),
                    self.reads.first.eq(reuse.first),
                    self.reads.last.eq(reuse.last),
                    self.writes_valid.eq(operation[Operation.LD]),
                    self.writes.eq(moved.o),
                ]
                m.next = "REPORT"
                with m.If(verdict.o.code == PeError.NONE):
                    m.next = "FREE"
            with m.State("FREE"):
                m.d.comb += [self.prepares.eq(1), reuse.look.eq(1)]
                m.d.sync += flush.eq(must_flush)
                with m.If(self.clear):
                    with m.If(operation[Operation.ST] & ~second):
                        # A store reads two ranges: one after the other.
                        m.d.sync += [second.eq(1), self.reads.eq(moved.o)]
                    with m.Else():
                        m.d.sync += must_flush.eq(0)
                        m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += self.sends.eq(1)
                with m.If(sender.sent):
                    m.next = "START"
            with m.State("LANES"):
                m.d.sync += [
                    self.reads_valid.eq(operation[Operation.SETP] & (setp.source == Source.GIVEN)),
                    self.reads.eq(moved.o),
                    self.writes_valid.eq(operation[Operation.MOV]),
                    self.writes.eq(moved.o),
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

        set_now = self.lane_operations.valid & self.lane_operations.ready & operation[Operation.MOV]
        m.d.comb += [
            reuse.issued.eq(sender.sent),
            reuse.written.eq((sender.sent & ~operation[Operation.ST]) | set_now),
            reuse.written_first.eq(moved.o.first),
            reuse.written_last.eq(moved.o.last),
            sender.send.eq(self.sends),
            sender.decoded.eq(decoded),
            sender.segment_number.eq(segment),
            sender.segment.eq(self.segment_entry),
            sender.bases_set.eq(reuse.bases_set),
            sender.rebuild.eq(reuse.rebuild),
            sender.flush.eq(flush),
            sender.moved.eq(moved.o),
            sender.mm_ready.eq(self.mm_ready),
            sender.load_ready.eq(self.load_ready),
            *(getattr(self, name).eq(getattr(sender, name)) for name in _ADDITIONS),
        ]
        join(m, sender=sender.jobs, jobs=flipped(self.jobs))
        join(m, sender=sender.multiplies, multiplies=flipped(self.multiplies))
        self._describe(m, fault)
        return m

    def _describe(self, m, fault):
        """Payloads of what is not a job."""
        decoded = self.i.payload
        mov, setp, bar_wait = (
            instruction_view(op, decoded.word) for op in (Operation.MOV, Operation.SETP, Operation.BAR_WAIT)
        )
        lane_operation, wait, report = self.lane_operations.payload, self.waits.payload, self.faults.payload
        m.d.comb += [
            lane_operation.setp.eq(setp.opcode == Operation.SETP),
            lane_operation.source.eq(Mux(lane_operation.setp, setp.source, mov.source)),
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
