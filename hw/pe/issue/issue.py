"""Issue: instructions leave in program order, each when the registers it needs are free."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.spec.pe import MEMORY_OPERATIONS, Operation, PeError, Source

from ...lib.component import join
from ..layouts import FaultLayout, JobLayout, MultiplyLayout, SegmentReadSignature
from .decode import DecodedLayout, MovedRegisters, UniformRegisters, Verdict, VerdictLayout, instruction_view
from .jobs import JobSender, OffsetReuse
from .lane_ops import LaneOperationLayout
from .scoreboard import ClearanceSignature, MultiplyRegistersLayout, RangeLayout
from .waits import WaitLayout

__all__ = ["Issue"]


class Issue(wiring.Component):
    """Judges instructions where the word alone does not tell, and hands them to the blocks that perform them.

    An mm, ld or st takes four cycles if nothing holds it up: uniform register; segment; registers free; job. Every
    instruction either becomes a job, whose faults are reported elsewhere, or ends here with one item of ``faults``.

    Members
    -------
    i : In(stream of DecodedLayout)
        An instruction is accepted when it has left.
    jobs : Out(stream of JobLayout)
        Its segment is ``segment.entry``: a segment must not be written while an instruction uses it.
    multiplies : Out(stream of MultiplyLayout)
        One for each job of an mm, in the same order.
    lane_operations : Out(stream of LaneOperationLayout)
        A mov or setp, when its registers are free; accepted when it is done.
    waits : Out(stream of WaitLayout)
        Accepted when the wait is over.
    faults : Out(stream of FaultLayout)
        One for each instruction that is not a job.
    segment : Out(SegmentReadSignature)
    access : Out(ClearanceSignature)
        Registers that the instruction reads and writes, other than factors and accumulators. Registered. Once
        ``clear`` is high it stays so until an mm or ld is added.
    mm_registers : Out(stream of MultiplyRegistersLayout)
        Of each mm, not later than its job. Once ready, it must be ready until an mm is added.
    load_registers : Out(stream of RangeLayout)
        Likewise of each ld.
    loading_idle : In(1)
        No job's registers or predicates are still to be read. Low from the cycle after a job was accepted.
    segment_written, page_written : In(1)
        Strobes.
    idle : Out(1)
        No instruction is here.
    stopped : In(1) if cores > 1
        The core, of so many in a cluster, is stopped: an instruction that has not begun is refused.
    wait_refused : In(1) if cores > 1
        With ``waits``: the wait is over since the core is stopped.

    Attributes
    ----------
    starts, prepares, sends : Signal
        Where a job is: not here yet, not ready, leaving; for proofs.
    sender : JobSender
    """

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        self.starts, self.prepares, self.sends = Signal(), Signal(), Signal()
        self.sender = JobSender(params)
        self._uniform, self._verdict = UniformRegisters(params), Verdict(params)
        self._moved, self._reuse = MovedRegisters(params), OffsetReuse(params)
        self._is = {operation: Signal(name=f"is_{operation.name.lower()}") for operation in Operation}
        self._is_mm, self._is_ld = Signal(), Signal()  # registers, as these decide late in a cycle
        self._fault = Signal(VerdictLayout())
        self._segment, self._is_set, self._exists = Signal(params.segment_width), Signal(), Signal()  # that it names
        self._flush, self._must_flush = Signal(), Signal(init=1)
        super().__init__(
            {
                "i": In(stream.Signature(DecodedLayout())),
                "jobs": Out(stream.Signature(JobLayout(params))),
                "multiplies": Out(stream.Signature(MultiplyLayout(params))),
                "lane_operations": Out(stream.Signature(LaneOperationLayout(params))),
                "waits": Out(stream.Signature(WaitLayout(params))),
                "faults": Out(stream.Signature(FaultLayout(params))),
                "segment": Out(SegmentReadSignature(params)),
                "access": Out(ClearanceSignature(params)),
                "mm_registers": Out(stream.Signature(MultiplyRegistersLayout(params))),
                "load_registers": Out(stream.Signature(RangeLayout(params))),
                "loading_idle": In(1),
                "segment_written": In(1),
                "page_written": In(1),
                "idle": Out(1),
                **({"stopped": In(1), "wait_refused": In(1)} if cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.uniform = self._uniform
        m.submodules.verdict = self._verdict
        m.submodules.moved = self._moved
        m.submodules.reuse = self._reuse
        m.submodules.sender = sender = self.sender
        m.d.comb += [
            *(here.eq(self.i.payload.word[:4] == operation) for operation, here in self._is.items()),
            self.idle.eq(~self.i.valid),
            self.i.ready.eq(sender.sent | (self.faults.valid & self.faults.ready)),
        ]
        self._judge(m)
        self._send(m)
        self._describe(m)
        with m.FSM():
            self._start(m)
            self._issue_job(m)
            self._run_lanes(m)
            with m.State("WAIT"):
                m.d.comb += self.waits.valid.eq(1)
                with m.If(self.waits.ready):
                    m.d.sync += self._must_flush.eq(1)
                    m.next = "REPORT"
                    if self._cores > 1:
                        with m.If(self.wait_refused):
                            m.d.sync += self._fault.code.eq(PeError.STOPPED)
            with m.State("REPORT"):
                m.d.comb += self.faults.valid.eq(1)
                with m.If(self.faults.ready):
                    m.next = "START"
        with m.If(self.segment_written | self.page_written):
            m.d.sync += self._must_flush.eq(1)
        if self._cores > 1:
            with m.If(self.stopped):
                m.d.sync += self._must_flush.eq(1)
        return m

    def _judge(self, m):
        """Uniform register, segment and verdict."""
        decoded, uniform, verdict = self.i.payload, self._uniform, self._verdict
        mm = instruction_view(Operation.MM, decoded.word)
        m.d.comb += [
            uniform.number.eq(mm.ur),
            uniform.value.eq(mm.imm),
            self.segment.number.eq(Mux(self.starts, uniform.segment, self._segment)),
            verdict.decoded.eq(decoded),
            verdict.is_set.eq(self._is_set),
            verdict.exists.eq(self._exists),
            verdict.segment.eq(self.segment.entry),
        ]

    def _send(self, m):
        """What leaves for a job, and where its offsets are held."""
        decoded, sender, moved, reuse = self.i.payload, self.sender, self._moved, self._reuse
        mm = instruction_view(Operation.MM, decoded.word)
        mov_done = self.lane_operations.valid & self.lane_operations.ready & self._is[Operation.MOV]
        m.d.comb += [
            moved.word.eq(decoded.word),
            reuse.segment.eq(self._segment),
            reuse.first.eq(mm.rf),
            reuse.last.eq(mm.rf + self.segment.entry.rank),
            reuse.by_rows.eq(self._is[Operation.MM] & mm.transpose),
            reuse.forget.eq(self.segment_written),
            reuse.issued.eq(sender.sent),
            reuse.written.eq((sender.sent & ~self._is[Operation.ST]) | mov_done),
            reuse.written_first.eq(moved.o.first),
            reuse.written_last.eq(moved.o.last),
            sender.send.eq(self.sends),
            sender.decoded.eq(decoded),
            sender.is_mm.eq(self._is_mm),
            sender.is_ld.eq(self._is_ld),
            sender.segment_number.eq(self._segment),
            sender.segment.eq(self.segment.entry),
            sender.bases_set.eq(reuse.bases_set),
            sender.rebuild.eq(reuse.rebuild),
            sender.flush.eq(self._flush),
            sender.moved.eq(moved.o),
        ]
        join(m, sender=sender.jobs, jobs=flipped(self.jobs))
        join(m, sender=sender.multiplies, multiplies=flipped(self.multiplies))
        join(m, sender=sender.mm_registers, mm_registers=flipped(self.mm_registers))
        join(m, sender=sender.load_registers, load_registers=flipped(self.load_registers))

    def _start(self, m):
        """The state in which an instruction comes."""
        decoded, uniform = self.i.payload, self._uniform
        in_memory = Cat(self._is[operation] for operation in MEMORY_OPERATIONS).any()
        in_lanes = self._is[Operation.MOV] | self._is[Operation.SETP]
        begins = decoded.code == PeError.NONE
        with m.State("START"):
            m.d.comb += self.starts.eq(1)
            m.d.sync += [
                self._fault.code.eq(decoded.code),
                self._fault.register.eq(decoded.register),
                self._segment.eq(uniform.segment),
                self._is_set.eq(uniform.is_set),
                self._exists.eq(uniform.exists),
                self._is_mm.eq(self._is[Operation.MM]),
                self._is_ld.eq(self._is[Operation.LD]),
            ]
            if self._cores > 1:
                begins &= ~self.stopped
                with m.If(self.stopped):
                    m.d.sync += [self._fault.code.eq(PeError.STOPPED), self._fault.register.eq(0)]
            with m.If(self.i.valid):
                m.next = "REPORT"
                with m.If(begins):
                    with m.If(in_memory):
                        m.next = "CHECK"
                    with m.Elif(in_lanes):
                        m.next = "LANES"
                    with m.Elif(self._is[Operation.MOVU]):
                        m.d.comb += uniform.write.eq(1)
                    with m.Else():
                        m.next = "WAIT"

    def _issue_job(self, m):
        """The states of mm, ld and st."""
        access, verdict, moved, reuse = self.access, self._verdict.o, self._moved.o, self._reuse
        second = Signal()  # a store waits for the registers that it stores, a load for those that it writes
        with m.State("CHECK"):
            m.d.comb += self.prepares.eq(1)
            m.d.sync += [
                self._fault.eq(verdict),
                access.valid.eq(1),
                access.writes.eq(0),
                access.registers.first.eq(reuse.first),
                access.registers.last.eq(reuse.last),
                second.eq(0),
            ]
            m.next = "REPORT"
            with m.If(verdict.code == PeError.NONE):
                m.next = "FREE"
        with m.State("FREE"):
            m.d.comb += [self.prepares.eq(1), reuse.look.eq(1)]
            m.d.sync += self._flush.eq(self._must_flush)
            with m.If(access.clear):
                with m.If(~self._is_mm & ~second):
                    # Two ranges, one after the other.
                    m.d.sync += [second.eq(1), access.writes.eq(self._is_ld), access.registers.eq(moved)]
                with m.Else():
                    m.d.sync += self._must_flush.eq(0)
                    m.next = "SEND"
        with m.State("SEND"):
            m.d.comb += self.sends.eq(1)
            with m.If(self.sender.sent):
                m.next = "START"

    def _run_lanes(self, m):
        """The states of mov and setp."""
        access, setp = self.access, instruction_view(Operation.SETP, self.i.payload.word)
        with m.State("LANES"):
            m.d.sync += [
                access.valid.eq(self._is[Operation.MOV] | (setp.source == Source.GIVEN)),
                access.writes.eq(self._is[Operation.MOV]),
                access.registers.eq(self._moved.o),
            ]
            m.next = "LANES_FREE"
        with m.State("LANES_FREE"), m.If(access.clear & self.loading_idle):
            m.next = "LANES_RUN"
        with m.State("LANES_RUN"):
            m.d.comb += self.lane_operations.valid.eq(1)
            with m.If(self.lane_operations.ready):
                m.next = "REPORT"

    def _describe(self, m):
        """Payloads of what is not a job."""
        decoded, fault = self.i.payload, self._fault
        mov, setp, bar_wait = (
            instruction_view(op, decoded.word) for op in (Operation.MOV, Operation.SETP, Operation.BAR_WAIT)
        )
        lane_operation, wait, report = self.lane_operations.payload, self.waits.payload, self.faults.payload
        m.d.comb += [
            lane_operation.setp.eq(setp.opcode == Operation.SETP),
            lane_operation.source.eq(Mux(lane_operation.setp, setp.source, mov.source)),
            lane_operation.core.eq(mov.core),
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
