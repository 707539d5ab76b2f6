"""Every instruction ends once: as a job, with all that belongs to it, or with one item of faults.

In an engine with arithmetic, also as an operation; then Router is before Issue, which takes jobs while operations
pass. And in a core that is stopped and started at any time.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal, Value
from amaranth.lib.wiring import connect

from support.formal import Spec
from tilewright.hw.pe.arithmetic.router import Router
from tilewright.hw.pe.issue.decode import DecodedLayout, instruction_view
from tilewright.hw.pe.issue.issue import Issue
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.arithmetic import Operand
from tilewright.spec.pe import MEMORY_OPERATIONS, Operation, PeError
from tilewright.verify.formal import StreamRules, prove

UNIT = PE_PRESETS["unit"]
#: Arithmetic takes a mov or setp away from Issue.
SIZES = {"alone": UNIT.replace(units=()), "arithmetic": UNIT}


class IssueSpec(Spec):
    """Remembers which parts of the instruction that is executed have left, and whether the stop has refused it."""

    given, made = "i", "jobs multiplies lane_operations waits faults mm_registers load_registers"

    def __init__(self, params, cores):
        self.cores = cores
        self.dut = dut = Issue(params, cores)
        self.added = (dut.mm_registers, dut.load_registers)
        outputs = [dut.jobs, dut.multiplies, dut.waits, dut.faults, *self.added]
        if params.units:
            self.given, self.made = "", self.made.replace("lane_operations ", "")
            self.router = Router(params, cores)
        else:
            outputs.append(dut.lane_operations)
        self.outputs = outputs

    def specify(self, m, dut):
        self._assume_neighbours(m)

        decoded = Signal(DecodedLayout())
        m.d.comb += decoded.eq(Mux(dut.starts, dut.i.payload, dut.held))
        opcode = decoded.word[:8]
        with_arithmetic = hasattr(self, "router")
        known = [operation for operation in Operation if with_arithmetic or operation <= Operation.HALT]
        in_memory = Cat(opcode == operation for operation in MEMORY_OPERATIONS).any()
        given = dut.i.payload
        m.d.comb += [
            Assume((given.code != PeError.NONE) | Cat(given.word[:8] == operation for operation in known).any()),
            Assert(dut.starts | (decoded.code != PeError.NONE) | Cat(opcode == operation for operation in known).any()),
        ]
        job, multiply, wait, fault, mm_added, ld_added, *lanes = (port.valid & port.ready for port in self.outputs)
        add, lanes = mm_added | ld_added, Cat(lanes).any()
        ended, is_mm = Signal(), opcode == Operation.MM
        job_left, multiply_left, added, done = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [
            job_left.eq((job_left | job) & ~ended),
            multiply_left.eq((multiply_left | multiply) & ~ended),
            added.eq((added | add) & ~ended),
            done.eq((done | lanes | wait) & ~ended),
        ]
        stopped, refused = Signal(), Signal()
        m.d.comb += ended.eq(fault | (dut.sends & (job | job_left) & (multiply | multiply_left | ~is_mm)))
        m.d.comb += refused.eq((decoded.code != PeError.NONE) | (stopped & ~done))
        # What may be reported without an error although nothing has been done: movu, and what Kernels has executed.
        silent = opcode == Operation.MOVU
        if with_arithmetic:
            silent |= Cat(opcode == kind for kind in (Operation.CALL, Operation.LOOP, Operation.LOAD)).any()
            self._route(m, decoded, ended, fault)
            silent |= (opcode == Operation.ARITH) & decoded.by_uniform & (dut.faults.payload.code != PeError.NONE)
        if self.cores > 1:
            # The core is stopped when the instruction begins, or while it waits: then its report comes next.
            stops = (dut.starts & dut.i.valid & dut.stopped) | (wait & dut.wait_refused)
            m.d.sync += stopped.eq((stopped | stops) & ~ended)
            m.d.comb += [
                Assume(given.code != PeError.STOPPED),
                Assert(dut.starts | (decoded.code != PeError.STOPPED)),
                Assert(~stopped | dut.faults.valid),
                Assert(dut.starts | ((dut.faults.payload.code == PeError.STOPPED) == stopped)),
                Cover(ended & stopped & in_memory),
                Cover(ended & stopped & done),
                Cover(ended & is_mm & ~fault & dut.stopped),
            ]
        m.d.comb += [
            # An instruction is here while anything is done. It is accepted when it ends, or before.
            Assert(dut.i.valid | dut.starts | dut.holds),
            Assert(~dut.starts | ~Cat(job, multiply, lanes, wait, fault, add).any()),
            Assert((dut.i.valid & dut.i.ready) == (dut.takes if with_arithmetic else 0) | (ended & ~dut.holds)),
            # It ends with its job, or with its fault, and never has both.
            Assert(~fault | ~(job | job_left | multiply | multiply_left | add | added)),
            # No part leaves twice, or without the others.
            Assert(~((job & job_left) | (multiply & multiply_left) | (add & added))),
            Assert(~(job | multiply) | (opcode == Operation.ST) | add | added),
            Assert(~multiply | is_mm),
            # A refused instruction has no effect; another is a job if it accesses memory, and otherwise is done first.
            Assert(~(job | multiply | add | lanes | wait) | ~refused),
            Assert(~(job | multiply | add) | in_memory),
            Assert(~(lanes | wait) | ~in_memory),
            Assert(~(fault & in_memory) | (dut.faults.payload.code != PeError.NONE)),
            Assert(~(lanes | wait) | ~done),
            Assert(~fault | in_memory | refused | done | silent),
            Assert(~job | (dut.jobs.payload.number == decoded.number)),
            Assert(~fault | (dut.faults.payload.number == decoded.number)),
            # State and kind of the instruction.
            Assert(dut.starts | (dut.is_mm == (decoded.word[:4] == Operation.MM))),
            Assert(dut.starts | (dut.is_ld == (decoded.word[:4] == Operation.LD))),
            Assert((job_left == dut.job_sent) & (multiply_left == dut.multiply_sent)),
            Assert(added == dut.added),
            Assert(~(job_left | multiply_left | added) | dut.sends),
            Assert(~(dut.prepares | dut.sends) | (in_memory & ~refused)),
            Assert(dut.starts | dut.prepares | dut.sends | dut.faults.valid | ~(in_memory | refused)),
            Assert(~dut.faults.valid | ~in_memory | (dut.faults.payload.code != PeError.NONE)),
            Assert(~dut.faults.valid | in_memory | refused | done | silent),
            Assert(~done | dut.faults.valid),
            Cover(ended & is_mm & job & multiply_left),
            Cover(ended & is_mm & (dut.faults.payload.code == PeError.SEGMENT)),
        ]
        if not with_arithmetic:
            m.d.comb += Cover(ended & (opcode == Operation.SETP) & ~refused)

    def _route(self, m, executed_now, ended, fault):
        """An instruction at Router ends as an operation, has ended already, is taken, or ends in Issue."""
        dut, router = self.dut, self.router
        m.submodules.router, m.submodules.router_rules = router, StreamRules(router.i, assume=True)
        connect(m, router=router.others, issue=dut.i)
        decoded, accepted, passes, before = router.i.payload, Signal(), Signal(), Signal()
        arith = instruction_view(Operation.ARITH, decoded.word)
        is_a = {operation: arith.opcode == operation for operation in Operation}
        computes = is_a[Operation.ARITH] | is_a[Operation.MOV] | is_a[Operation.SETP]
        loops = is_a[Operation.LOOP]
        executed = is_a[Operation.CALL] | is_a[Operation.RETURN] | is_a[Operation.END] | (
            loops & (arith.b == Operand.IMMEDIATE)
        )  # fmt: skip
        right = decoded.code == PeError.NONE
        in_memory = Cat(arith.opcode == operation for operation in MEMORY_OPERATIONS).any()
        stopped = dut.stopped if self.cores > 1 else 0
        now = instruction_view(Operation.ARITH, executed_now.word).opcode  # of the instruction in Issue
        taken = Signal()  # an instruction has been taken, and has not ended
        m.d.sync += taken.eq((taken | dut.takes) & ~ended)
        refuses = fault & ~dut.holds
        m.d.comb += [
            router.rests.eq(dut.rests),
            router.turn.eq(dut.turn),
            router.uniform_set.eq(dut.uniform_set),
            router.uniform.eq(dut.uniform),
            # As the decoder finds them. Outside kernels a RETURN, LOOP or END has an error.
            Assume(decoded.arithmetic == (computes & right)),
            Assume(decoded.done == (executed & decoded.inside & right)),
            Assume(decoded.job == (in_memory & right)),
            Assume(decoded.by_uniform == ((is_a[Operation.ARITH] | loops) & (arith.b == Operand.UNIFORM))),
            Assume(decoded.inside | ~right | ~(is_a[Operation.RETURN] | loops | is_a[Operation.END])),
            Assume(~loops | ~right | (arith.b != Operand.REGISTER)),
            # An operation of another turn waits only if the turn has changed since it was accepted.
            accepted.eq(router.operations.valid & router.operations.ready),
            Assume(~dut.arithmetic_pending | before),
            # An instruction is taken in its first cycle, and then the next one is at the input.
            Assert(dut.holds == taken),
            Assert(~dut.takes | (dut.starts & in_memory & right & ~stopped)),
            Assert(dut.starts | dut.holds | (executed_now.as_value() == decoded.as_value())),
            Assert(~(dut.prepares | dut.sends) | dut.holds),
            Assert(~dut.starts | ~dut.holds),
            Assert(~dut.holds | (executed_now.job & (executed_now.code == PeError.NONE))),
            Assert(~dut.holds | Cat(now == operation for operation in MEMORY_OPERATIONS).any()),
            Assert(dut.issuing == (dut.prepares | dut.sends)),
            # It ends in one place.
            passes.eq(router.i.valid & router.passes),
            Assert((router.i.valid & router.i.ready) == (passes | dut.takes | (ended & ~dut.holds))),
            Assert(~passes | ((dut.starts | dut.holds) & ~dut.takes & (~ended | dut.holds))),
            Assert(~accepted | (router.operations.payload.turn == dut.turn)),
            Assert(~accepted | (passes & computes & right & ~stopped)),
            Assert(~passes | accepted | (executed & right & ~stopped)),
            # Issue refuses what should have been an operation.
            Assert(~dut.faults.valid | dut.holds | ~computes | (dut.faults.payload.code != PeError.NONE)),
            Assert(~dut.waits.valid | is_a[Operation.BAR_WAIT] | is_a[Operation.FENCE] | is_a[Operation.HALT]),
            # No job is issued, and none ends with an error, while an operation before it waits.
            Assert(~(dut.sends | (dut.holds & dut.faults.valid)) | ~dut.arithmetic_pending),
            Cover(accepted & dut.sends),
            Cover(accepted & dut.holds & dut.faults.valid),
            Cover(refuses & computes & right & ~decoded.by_uniform) if self.cores > 1 else Cover(
                refuses & computes & right & decoded.by_uniform
            ),
        ]  # fmt: skip
        m.d.sync += before.eq(dut.takes | dut.arithmetic_pending)
        if self.cores > 1:
            m.d.comb += router.stopped.eq(dut.stopped)

    def _assume_neighbours(self, m):
        """A segment's entry depends on its number alone, and the scoreboard stays ready until an item is added."""
        dut = self.dut
        number, before = Signal.like(dut.segment.number), Signal.like(dut.segment.number)
        entry = Signal(len(Value.cast(dut.segment.entry)))
        m.d.sync += [number.eq(dut.segment.number), before.eq(number), entry.eq(dut.segment.entry)]
        for port in self.added:
            waits = Signal()
            m.d.sync += waits.eq(port.ready & ~port.valid)
            m.d.comb += Assume(~waits | port.ready)
        m.d.comb += Assume((number != before) | (Value.cast(dut.segment.entry) == entry))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cores", [1, 2])
def test_every_instruction_ends_once(cores, size):
    prove(IssueSpec(SIZES[size], cores), name=f"issue-{size}-{cores}", depth=3)


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cores", [1, 2])
def test_ends_are_reached(cores, size):
    prove(IssueSpec(SIZES[size], cores), name=f"issue-{size}-{cores}-cover", mode="cover", depth=12)
