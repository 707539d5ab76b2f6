"""Issue: instructions leave in program order, each when the registers that it needs are free."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MEMORY_OPERATIONS, Operation, PeError, Source

from ..layouts import FaultLayout, JobKind, JobLayout, MultiplyLayout, SegmentReadSignature
from .decode import DecodedLayout, ErrorLayout, instruction_view, memory_error, moved_registers, uniform_registers
from .kernels import LoopCountLayout
from .lane_ops import LaneOperationLayout
from .offsets import OffsetReuse
from .scoreboard import ClearanceSignature, JobReadsLayout, MultiplyRegistersLayout, RangeLayout
from .waits import WaitLayout

__all__ = ["Issue"]


class Issue(wiring.Component):
    """Performs the checks that need more than the instruction word, and sends instructions to the blocks for them.

    An mm takes four cycles if nothing blocks it: uniform register; segment; registers free; job. An ld or st takes
    five, because it has two ranges of registers. Every instruction either becomes a job, whose faults are reported
    elsewhere, or ends here with one item of ``faults``. ``multiplies`` has one item for each job of an mm, in the same
    order.

    An mm or ld is entered in the scoreboard; in the same cycle or later, its job and the multiply of an mm are sent.

    With arithmetic an mm, ld or st without an error of its word is *taken* in its first cycle. Operations that follow
    pass it, unless they use its registers (Scoreboard). It still waits until all operations before it have started.
    ``turn`` tells these from those: it changes when an instruction is taken, and each operation carries its value.

    Attributes
    ----------
    starts, prepares, sends : Signal
        State of a job: not started, not ready, being sent; for proofs.
    is_mm, is_ld, added, job_sent, multiply_sent : Signal
        Kind of the instruction, and which parts of it have been sent; for proofs.
    holds, held : Signal
        An instruction has been taken; the instruction that is executed, from its second cycle on; for proofs.
    """

    def __init__(self, params, cores=1):
        self._params, self._cores = params, cores
        self.starts, self.prepares, self.sends = Signal(), Signal(), Signal()
        self.added, self.job_sent, self.multiply_sent = Signal(), Signal(), Signal()
        self._sent = Signal()  # the last part of a job is sent
        self._is = {operation: Signal(name=f"is_{operation.name.lower()}") for operation in Operation}
        self.is_mm, self.is_ld = Signal(), Signal()  # registered copies, because late signals depend on them
        self.holds, self.held = Signal(), Signal(DecodedLayout())
        self._error = Signal(ErrorLayout())
        # Segment that the instruction names:
        self._segment, self._is_set, self._exists = Signal(params.segment_width), Signal(), Signal()
        self._flush, self._must_flush = Signal(), Signal(init=1)
        super().__init__(
            {
                # Accepted when the instruction has left, or is taken.
                "i": In(stream.Signature(DecodedLayout())),
                "jobs": Out(stream.Signature(JobLayout(params))),
                "multiplies": Out(stream.Signature(MultiplyLayout(params))),
                # Without arithmetic: a mov or setp when its registers are free; accepted when it is done.
                **({} if params.units else {"lane_operations": Out(stream.Signature(LaneOperationLayout(params)))}),
                **(self._beside_arithmetic(params) if params.units else {}),
                "waits": Out(stream.Signature(WaitLayout(params))),  # accepted when the wait is over
                "faults": Out(stream.Signature(FaultLayout(params))),
                # The segment of a job is its entry: it must not be written while an instruction uses it.
                "segment": Out(SegmentReadSignature(params)),
                # Registers that the instruction reads and writes, other than factors and accumulators. Registered.
                # ``clear`` must remain set until an mm or ld is entered.
                "access": Out(ClearanceSignature(params)),
                # Registers of each mm and ld, not later than its job. ``ready`` must remain set until one is entered.
                "mm_registers": Out(stream.Signature(MultiplyRegistersLayout(params))),
                "load_registers": Out(stream.Signature(RangeLayout(params))),
                # No job's registers or predicates are still to be read. Low from the cycle after a job is accepted.
                "loading_idle": In(1),
                "segment_written": In(1),  # strobe
                "page_written": In(1),  # strobe
                "idle": Out(1),  # no instruction is in this block
                # In a cluster. stopped: an instruction that has not started is refused. wait_refused: with ``waits``,
                # the wait ended because the core is stopped.
                **({"stopped": In(1), "wait_refused": In(1)} if cores > 1 else {}),
            }
        )

    @staticmethod
    def _beside_arithmetic(params):
        """Ports of an engine with arithmetic, to which the instruction at ``i`` may go instead."""
        return {
            "rests": Out(1),  # the instruction at ``i`` has not begun here
            "takes": Out(1),  # strobe: it is taken
            "turn": Out(1),  # changes after ``takes``
            "issuing": Out(1),  # an instruction that was taken has not been sent; its registers are in ``job_reads``
            "uniform_set": Out(1),  # the uniform register that it names is set
            "uniform": Out(32),  # what is in it
            "arithmetic_pending": In(1),  # an operation of another turn has not started
            "arithmetic_quiet": In(1),  # no result of the arithmetic is in flight
            "written": In(1),  # strobe: the arithmetic will write this register
            "written_register": In(params.reg_width),
            "job_reads": Out(JobReadsLayout(params)),
            "job_issued": Out(1),  # strobe
            "loop_count": Out(LoopCountLayout()),
        }

    def elaborate(self, platform):
        m = Module()
        decoded, units = self.i.payload, bool(self._params.units)
        mm = instruction_view(Operation.MM, decoded.word)
        m.submodules.reuse = self._reuse = OffsetReuse(self._params)
        self._movu = Signal()  # strobe: a movu writes its uniform register
        number = mm.ur
        if self._params.units:
            number = Mux(decoded.by_uniform, instruction_view(Operation.ARITH, decoded.word).rb, mm.ur)
        self._uniform = uniform_registers(m, self._params, number=number, write=self._movu, value=mm.imm)
        if units:
            with m.If(self.starts):
                m.d.sync += self.held.eq(decoded)
                self._moved = moved_registers(m, self._params, decoded.word)
        else:
            m.d.comb += self.held.eq(decoded)
            self._moved = moved_registers(m, self._params, decoded.word)
        self._memory_error = memory_error(
            m, self.held, is_set=self._is_set, exists=self._exists, segment=self.segment.entry
        )
        ended = self.faults.valid & self.faults.ready
        m.d.comb += [
            *(is_operation.eq(decoded.word[:4] == operation) for operation, is_operation in self._is.items()),
            self.idle.eq(~self.i.valid & self.starts if units else ~self.i.valid),
            self.i.ready.eq(self.takes | (ended & ~self.holds) if units else self._sent | ended),
            self.segment.number.eq(Mux(self.starts, self._uniform.segment, self._segment)),
        ]
        if units:
            stopped = self.stopped if self._cores > 1 else 0
            m.d.comb += self.takes.eq(self.starts & self.i.valid & decoded.job & ~stopped)
            m.d.sync += self.holds.eq(self.takes | (self.holds & ~self._sent & ~ended))
            m.d.sync += self.turn.eq(self.turn ^ self.takes)
            m.d.comb += [
                self.rests.eq(self.starts | self.holds),
                self.issuing.eq(self.prepares | self.sends),
                self.uniform_set.eq(self._uniform.is_set),
                self.uniform.eq(self._uniform.number),
            ]
        held = instruction_view(Operation.MM, self.held.word)
        self._reuse_offsets(m, held)
        self._send(m, held)
        self._describe(m)
        with m.FSM():
            self._start(m)
            self._issue_job(m)
            if not self._params.units:
                self._run_lanes(m)
            with m.State("WAIT"):
                m.d.comb += self.waits.valid.eq(1)
                with m.If(self.waits.ready):
                    m.d.sync += self._must_flush.eq(1)
                    m.next = "REPORT"
                    if self._cores > 1:
                        with m.If(self.wait_refused):
                            m.d.sync += self._error.code.eq(PeError.STOPPED)
            with m.State("REPORT"):
                m.d.comb += self.faults.valid.eq(1)
                with m.If(self.faults.ready):
                    m.next = "START"
        changed = self.segment_written | self.page_written
        if self._cores > 1:
            changed |= self.stopped
        with m.If(changed):
            m.d.sync += self._must_flush.eq(1)
        return m

    def _reuse_offsets(self, m, mm):
        reuse = self._reuse
        moves = self._sent & (self.is_mm | self.is_ld)
        if self._params.units:
            m.d.comb += [reuse.operation.eq(self.written), reuse.operation_register.eq(self.written_register)]
        else:
            moves |= self.lane_operations.valid & self.lane_operations.ready & self._is[Operation.MOV]
        m.d.comb += [
            reuse.offsets.segment.eq(self._segment),
            reuse.offsets.by_rows.eq(self.is_mm & mm.transpose),
            reuse.offsets.first.eq(mm.rf),
            reuse.offsets.last.eq(mm.rf + self.segment.entry.rank),
            reuse.forget.eq(self.segment_written),
            reuse.issued.eq(self._sent),
            reuse.written.eq(moves),
            reuse.written_first.eq(self._moved.first),
            reuse.written_last.eq(self._moved.last),
        ]

    def _send(self, m, mm):
        """Sends all parts of a job."""
        is_mm, is_ld, adds, may_send = self.is_mm, self.is_ld, Signal(), Signal()
        job, multiply, mm_registers, load_registers = self.jobs, self.multiplies, self.mm_registers, self.load_registers
        m.d.comb += [
            mm_registers.valid.eq(self.sends & is_mm & ~self.added),
            load_registers.valid.eq(self.sends & is_ld & ~self.added),
            adds.eq((mm_registers.valid & mm_registers.ready) | (load_registers.valid & load_registers.ready)),
            may_send.eq(self.sends & (self.added | adds | ~(is_mm | is_ld))),
            job.valid.eq(may_send & ~self.job_sent),
            multiply.valid.eq(may_send & is_mm & ~self.multiply_sent),
            self._sent.eq(may_send & (self.job_sent | job.ready) & (self.multiply_sent | multiply.ready | ~is_mm)),
        ]
        m.d.sync += [
            self.added.eq((self.added | adds) & ~self._sent),
            self.job_sent.eq((self.job_sent | (job.valid & job.ready)) & ~self._sent),
            self.multiply_sent.eq((self.multiply_sent | (multiply.valid & multiply.ready)) & ~self._sent),
        ]
        ld, factors = instruction_view(Operation.LD, self.held.word), mm_registers.payload.factors
        names = ("rf", "imm", "guard", "predicate", "ka", "kb", "transpose")
        m.d.comb += [
            job.payload.kind.eq(Mux(is_mm, JobKind.MULTIPLY, Mux(is_ld, JobKind.LOAD, JobKind.STORE))),
            job.payload.number.eq(self.held.number),
            job.payload.inside.eq(self.held.inside),
            *([job.payload.element.eq(ld.element & ~is_mm)] if self._params.units else []),
            job.payload.segment.eq(self.segment.entry),
            job.payload.segment_number.eq(self._segment),
            job.payload.register.eq(mm.rc),
            job.payload.count.eq(ld.n),
            job.payload.bases_set.eq(self._reuse.bases_set),
            job.payload.rebuild.eq(self._reuse.rebuild),
            job.payload.flush.eq(self._flush),
            *(job.payload[name].eq(mm[name]) for name in names),
            *(multiply.payload[name].eq(mm[name]) for name in multiply.payload.shape().members),
            mm_registers.payload.accumulators.eq(self._moved),
            factors.first.eq(mm.ra),
            factors.last.eq(mm.ra + self._params.factor_regs - 1),
            load_registers.payload.eq(self._moved),
        ]
        if self._params.units:
            reads = self.job_reads
            m.d.comb += [
                self.job_issued.eq(self._sent),
                reads.offsets.first.eq(mm.rf),
                reads.offsets.last.eq(mm.rf + self.segment.entry.rank),
                reads.stores.eq(~self.is_mm & ~self.is_ld),
                reads.moved.eq(self._moved),
                reads.guard.eq(mm.guard),
                reads.predicate.eq(mm.predicate),
            ]

    def _start(self, m):
        """The state in which an instruction starts."""
        decoded, uniform = self.i.payload, self._uniform
        in_memory = Cat(self._is[operation] for operation in MEMORY_OPERATIONS).any()
        in_lanes = self._is[Operation.MOV] | self._is[Operation.SETP]
        accepted = decoded.code == PeError.NONE
        with m.State("START"):
            m.d.comb += self.starts.eq(1)
            m.d.sync += [
                self._error.code.eq(decoded.code),
                self._error.register.eq(decoded.register),
                self._segment.eq(uniform.segment),
                self._is_set.eq(uniform.is_set),
                self._exists.eq(uniform.exists),
                self.is_mm.eq(self._is[Operation.MM]),
                self.is_ld.eq(self._is[Operation.LD]),
            ]
            if self._cores > 1:
                accepted &= ~self.stopped
                with m.If(self.stopped):
                    m.d.sync += [self._error.code.eq(PeError.STOPPED), self._error.register.eq(0)]
            if self._params.units:
                accepted &= self._check_uniform(m, accepted)
            waits = Cat(self._is[operation] for operation in (Operation.BAR_WAIT, Operation.FENCE, Operation.HALT))
            with m.If(self.i.valid):
                m.next = "REPORT"
                with m.If(accepted):
                    with m.If(in_memory):
                        m.next = "CHECK"
                    if not self._params.units:
                        with m.If(in_lanes):
                            m.next = "LANES"
                    with m.If(self._is[Operation.MOVU]):
                        m.d.comb += self._movu.eq(1)
                    with m.If(waits.any()):
                        m.next = "WAIT"

    def _check_uniform(self, m, accepted):
        """Errors of a uniform register that is an operand, and the rounds of a loop. Returns whether there is none."""
        decoded, uniform = self.i.payload, self._uniform
        arith = instruction_view(Operation.ARITH, decoded.word)
        loops = self._is[Operation.LOOP] & decoded.by_uniform
        later = (decoded.code == PeError.NONE) | (decoded.code == PeError.REGISTER) | (decoded.code == PeError.CONTROL)
        unset, empty = Signal(), Signal()
        m.d.comb += [
            unset.eq(decoded.by_uniform & ~uniform.is_set & later),
            empty.eq(loops & (decoded.code == PeError.NONE) & (uniform.number == 0)),
            self.loop_count.valid.eq(self.i.valid & loops),
            self.loop_count.count.eq(Mux(accepted & ~unset, uniform.number, 0)),
        ]
        stopped = self.stopped if self._cores > 1 else Const(0)
        with m.If(unset & ~stopped):
            m.d.sync += [self._error.code.eq(PeError.UNIFORM), self._error.register.eq(arith.rb)]
        with m.Elif(empty & ~stopped):
            m.d.sync += [self._error.code.eq(PeError.CONTROL), self._error.register.eq(decoded.index)]
        return ~unset & ~empty

    def _issue_job(self, m):
        """The states of mm, ld and st."""
        access, error, offsets = self.access, self._memory_error, self._reuse.offsets
        second = Signal()  # a store waits for the registers that it stores, a load for those that it writes
        third = Signal()
        with m.State("CHECK"):
            m.d.comb += self.prepares.eq(1)
            m.d.sync += [
                self._error.eq(error),
                access.valid.eq(1),
                access.writes.eq(0),
                access.registers.first.eq(offsets.first),
                access.registers.last.eq(offsets.last),
                second.eq(0),
                third.eq(0),
                *([access.results_only.eq(0)] if self._params.units else []),
            ]
            with m.If(error.code == PeError.NONE):
                m.next = "FREE"
            # A turn ends when no operation of the one before is left.
            with m.Elif(~self.arithmetic_pending if self._params.units else 1):
                m.next = "REPORT"
        with m.State("FREE"):
            m.d.comb += [self.prepares.eq(1), self._reuse.look.eq(1)]
            m.d.sync += self._flush.eq(self._must_flush)
            clear = access.clear
            if self._params.units:
                clear &= ~self.arithmetic_pending
            with m.If(clear):
                with m.If(~self.is_mm & ~second):
                    # Two ranges, one after the other.
                    m.d.sync += [second.eq(1), access.writes.eq(self.is_ld), access.registers.eq(self._moved)]
                if self._params.units:
                    with m.Elif(self.is_mm & ~self.arithmetic_quiet & ~(second & third)):
                        # Two more, if a result is in flight: factors and accumulators.
                        ranges = self.mm_registers.payload
                        m.d.sync += [second.eq(1), third.eq(second), access.results_only.eq(1)]
                        m.d.sync += access.registers.eq(Mux(second, ranges.accumulators, ranges.factors))
                with m.Else():
                    m.d.sync += self._must_flush.eq(0)
                    m.next = "SEND"
        with m.State("SEND"):
            m.d.comb += self.sends.eq(1)
            with m.If(self._sent):
                m.next = "START"

    def _run_lanes(self, m):
        """The states of mov and setp."""
        access, setp = self.access, instruction_view(Operation.SETP, self.i.payload.word)
        with m.State("LANES"):
            m.d.sync += [
                access.valid.eq(self._is[Operation.MOV] | (setp.source == Source.GIVEN)),
                access.writes.eq(self._is[Operation.MOV]),
                access.registers.eq(self._moved),
            ]
            m.next = "LANES_FREE"
        with m.State("LANES_FREE"), m.If(access.clear & self.loading_idle):
            m.next = "LANES_RUN"
        with m.State("LANES_RUN"):
            m.d.comb += self.lane_operations.valid.eq(1)
            with m.If(self.lane_operations.ready):
                m.next = "REPORT"

    def _describe(self, m):
        """Payloads of instructions that are not jobs."""
        decoded, error = self.held, self._error
        mov, setp, bar_wait = (
            instruction_view(op, decoded.word) for op in (Operation.MOV, Operation.SETP, Operation.BAR_WAIT)
        )
        wait, report = self.waits.payload, self.faults.payload
        if not self._params.units:
            lane_operation = self.lane_operations.payload
            m.d.comb += [
                lane_operation.setp.eq(setp.opcode == Operation.SETP),
                lane_operation.source.eq(Mux(lane_operation.setp, setp.source, mov.source)),
                lane_operation.core.eq(mov.core),
                lane_operation.register.eq(setp.rs),
                lane_operation.target.eq(setp.pd),
                *(lane_operation[name].eq(setp[name]) for name in ("imm", "compare", "guard", "predicate")),
            ]
        m.d.comb += [
            wait.operation.eq(decoded.word),
            wait.address.eq(bar_wait.imm),
            wait.parity.eq(bar_wait.parity),
            report.code.eq(error.code),
            report.number.eq(decoded.number),
            report.inside.eq(decoded.inside),
            report.register.eq(error.register),
            report.last.eq(Mux(error.code == PeError.NONE, 0, self._params.threads - 1)),
        ]
