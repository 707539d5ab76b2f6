"""The order of work in lane-private mode (docs/conv.md, "Lane-private mode")."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import KERNEL_ROWS

from ...lib.logic import chosen
from ...lib.loop_nest import LoopNest
from ..layouts import LaneStepLayout, PlanLayout
from ..params import FOLDS

__all__ = ["LaneSteps"]

_COLUMN, _ROW, _GROUP, _LINE = range(4)
_LASTS = {_COLUMN: "last_step", _ROW: "last_row_step", _LINE: "last_line", 4: "last_image", 5: "last_pass"}


class LaneSteps(wiring.Component):
    """Walks the steps of a job in lane-private mode: for each pass, line and group all positions of the kernel.

    Words come in the order of their numbers, and so do rows of the kernel. With ``keeps`` a word is read for each
    output line that it serves, and words are freed when a line is over: those that serve none of the next one. Else
    each is read once, and freed.

    Where rows rotate, columns behind ``last_plane`` have no words of their own: each reads those of a column that has
    some, from some point of a word on, and before that point the next word. With ``raster`` a group that its line does
    not fill has points of the next line behind them.

    With ``pairs`` a line stands for two, and a word is for both: for the first one with a row of the kernel, for the
    second one with that of sh rows before. Each half of the units has one of both, and is off where there is no row.

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
        self.params = params
        self.nest = LoopNest([8, 9, 16, 16, 16, params.pixel_width])
        self.running = Signal()
        self.begun = Signal()  # the group has had a step
        self.left = Signal(16)  # points of the line behind the group's first one
        self.word = Signal(range(2 * params.words))  # that the first part of the rows is read of
        self.needed = Signal.like(self.word)  # the last one that is read
        self.row = Signal(range(2 * KERNEL_ROWS))
        self.second_row = Signal.like(self.row)  # that of the second line of a pair
        # By how many points rows are turned, and in the first column of the kernel; point of a group, modulo those of
        # one, that is the first one of the line; kernel rows since lines have begun with another one.
        points = range(2 * params.conv.slaves)
        self.turn, self.first, self.begin = (Signal(points, name=name) for name in ("turn", "first_turn", "begin"))
        self.rows = Signal(9)
        self.plane = Signal(8)  # column of the kernel whose words are read, of those that have words
        self.to_line = Signal.like(self.word)  # from a group's words to the first ones of the next line
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
        last, planes = Signal(range(self.params.conv.slaves * FOLDS)), Signal(9)  # the last point of a whole group
        m.d.comb += [
            last.eq(self._last_point()),
            planes.eq(plan.last_plane + 1),
            nest.start.eq(self.start),
            *(nest.lasts[level].eq(plan[name]) for level, name in _LASTS.items()),
            # Points tell where a line ends.
            nest.lasts[_GROUP].eq(-1),
            nest.cut[_GROUP].eq(self.left <= last),
            nest.step.eq(step),
            step.eq(o.valid & o.ready),
            group_over.eq(nest.at_last[:_GROUP].all()),
            pass_over.eq(nest.at_last[:-1].all()),
            o.valid.eq(
                self.running
                & _is_there(m, self.written - self.needed)
                & (plan.pool | o.p.halves.off[0] | _is_there(m, self.written_kernel - self.row))
            ),
            *(read.eq(row) for read, row in zip(o.p.kernel, (self.row, self.second_row), strict=False)),
            o.p.flags.first.eq(~self.begun),
            o.p.flags.last.eq(group_over),
            o.p.flags.final.eq(nest.at_last[_GROUP:-1].all()),
        ]
        with m.If(step):
            m.d.sync += [self.begun.eq(~group_over), self.running.eq(~nest.final)]
        with m.If(self.start):
            m.d.sync += self.running.eq(1)
        back, carry = self._rotate(m, step, last, planes) if self.params.conv.rotation else (0, 0)
        self._points(m, step, group_over, last)
        self._words(m, step, back, carry, planes)
        self._halves(m, step, group_over)
        self._rows(m, step, group_over, pass_over)
        self._read(m, last, planes)
        return m

    def _last_point(self):
        """NS · ws - 1."""
        slaves, whole = exact_log2(self.params.conv.slaves), exact_log2(self.params.conv.row_bytes)
        sizes = range(whole - exact_log2(FOLDS), whole + 1)
        return chosen(self.plan.granularity, {size: (1 << slaves + whole - size) - 1 for size in sizes})

    def _points(self, m, step, group_over, last):
        """Where groups are in their line; with ``raster`` the last one of a line has the first points of the next."""
        plan, nest = self.plan, self.nest
        crosses = plan.raster & ~nest.at_last[_LINE] & self.params.conv.rotation
        with m.If(step & group_over):
            m.d.sync += self.left.eq(self.left - last - 1)
            with m.If(nest.at_last[_GROUP]):
                m.d.sync += self.left.eq(plan.last_column + Mux(crosses, self.left - last, 0))
        with m.If(self.start):
            m.d.sync += self.left.eq(plan.last_column)

    def _rotate(self, m, step, last, planes):
        """By how much rows are turned.

        Returns whether the next step goes back to the words of the first column, and whether it begins a word later.
        """
        plan, nest = self.plan, self.nest
        back, carry, moves, line_over = Signal(), Signal(), Signal(), Signal()
        turn, first, begin = (Signal.like(self.turn, name=f"next_{name}") for name in ("turn", "first", "begin"))
        m.d.comb += [
            line_over.eq(nest.at_last[:_LINE].all()),
            back.eq(nest.advance[_COLUMN] & (self.plane == plan.last_plane)),
            moves.eq(self.rows == plan.stride),
            begin.eq(self.begin),
            turn.eq(first),
            carry.eq(first < begin),
        ]
        with m.If(nest.advance[_COLUMN]):
            m.d.comb += [
                first.eq(self.first),
                turn.eq((self.turn + back) & last),
                carry.eq(back & (self.turn == last)),
            ]
        with m.Elif(nest.advance[_ROW]):
            m.d.comb += first.eq((self.first + Mux(plan.raster & moves, plan.last_column + 1, 0)) & last)
        with m.Elif(line_over):
            m.d.comb += begin.eq(Mux(plan.raster & ~nest.at_last[_LINE], last - self.left, 0))
        with m.If(step):
            m.d.sync += [self.turn.eq(turn), self.first.eq(first), self.begin.eq(begin)]
            m.d.sync += self.plane.eq(Mux(nest.advance[_COLUMN] & ~back, self.plane + 1, 0))
            with m.If(~nest.advance[_COLUMN]):
                m.d.sync += self.rows.eq(Mux(nest.advance[_ROW] & ~moves, self.rows + 1, 0))
            with m.If(nest.advance[_GROUP]):
                m.d.sync += self.to_line.eq(self.to_line - planes)
            with m.If(line_over):
                m.d.sync += self.to_line.eq(plan.line_words)
        with m.If(self.start):
            m.d.sync += [register.eq(0) for register in (self.turn, self.first, self.begin, self.plane, self.rows)]
            m.d.sync += self.to_line.eq(plan.line_words)
        return back, carry

    def _words(self, m, step, back, carry, planes):
        """Where each level of the nest began, and what is added to it."""
        plan, nest = self.plan, self.nest
        row, group, line = (Signal.like(self.word, name=name) for name in ("row_word", "group_word", "line_word"))
        begun, added, moved = (Signal.like(self.word, name=name) for name in ("begun", "added", "moved"))
        with m.If(~plan.keeps | nest.advance[_COLUMN]):
            m.d.comb += [begun.eq(self.word), added.eq(Mux(back, -plan.last_plane, 1))]
        with m.Elif(nest.advance[_ROW]):
            m.d.comb += [begun.eq(row), added.eq(plan.row_words)]
        with m.Elif(nest.advance[_GROUP]):
            m.d.comb += [begun.eq(group), added.eq(planes)]
        with m.Else():
            m.d.comb += [begun.eq(line), added.eq(Mux(nest.advance[_LINE], plan.line_words, plan.image_words))]
        m.d.comb += moved.eq(begun + added)
        with m.If(step):
            m.d.sync += self.word.eq(moved + Mux(carry, planes, 0))
            for level, register in enumerate((row, group, line), _ROW):
                with m.If(nest.advance[:level] == 0):
                    m.d.sync += register.eq(moved)
            with m.If(~plan.keeps | (nest.advance[:_LINE] == 0)):
                m.d.sync += self.freed.eq(moved)
        with m.If(self.start):
            m.d.sync += [register.eq(self.word) for register in (row, group, line)]

    def _halves(self, m, step, group_over):
        """Which lines of a pair the step is for, and which begin with it; without pairs the second half is off."""
        plan, halves, row = self.plan, self.o.p.halves, self.nest.indices[_ROW]
        m.d.comb += halves.first[0].eq(~self.begun)
        if self.params.halves == 1:
            return
        begun, over, off = Signal(), Signal(), Signal(init=1)  # of the second one; of the first one; of the second one
        m.d.comb += [halves.first[1].eq(~begun), halves.off.eq(Cat(over, off))]
        with m.If(step):
            m.d.sync += begun.eq(~group_over & ~off)
            with m.If(self.nest.advance[_ROW]):
                m.d.sync += [
                    over.eq(over | (row == plan.last_kernel_row)),
                    off.eq(off & ~(plan.pairs & (row == plan.line_stride))),
                ]
            with m.If(group_over):
                m.d.sync += [over.eq(0), off.eq(1)]

    def _rows(self, m, step, group_over, pass_over):
        """Rows of the kernel stay for a pass, or are read once."""
        plan, off = self.plan, self.o.p.halves.off
        after, following = Signal.like(self.row), Signal.like(self.row)
        m.d.comb += [
            after.eq(self.row + ~off[0]),
            following.eq(Mux(group_over & plan.kernel_stays & ~pass_over, self.freed_kernel, after)),
        ]
        with m.If(step & ~plan.pool):
            m.d.sync += self.row.eq(following)
            if self.params.halves > 1:
                m.d.sync += self.second_row.eq(Mux(plan.pairs & ~group_over, self.second_row + ~off[1], following))
            with m.If(pass_over | ~plan.kernel_stays):
                m.d.sync += self.freed_kernel.eq(after)

    def _read(self, m, last, planes):
        """Which words a step reads, and which is the last of them.

        Parts in front of the one that rows are turned to are read of the word behind it, and points of the next line of
        its words: a part of rows is the same part of these, of as many words further on as lines and groups are apart.
        """
        read = self.o.p.read
        if not self.params.conv.rotation:
            m.d.comb += [self.needed.eq(self.word), read.words[0].eq(self.word)]
            return
        plan, parts = self.plan, self.params.row_parts
        whole = plan.granularity == exact_log2(self.params.conv.row_bytes)
        splits, onward, more = Signal(), Signal.like(self.word), Signal()
        split = Signal(range(parts + 1))  # part of the group with the next line's first point
        # Words that the first part of its group, or of the next line's points in it, is read later or earlier by.
        late, early = self.first < self.begin, self.first + self.left >= last
        m.d.comb += [
            splits.eq(plan.raster & (self.left < last) & ~self.nest.at_last[_LINE]),
            onward.eq(self.to_line - Mux(late & early, planes << 1, Mux(late | early, planes, 0))),
            more.eq(Mux(splits, self.turn != 0, Mux(self.left < last, self.left, last) + self.turn > last)),
            self.needed.eq(self.word + Mux(splits, onward, 0) + Mux(more, planes, 0)),
            read.turn.eq(self.turn << whole),
            split.eq(Mux(splits, self.left + 1 << whole, parts)),
        ]
        for part, word in enumerate(read.words):
            before = Signal(name=f"before{part}")  # it is in front of the part that rows are turned to
            of_group = Signal(range(parts), name=f"of_group{part}")
            m.d.comb += [
                before.eq(part < read.turn),
                of_group.eq(part - read.turn),
                word.eq(self.word + Mux(of_group >= split, onward, 0) + Mux(before, planes, 0)),
            ]


def _is_there(m, ahead):
    """Whether what is written has come as far: it may be behind by less than a round, and ahead by one at most."""
    distance = Signal(len(ahead) - 1)
    m.d.comb += distance.eq(ahead)
    half = len(distance) - 1
    return (distance != 0) & (~distance[half] | (distance[:half] == 0))
