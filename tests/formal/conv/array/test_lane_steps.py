"""Lane-private mode: what is read has been written and is not freed, and nothing is freed before it is there.

With the proof of requests, which keeps what is asked for within a round of what is freed, no word that is still to be
read is written over. Sizes are small; when anything comes is anything.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Signal

from tilewright.golden.spec.conv.params import CONV_PRESETS, KERNEL_ROWS
from tilewright.hw.conv.array.lane_steps import LaneSteps
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.formal import StreamRules, prove

PARAMS = ConvUnitParams(CONV_PRESETS["unit"].replace(weight_bytes=256), SmemParams(1024))
_LASTS = ("last_step", "last_kernel_row", "last_group", "last_line", "last_image", "last_pass")


class LaneStepsSpec(Elaboratable):
    """One job, which begins in the first cycle."""

    def __init__(self):
        self.dut = dut = LaneSteps(PARAMS)
        self.stride, self.dilation = Signal(2), Signal(2)
        self.ports = [dut.start, dut.plan, dut.written, dut.written_kernel, dut.o.ready, self.stride, self.dilation]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        plan, stride, dilation = dut.plan, self.stride, self.dilation
        m.submodules.rules = StreamRules(dut.o)
        begun = Signal()
        m.d.sync += begun.eq(1)
        m.d.comb += Assume(dut.start == ~begun)

        # The plan is that of a job whose lines fit, and stays.
        for value in (plan.as_value(), stride, dilation):
            before = Signal.like(value)
            m.d.sync += before.eq(value)
            m.d.comb += Assume(~begun | (value == before))
        of_line, between = Signal(6), Signal(6)
        m.d.comb += [
            *(Assume(plan[name] < 2) for name in _LASTS),
            Assume((stride != 0) & (dilation != 0) & plan.kernel_stays),
            of_line.eq((plan.last_step + 1) * (plan.last_group + 1)),
            between.eq(plan.last_kernel_row * dilation),
            Assume(plan.row_words == dilation * of_line),
            Assume(plan.line_words == stride * of_line),
            Assume(plan.image_words == (between + 1) * of_line),
            Assume(~plan.keeps | ((stride <= between) & ((between + 1 + stride) * of_line <= PARAMS.words))),
        ]

        taken = dut.o.valid & dut.o.ready
        for written, freed, now, used, many in (
            (dut.written, dut.freed, dut.word, 1, PARAMS.words),
            (dut.written_kernel, dut.freed_kernel, dut.row, ~plan.pool, KERNEL_ROWS),
        ):
            size, was, was_freed, more = (Signal.like(freed) for _ in range(4))
            m.d.sync += [was.eq(written), was_freed.eq(freed)]
            m.d.comb += [
                size.eq(written - freed),
                more.eq(freed - was_freed),
                Assume(begun | (written == 0)),
                # What is written goes on, as far as there is room.
                Assume(size <= many),
                Assume(~begun | ((written - was)[: len(was)] <= many)),
                Assume(~begun | ((was - freed)[: len(was)] <= size)),
                Assert(~(taken & used) | ((now - freed)[: len(now)] < size)),
                Assert(~begun | (more <= (was - was_freed)[: len(was)])),
            ]
        m.d.comb += Cover(begun & ~dut.running & plan.keeps & (plan.last_line == 1) & (plan.last_kernel_row == 1))
        return m


# The shortest job that is covered ends in step 5. Each cycle more takes half as long again.
@pytest.mark.parametrize(
    ("mode", "depth"), [("bmc", 10), *(pytest.param(mode, 18, marks=pytest.mark.long) for mode in ("bmc", "cover"))]
)
def test_words(mode, depth):
    spec = LaneStepsSpec()
    prove(spec, spec.ports, name=f"conv-lane-steps-{mode}-{depth}", mode=mode, depth=depth)
