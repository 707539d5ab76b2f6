"""The order of work in lane-private mode (docs/conv.md, "Lane-private mode")."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.conv.params import KERNEL_ROWS

from ...lib.loop import LoopNest
from ..layouts import LaneStepLayout, PlanLayout

__all__ = ["LaneSteps"]

_COLUMN, _ROW, _GROUP, _LINE = range(4)


class LaneSteps(wiring.Component):
    """Walks the steps of a job in lane-private mode: for each pass, line and group all positions of the kernel.

    Words come in the order of their numbers, and so do rows of the kernel. With ``keeps`` a word is read for each
    output line that it serves, and words are freed when a line is over: those that serve none of the next one. Else
    each is read once, and freed.

    Latency 1 from ``start``, ``written`` and ``written_kernel``; a step a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    start : In(1)
        Strobe, while ``o.valid`` is low and all steps of the job before have been taken.
    plan : In(PlanLayout(params))
        From the cycle of ``start`` until the last step has been taken.
    written : In(range(2 * params.words))
    written_kernel : In(range(2 * KERNEL_ROWS))
        As of ``FeatureBuffer``.
    freed : Out(range(2 * params.words))
    freed_kernel : Out(range(2 * KERNEL_ROWS))
        As of ``FeatureFetcher``. Registered.
    o : Out(stream of LaneStepLayout(params))
    """

    def __init__(self, params):
        self.nest = LoopNest([8, 8, 16, 16, 16, params.pixel_width])
        self.running = Signal()
        self.word = Signal(range(2 * params.words))
        self.row = Signal(range(2 * KERNEL_ROWS))
        self.begun = Signal()  # the group has had a step
        super().__init__(
            {
                "start": In(1),
                "plan": In(PlanLayout(params)),
                "written": In(range(2 * params.words)),
                "written_kernel": In(range(2 * KERNEL_ROWS)),
                "freed": Out(range(2 * params.words)),
                "freed_kernel": Out(range(2 * KERNEL_ROWS)),
                "o": Out(stream.Signature(LaneStepLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.nest = nest = self.nest
        plan, o = self.plan, self.o
        step, group_over, pass_over = Signal(), Signal(), Signal()
        m.d.comb += [
            nest.start.eq(self.start),
            *(nest.lasts[level].eq(plan[name]) for level, name in enumerate(_LASTS)),
            nest.step.eq(step),
            step.eq(o.valid & o.ready),
            group_over.eq(nest.at_last[:_GROUP].all()),
            pass_over.eq(nest.at_last[:-1].all()),
            o.valid.eq(
                self.running
                & _is_there(m, self.written - self.word)
                & (plan.pool | _is_there(m, self.written_kernel - self.row))
            ),
            o.p.word.eq(self.word),
            o.p.kernel.eq(self.row),
            o.p.flags.first.eq(~self.begun),
            o.p.flags.last.eq(group_over),
            o.p.flags.final.eq(nest.at_last[_GROUP:-1].all()),
        ]
        with m.If(step):
            m.d.sync += [self.begun.eq(~group_over), self.running.eq(~nest.final)]
        with m.If(self.start):
            m.d.sync += self.running.eq(1)
        self._words(m, step)
        self._rows(m, step, group_over, pass_over)
        return m

    def _words(self, m, step):
        """Where each level of the nest began, and what is added to it."""
        plan, nest = self.plan, self.nest
        row, group, line = (Signal.like(self.word, name=name) for name in ("row_word", "group_word", "line_word"))
        begun, added, moved = (Signal.like(self.word, name=name) for name in ("begun", "added", "moved"))
        with m.If(~plan.keeps | nest.advance[_COLUMN]):
            m.d.comb += [begun.eq(self.word), added.eq(1)]
        with m.Elif(nest.advance[_ROW]):
            m.d.comb += [begun.eq(row), added.eq(plan.row_words)]
        with m.Elif(nest.advance[_GROUP]):
            m.d.comb += [begun.eq(group), added.eq(plan.last_step + 1)]
        with m.Else():
            m.d.comb += [begun.eq(line), added.eq(Mux(nest.advance[_LINE], plan.line_words, plan.image_words))]
        m.d.comb += moved.eq(begun + added)
        with m.If(step):
            m.d.sync += self.word.eq(moved)
            for level, register in enumerate((row, group, line), _ROW):
                with m.If(nest.advance[:level] == 0):
                    m.d.sync += register.eq(moved)
            with m.If(~plan.keeps | (nest.advance[:_LINE] == 0)):
                m.d.sync += self.freed.eq(moved)
        with m.If(self.start):
            m.d.sync += [register.eq(self.word) for register in (row, group, line)]

    def _rows(self, m, step, group_over, pass_over):
        """Rows of the kernel stay for a pass, or are read once."""
        plan, after = self.plan, Signal.like(self.row)
        m.d.comb += after.eq(self.row + 1)
        with m.If(step & ~plan.pool):
            m.d.sync += self.row.eq(Mux(group_over & plan.kernel_stays & ~pass_over, self.freed_kernel, after))
            with m.If(pass_over | ~plan.kernel_stays):
                m.d.sync += self.freed_kernel.eq(after)


_LASTS = ("last_step", "last_kernel_row", "last_group", "last_line", "last_image", "last_pass")


def _is_there(m, ahead):
    """Whether what is written has come as far: it may be behind by less than a round, and ahead by one at most."""
    distance = Signal(len(ahead) - 1)
    m.d.comb += distance.eq(ahead)
    half = len(distance) - 1
    return (distance != 0) & (~distance[half] | (distance[:half] == 0))
