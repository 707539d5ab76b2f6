"""The order of work in lane-private mode (docs/conv.md, "Lane-private mode")."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import KERNEL_ROWS

from ...lib.logic import mux_tree
from ...lib.loop_nest import LoopNest
from ..layouts import LaneStepLayout, PlanLayout
from ..params import FOLDS

__all__ = ["LaneSteps"]

_COLUMN, _ROW, _GROUP, _LINE = range(4)
_LASTS = {_COLUMN: "last_step", _ROW: "last_row_step", _LINE: "last_line", 4: "last_image", 5: "last_pass"}


class LaneSteps(wiring.Component):
    """Walks the steps of a job in lane-private mode: for each pass, line and group all positions of the kernel.

    Words are used in the order of their numbers, and so are rows of the kernel. With ``keeps`` a word is read for each
    output line that it serves; at the end of a line the words are freed that serve no later one. Otherwise each word is
    read once and freed.

    With rotation, kernel columns after ``last_plane`` have no words of their own: each reads those of an earlier
    column, from some point of a word on, and for the points before that the next word. With ``raster`` a group that its
    line does not fill continues with points of the next line.

    With ``pairs`` a line stands for two, and a word is used for both: for the first line with a row of the kernel, for
    the second line with the row that is sh rows earlier. Each half of the units computes one of the lines, and is off
    where the kernel has no such row.

    Latency 1 from ``start``, ``written`` and ``written_kernel``; a step a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        self.nest = LoopNest([8, 9, 16, 16, 16, params.pixel_width])
        self.running = Signal()
        self.begun = Signal()  # the group has had a step
        self.remaining = Signal(16)  # points of the line after the group's first one
        self.word = Signal(range(2 * params.words))  # from which the first part of the rows is read
        self.needed = Signal.like(self.word)  # the last word that is read
        self.row = Signal(range(2 * KERNEL_ROWS))
        self.second_row = Signal.like(self.row)  # for the second line of a pair
        # Points by which rows are rotated, now and for the first kernel column; the point of a group, modulo the points
        # of one, with which the line begins.
        points = range(2 * params.conv.slaves)
        self.turn, self.first, self.begin = (Signal(points, name=name) for name in ("turn", "first_turn", "begin"))
        self.rows = Signal(9)  # kernel rows since ``begin`` last changed
        self.plane = Signal(8)  # kernel column whose words are read, of those that have words
        self.to_line = Signal.like(self.word)  # from a group's words to the first words of the next line
        super().__init__(
            {
                "start": In(1),  # Strobe; all steps of the previous job have been accepted.
                "plan": In(PlanLayout(params)),  # constant from ``start`` until the last step has been accepted
                # Counts of ``FeatureBuffer``.
                "written": In(range(2 * params.words)),
                "written_kernel": In(range(2 * KERNEL_ROWS)),
                # For ``FeatureFetcher``; registered.
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
        last, planes = Signal(range(self._params.conv.slaves * FOLDS)), Signal(9)  # the last point of a whole group
        m.d.comb += [
            last.eq(self._last_point()),
            planes.eq(plan.last_plane + 1),
            nest.start.eq(self.start),
            *(nest.lasts[level].eq(plan[name]) for level, name in _LASTS.items()),
            # The number of points decides where a line ends.
            nest.lasts[_GROUP].eq(-1),
            nest.cut[_GROUP].eq(self.remaining <= last),
            nest.step.eq(step),
            step.eq(o.valid & o.ready),
            group_over.eq(nest.at_last[:_GROUP].all()),
            pass_over.eq(nest.at_last[:-1].all()),
            o.valid.eq(
                self.running
                & _is_written(m, self.written - self.needed)
                & (plan.pool | o.payload.halves.off[0] | _is_written(m, self.written_kernel - self.row))
            ),
            *(read.eq(row) for read, row in zip(o.payload.kernel, (self.row, self.second_row), strict=False)),
            o.payload.flags.first.eq(~self.begun),
            o.payload.flags.last.eq(group_over),
            o.payload.flags.final.eq(nest.at_last[_GROUP:-1].all()),
        ]
        with m.If(step):
            m.d.sync += [self.begun.eq(~group_over), self.running.eq(~nest.final)]
        with m.If(self.start):
            m.d.sync += self.running.eq(1)
        back, carry = self._rotate(m, step, last, planes) if self._params.conv.rotation else (0, 0)
        self._points(m, step, group_over, last)
        self._words(m, step, back, carry, planes)
        self._halves(m, step, group_over)
        self._rows(m, step, group_over, pass_over)
        self._read(m, last, planes)
        return m

    def _last_point(self):
        """NS · ws - 1."""
        slaves, whole = exact_log2(self._params.conv.slaves), exact_log2(self._params.conv.row_bytes)
        sizes = range(whole - exact_log2(FOLDS), whole + 1)
        return mux_tree(self.plan.granularity, {size: (1 << slaves + whole - size) - 1 for size in sizes})

    def _points(self, m, step, group_over, last):
        """Follows the groups of a line; with ``raster`` its last group has the first points of the next line."""
        plan, nest = self.plan, self.nest
        crosses = plan.raster & ~nest.at_last[_LINE] & self._params.conv.rotation
        with m.If(step & group_over):
            m.d.sync += self.remaining.eq(self.remaining - last - 1)
            with m.If(nest.at_last[_GROUP]):
                m.d.sync += self.remaining.eq(plan.last_column + Mux(crosses, self.remaining - last, 0))
        with m.If(self.start):
            m.d.sync += self.remaining.eq(plan.last_column)

    def _rotate(self, m, step, last, planes):
        """Follows the rotation of rows.

        Returns whether the next step returns to the words of the first column, and whether it begins one word later.
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
            m.d.comb += [first.eq(self.first), turn.eq((self.turn + back) & last), carry.eq(back & (self.turn == last))]
        with m.Elif(nest.advance[_ROW]):
            m.d.comb += first.eq((self.first + Mux(plan.raster & moves, plan.last_column + 1, 0)) & last)
        with m.Elif(line_over):
            m.d.comb += begin.eq(Mux(plan.raster & ~nest.at_last[_LINE], last - self.remaining, 0))
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
        """Follows the word of the step: each level of the nest adds a distance to where it began."""
        plan, nest = self.plan, self.nest
        row, group, line, base, distance, following = (
            Signal.like(self.word, name=name)
            for name in ("row_word", "group_word", "line_word", "base", "distance", "following")
        )
        with m.If(~plan.keeps | nest.advance[_COLUMN]):
            m.d.comb += [base.eq(self.word), distance.eq(Mux(back, -plan.last_plane, 1))]
        with m.Elif(nest.advance[_ROW]):
            m.d.comb += [base.eq(row), distance.eq(plan.row_words)]
        with m.Elif(nest.advance[_GROUP]):
            m.d.comb += [base.eq(group), distance.eq(planes)]
        with m.Else():
            m.d.comb += [base.eq(line), distance.eq(Mux(nest.advance[_LINE], plan.line_words, plan.image_words))]
        m.d.comb += following.eq(base + distance)
        with m.If(step):
            m.d.sync += self.word.eq(following + Mux(carry, planes, 0))
            for level, register in enumerate((row, group, line), _ROW):
                with m.If(nest.advance[:level] == 0):
                    m.d.sync += register.eq(following)
            with m.If(~plan.keeps | (nest.advance[:_LINE] == 0)):
                m.d.sync += self.freed.eq(following)
        with m.If(self.start):
            m.d.sync += [register.eq(self.word) for register in (row, group, line)]

    def _halves(self, m, step, group_over):
        """Whether the step is for each line of a pair, and begins it; without pairs the second half is off."""
        plan, halves, row = self.plan, self.o.payload.halves, self.nest.indices[_ROW]
        m.d.comb += halves.first[0].eq(~self.begun)
        if self._params.halves == 1:
            return
        second_begun, first_over, second_off = Signal(), Signal(), Signal(init=1)
        m.d.comb += [halves.first[1].eq(~second_begun), halves.off.eq(Cat(first_over, second_off))]
        with m.If(step):
            m.d.sync += second_begun.eq(~group_over & ~second_off)
            with m.If(self.nest.advance[_ROW]):
                m.d.sync += [
                    first_over.eq(first_over | (row == plan.last_kernel_row)),
                    second_off.eq(second_off & ~(plan.pairs & (row == plan.line_stride))),
                ]
            with m.If(group_over):
                m.d.sync += [first_over.eq(0), second_off.eq(1)]

    def _rows(self, m, step, group_over, pass_over):
        """Follows the rows of the kernel, which stay for a pass or are read once."""
        plan, off = self.plan, self.o.payload.halves.off
        after, following = Signal.like(self.row), Signal.like(self.row)
        m.d.comb += [
            after.eq(self.row + ~off[0]),
            following.eq(Mux(group_over & plan.kernel_stays & ~pass_over, self.freed_kernel, after)),
        ]
        with m.If(step & ~plan.pool):
            m.d.sync += self.row.eq(following)
            if self._params.halves > 1:
                m.d.sync += self.second_row.eq(Mux(plan.pairs & ~group_over, self.second_row + ~off[1], following))
            with m.If(pass_over | ~plan.kernel_stays):
                m.d.sync += self.freed_kernel.eq(after)

    def _read(self, m, last, planes):
        """The words that a step reads, and the last of them.

        Parts before part ``turn`` are read from the next word. Points of the next line are read from the words of that
        line, which are as many words later as the groups of the two lines are apart.
        """
        read = self.o.payload.read
        if not self._params.conv.rotation:
            m.d.comb += [self.needed.eq(self.word), read.words[0].eq(self.word)]
            return
        plan, parts = self.plan, self._params.row_parts
        whole = plan.granularity == exact_log2(self._params.conv.row_bytes)
        splits, onward, wraps = Signal(), Signal.like(self.word), Signal()
        split = Signal(range(parts + 1))  # part of the group with the next line's first point
        # Corrections of the distance to the next line's words, by the words of one group each.
        late, early = self.first < self.begin, self.first + self.remaining >= last
        m.d.comb += [
            splits.eq(plan.raster & (self.remaining < last) & ~self.nest.at_last[_LINE]),
            onward.eq(self.to_line - Mux(late & early, planes << 1, Mux(late | early, planes, 0))),
            wraps.eq(Mux(splits, self.turn != 0, Mux(self.remaining < last, self.remaining, last) + self.turn > last)),
            self.needed.eq(self.word + Mux(splits, onward, 0) + Mux(wraps, planes, 0)),
            read.turn.eq(self.turn << whole),
            split.eq(Mux(splits, self.remaining + 1 << whole, parts)),
        ]
        for part, word in enumerate(read.words):
            of_group = Signal(range(parts), name=f"of_group{part}")
            m.d.comb += [
                of_group.eq(part - read.turn),
                word.eq(self.word + Mux(of_group >= split, onward, 0) + Mux(part < read.turn, planes, 0)),
            ]


def _is_written(m, ahead):
    """Whether ``ahead``, how far writing is ahead, is positive: it is more than minus one round, and at most one."""
    distance = Signal(len(ahead) - 1)
    m.d.comb += distance.eq(ahead)
    half = len(distance) - 1
    return (distance != 0) & (~distance[half] | (distance[:half] == 0))
