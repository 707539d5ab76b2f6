"""Every instruction ends once: as a job, with all that belongs to it, or with one item of faults.

Also in a core that is stopped and started at any time.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Signal, Value

from support.formal import Spec
from tilewright.hw.pe.issue.issue import Issue
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.pe import MEMORY_OPERATIONS, Operation, PeError
from tilewright.verify.formal import prove

#: Without arithmetic, which takes a mov or setp away from Issue.
PARAMS = PE_PRESETS["unit"].replace(units=())


class IssueSpec(Spec):
    """Remembers which parts of the instruction at the input have left, and whether the stop has refused it."""

    given, made = "i", "jobs multiplies lane_operations waits faults mm_registers load_registers"

    def __init__(self, cores):
        self.cores = cores
        self.dut = dut = Issue(PARAMS, cores)
        self.added = (dut.mm_registers, dut.load_registers)
        self.outputs = (dut.jobs, dut.multiplies, dut.lane_operations, dut.waits, dut.faults, *self.added)

    def specify(self, m, dut):
        self._assume_neighbours(m)

        decoded = dut.i.payload
        opcode = decoded.word[:8]
        known = [operation for operation in Operation if operation <= Operation.HALT]
        in_memory = Cat(opcode == operation for operation in MEMORY_OPERATIONS).any()
        m.d.comb += Assume((decoded.code != PeError.NONE) | Cat(opcode == operation for operation in known).any())
        job, multiply, lanes, wait, fault, *adds = (port.valid & port.ready for port in self.outputs)
        add = Cat(adds).any()
        ended = dut.i.valid & dut.i.ready
        job_left, multiply_left, added, done = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [
            job_left.eq((job_left | job) & ~ended),
            multiply_left.eq((multiply_left | multiply) & ~ended),
            added.eq((added | add) & ~ended),
            done.eq((done | lanes | wait) & ~ended),
        ]
        is_mm, stopped, refused = opcode == Operation.MM, Signal(), Signal()
        m.d.comb += refused.eq((decoded.code != PeError.NONE) | (stopped & ~done))
        if self.cores > 1:
            # The core is stopped when the instruction begins, or while it waits: then its report comes next.
            stops = (dut.starts & dut.i.valid & dut.stopped) | (wait & dut.wait_refused)
            m.d.sync += stopped.eq((stopped | stops) & ~ended)
            m.d.comb += [
                Assume(decoded.code != PeError.STOPPED),
                Assert(~stopped | dut.faults.valid),
                Assert(dut.starts | ((dut.faults.payload.code == PeError.STOPPED) == stopped)),
                Cover(ended & stopped & in_memory),
                Cover(ended & stopped & done),
                Cover(ended & is_mm & ~fault & dut.stopped),
            ]
        m.d.comb += [
            # An instruction is here while anything is done.
            Assert(dut.i.valid | dut.starts),
            Assert(dut.i.valid | ~Cat(job, multiply, lanes, wait, fault, add).any()),
            # It ends with its job, or with its fault, and never has both.
            Assert(ended == (fault | (dut.sends & (job | job_left) & (multiply | multiply_left | ~is_mm)))),
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
            Assert(~fault | in_memory | refused | done | (opcode == Operation.MOVU)),
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
            Assert(~dut.faults.valid | in_memory | refused | done | (opcode == Operation.MOVU)),
            Assert(~done | dut.faults.valid),
            Cover(ended & is_mm & job & multiply_left),
            Cover(ended & is_mm & (dut.faults.payload.code == PeError.SEGMENT)),
            Cover(ended & (opcode == Operation.SETP) & ~refused),
        ]

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


@pytest.mark.parametrize("cores", [1, 2])
def test_every_instruction_ends_once(cores):
    prove(IssueSpec(cores), name=f"issue-{cores}", depth=3)


@pytest.mark.long
@pytest.mark.parametrize("cores", [1, 2])
def test_ends_are_reached(cores):
    prove(IssueSpec(cores), name=f"issue-{cores}-cover", mode="cover", depth=12)
