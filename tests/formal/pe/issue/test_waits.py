"""A wait is over when its condition holds, or at the first answer of a barrier in a core that is stopped."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Signal

from tilewright.hw.pe.issue.waits import Waits
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.pe import Operation
from tilewright.verify.formal import StreamRules, prove


class WaitsSpec(Elaboratable):
    """A barrier answers each request once; the core is stopped and started at any time."""

    def __init__(self, cores):
        self.dut = dut = Waits(PE_PRESETS["unit"], cores)
        self.cores = cores
        self.ports = [dut.i.valid, dut.i.payload, dut.quiet, dut.barriers.ready, dut.barrier_results.valid]
        self.ports += [dut.barrier_results.payload, *([dut.stopped] if cores > 1 else [])]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        m.submodules.barriers_rules = StreamRules(dut.barriers)
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
        return m


@pytest.mark.parametrize("cores", [1, 2])
def test_waits(cores):
    spec = WaitsSpec(cores)
    prove(spec, spec.ports, name=f"waits-{cores}", depth=3)
    prove(spec, spec.ports, name=f"waits-{cores}-cover", mode="cover", depth=8)
