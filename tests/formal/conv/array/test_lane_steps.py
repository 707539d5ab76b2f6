"""Lane-private mode: what is read has been written and is not freed, and nothing is freed before it is there.

With the proof of requests, which keeps what is asked for within a round of what is freed, no word that is still to be
read is written over. Sizes are small; when anything comes is anything.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.conv.array.lane_steps import LaneSteps
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS, KERNEL_ROWS
from tilewright.verify.formal import prove

PARAMS = {
    rotation: ConvUnitParams(CONV_PRESETS["unit"].replace(weight_bytes=256, rotation=rotation), SmemParams(1024))
    for rotation in (False, True)
}
_LASTS = ("last_step", "last_plane", "last_kernel_row", "last_line", "last_image", "last_pass")
#: Points of a line, less one; words of a line at a column of the kernel, less one.
_WIDTH, _GROUPS = 5, 4


class LaneStepsSpec(Spec):
    """One job, which begins in the first cycle."""

    made = "o"

    def __init__(self, rotation):
        self.params = PARAMS[rotation]
        self.dut = LaneSteps(self.params)
        self.stride, self.dilation, self.rotates = Signal(2), Signal(2), Signal()
        self.used = Signal(self.params.row_parts)  # parts of rows that are points

    def specify(self, m, dut):
        plan, stride, dilation = dut.plan, self.stride, self.dilation
        begun = Signal()
        m.d.sync += begun.eq(1)
        m.d.comb += Assume(dut.start == ~begun)

        # The plan is that of a job whose lines fit, and stays.
        for value in (plan.as_value(), stride, dilation, self.rotates):
            before = Signal.like(value)
            m.d.sync += before.eq(value)
            m.d.comb += Assume(~begun | (value == before))
        of_line, between, reach, last, behind = Signal(6), Signal(6), Signal(), Signal(2), Signal(5)
        apart = Signal(3)  # lines of X from a line, or a pair of lines, to the next
        whole = plan.granularity == 4
        m.d.comb += [
            *(Assume(plan[name] < 2) for name in _LASTS),
            Assume((stride != 0) & (dilation != 0) & plan.kernel_stays),
            Assume((whole | (plan.granularity == 3)) & (plan.last_column < _WIDTH) & (plan.last_group < _GROUPS)),
            Assume(~plan.pairs | (plan.keeps & (dilation == 1) & (self.params.halves > 1))),
            apart.eq(stride << plan.pairs),
            Assume(plan.stride == apart - 1),
            Assume(plan.line_stride == stride - 1),
            Assume(plan.last_row_step == plan.last_kernel_row + Mux(plan.pairs, stride, 0)),
            # Rows are turned, by a point at most, or by none; lines may begin with any point of a group.
            Assume(plan.keeps | ~self.rotates),
            Assume(self.rotates | (~plan.raster & (plan.last_plane == plan.last_step))),
            Assume(plan.last_plane <= plan.last_step),
            last.eq(Mux(whole, 1, 3)),
            reach.eq(plan.last_plane < plan.last_step),
            Assume(~plan.raster | ((dilation == 1) & (plan.last_column >= last))),
            behind.eq(plan.last_column + reach + Mux(plan.raster, last, 0)),
            Assume(plan.last_group == Mux(whole, behind >> 1, behind >> 2)),
            of_line.eq((plan.last_plane + 1) * (plan.last_group + 1)),
            between.eq(plan.last_row_step * dilation),
            Assume(plan.row_words == dilation * of_line),
            Assume(plan.line_words == apart * of_line),
            Assume(plan.image_words == (between + 1) * of_line),
            Assume(~plan.keeps | (stride <= plan.last_kernel_row * dilation)),
            Assume(~plan.keeps | ((between + 1 + apart) * of_line <= self.params.words)),
        ]

        taken = dut.o.valid & dut.o.ready
        self._read(m, taken)
        off = dut.o.p.halves.off
        if self.params.halves > 1:
            # Rows of the kernel that the second line of a pair has are there too.
            ahead = (dut.second_row - dut.freed_kernel)[: len(dut.second_row)]
            there = (dut.written_kernel - dut.freed_kernel)[: len(dut.second_row)]
            m.d.comb += Assert(~taken | plan.pool | off[1] | (ahead < there))
        for written, freed, now, used, many in (
            (dut.written, dut.freed, dut.needed, 1, self.params.words),
            (dut.written_kernel, dut.freed_kernel, dut.row, ~plan.pool & ~off[0], KERNEL_ROWS),
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
        if self.params.conv.rotation:
            m.d.comb += Cover(taken & self.crossed & (dut.turn != 0))
            m.d.comb += Cover(taken & plan.pairs & off[0] & dut.o.p.flags.last)
        else:
            m.d.comb += Assume(~self.rotates)

    def _read(self, m, taken):
        """Parts of rows that are points of the group, or of the next line in it, are read of words that are there."""
        dut, plan, read = self.dut, self.dut.plan, self.dut.o.p.read
        self.crossed = Signal()  # the group has points of the next line
        m.d.comb += self.crossed.eq(plan.raster & ~dut.nest.at_last[3])
        for part, word in enumerate(read.words):
            of_group, point = (
                Signal(range(self.params.row_parts), name=f"of_group{part}"),
                Signal(2, name=f"point{part}"),
            )
            behind = Signal.like(word, name=f"behind{part}")
            m.d.comb += [
                of_group.eq(part - read.turn),
                point.eq(Mux(plan.granularity == 4, of_group >> 1, of_group)),
                self.used[part].eq((point <= dut.remaining) | self.crossed),
                behind.eq(word - dut.freed),
                Assert(~(taken & self.used[part]) | (behind < (dut.written - dut.freed)[: len(dut.freed)])),
            ]


# The shortest job that is covered ends in step 5. Each cycle more takes half as long again.
@pytest.mark.parametrize(
    ("rotation", "mode", "depth"),
    [
        *((False, "bmc", 10), (True, "bmc", 7)),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in ((False, "bmc", 18), (False, "cover", 18), (True, "bmc", 12), (True, "cover", 14))
        ),
    ],
)
def test_words(rotation, mode, depth):
    prove(LaneStepsSpec(rotation), name=f"conv-lane-steps-{rotation}-{mode}-{depth}", mode=mode, depth=depth)
