"""A wait is over when its condition holds, or at the first answer of a barrier in a core that is stopped."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Signal

from support.formal import Spec
from tilewright.hw.pe.issue.waits import Waits
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.pe import Operation
from tilewright.verify.formal import prove


class WaitsSpec(Spec):
    """A barrier answers each request once; the core is stopped and started at any time."""

    given, made = "i", "barriers"

    def __init__(self, cores):
        self.dut = Waits(PE_PRESETS["unit"], cores)
        self.cores = cores

    def specify(self, m, dut):
        asks = dut.barriers.valid & dut.barriers.ready
        answers = dut.barrier_results.valid & dut.barrier_results.ready
        asked, at_barrier = Signal(), Signal()
        m.d.sync += asked.eq((asked | asks) & ~answers)
        stopped, refused = (dut.stopped, dut.refused) if self.cores > 1 else (0, 0)
        accepted = dut.i.valid & dut.i.ready
        done = dut.barrier_results.payload.done
        operation = dut.i.payload.operation
        m.d.comb += [
            Assume(~dut.barrier_results.valid | asked),
            Assume(Cat(operation == kind for kind in (Operation.BAR_WAIT, Operation.FENCE, Operation.HALT)).any()),
            at_barrier.eq(operation == Operation.BAR_WAIT),
            Assert((dut.rests + dut.barriers.valid + dut.awaits == 1) & (dut.awaits == asked)),
            # One question at a time, of a wait that is here; nothing else is asked.
            Assert(~dut.barriers.valid | (dut.i.valid & at_barrier & ~asked)),
            Assert(~asked | (dut.i.valid & at_barrier)),
            Assert(dut.barrier_results.ready),
            # When it is over: bar.wait with an answer, and any in a core that is stopped; others when all is quiet.
            Assert(~at_barrier | (accepted == (answers & (done | stopped)))),
            Assert(at_barrier | (accepted == (dut.i.valid & dut.quiet))),
            Assert(dut.halted == (accepted & (operation == Operation.HALT))),
            # Refused are those alone whose phase is not complete.
            Assert(refused == (answers & stopped & ~done)),
            Cover(accepted & at_barrier & done),
        ]
        if self.cores > 1:
            m.d.comb += Cover(accepted & refused)


@pytest.mark.parametrize("cores", [1, 2])
def test_waits(cores):
    prove(WaitsSpec(cores), name=f"waits-{cores}", depth=3)
    prove(WaitsSpec(cores), name=f"waits-{cores}-cover", mode="cover", depth=8)
