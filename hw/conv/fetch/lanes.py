"""The order in which rows are asked for in lane-private mode (docs/conv.md, "Lane-private mode")."""

from functools import reduce
from operator import add

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import KERNEL_ROWS

from ...lib.logic import chosen
from ...lib.loop_nest import LoopNest
from ..layouts import PlanLayout
from .places import TablePlaceLayout
from .reads import in_pairs
from .sets import FeatureTagLayout, OffsetsLayout

__all__ = ["LaneWalker"]

_PART, _TURN, _COLUMN, _ROW, _GROUP, _LINE, _IMAGE, _PASS = range(8)
#: Rows and columns from here on are outside of X, and are not counted any further.
_FAR = 17
#: What is less, and the step behind it: a stride of up to 256, for at most 256 points.
_POSITION = signed(_FAR + 2)
_PASS_BITS = 17


class LaneWalker(wiring.Component):
    """Walks the requests of a job in lane-private mode: features of all slaves, word by word, and rows of the kernel.

    A *group* are the rows of one line that all slaves have at once: up to NS · ws points. A word are its rows of one
    kernel position, and takes a request for every ``lanes`` pieces, as far as the line has points. With ``keeps`` lines
    of X come one after the other, group after group, and of a group the kernel's columns: each is asked for once in a
    pass. Else the words of a group come kernel row after kernel row, for each output line anew.

    Where rows rotate, only the first columns of the kernel have words, one with a stride of 1, two with a stride of 2,
    and their last words have points for the others. With ``raster`` a line begins in its first word with the place
    behind that of the last point above it, so that a request or two may be for places without a point.

    With an even stride every other column is asked for, whose chunks lie in half of the banks, or fewer. So two columns
    of the kernel are asked for together, if they are an odd number apart: places of the lower half of the lanes for the
    first of both words and those of the upper half for the second, and then the other way round. But blocks of two
    chunks do not meet if these columns are an odd number of chunks apart.

    Rows of the kernel are asked for before what they are multiplied with: all of them at the beginning of a pass, or
    where they do not stay one before each word. In pooling there are none.

    A request a cycle. ``tag`` is a few tables behind registers; ``offsets`` and ``places`` follow two cycles later.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    start : In(1)
        Strobe, while not ``busy``.
    plan : In(PlanLayout(params))
        From the cycle of ``start`` until two cycles after the last ``step``.
    busy : Out(1)
        There is a request.
    step : In(1)
        Strobe: go to the next request.
    tag : Out(FeatureTagLayout(params))
        ``word`` of what is complete goes on over jobs, from 0 after a reset.
    offsets : Out(OffsetsLayout(params))
        Registered, of the request of two cycles ago.
    places : Out(array of params.lanes TablePlaceLayout(params))
        Registered, likewise: by lane, the distance of its place from the first one of the request.
    """

    def __init__(self, params):
        self.params = params
        part = len(FeatureTagLayout(params)["part"].shape)
        self.nest = LoopNest([part, 1, 8, 8, 16, 24, 16, _PASS_BITS])
        self.pairs = params.pairs and not in_pairs(params)  # columns are asked for by pairs
        self.kernel = LoopNest([8, 8])  # rows of the kernel
        self.asking = Signal()  # for one of these
        self.word, self.kernel_row = Signal(range(params.words)), Signal(range(KERNEL_ROWS))
        self.block = Signal(params.pixel_width)  # first byte of the block in its pixel
        self.begin = Signal(range(2 * params.conv.slaves))  # point of its first group that the line begins with
        # From the first place of that group to this point, as address and as column.
        self.before = {"x": Signal(params.smem.addr_width), "position": Signal(_POSITION)}
        super().__init__(
            {
                "start": In(1),
                "plan": In(PlanLayout(params)),
                "busy": Out(1),
                "step": In(1),
                "tag": Out(FeatureTagLayout(params)),
                "offsets": Out(OffsetsLayout(params)),
                "places": Out(data.ArrayLayout(TablePlaceLayout(params), params.lanes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.nest, m.submodules.kernel = nest, kernel = self.nest, self.kernel
        params, plan, tag = self.params, self.plan, self.tag
        lanes_log2, row_log2 = exact_log2(params.lanes), exact_log2(params.conv.row_bytes)
        self._sizes = range(row_log2 - 4, row_log2 + 1)

        # Logarithms of the places of a request, and of the points of a group.
        in_part = {size: lanes_log2 - max(0, size - 4) for size in self._sizes}
        in_group = {size: exact_log2(params.conv.slaves) + row_log2 - size for size in self._sizes}
        parts = {size: max(1 << in_group[size] >> in_part[size], 1) - 1 for size in self._sizes}
        last_part, ends = Signal(len(nest.indices[_PART])), Signal()  # request of a line's last group; it is this one
        feature, place = Signal(), Signal(18)
        if params.conv.rotation:
            self._begin(m, feature, in_group)
        m.d.comb += place.eq(plan.last_place + self.begin)
        of_group = {size: place[: in_group[size]] for size in self._sizes}
        # Only where lines begin later may the last group have none.
        empty = self._chosen({size: place >> in_group[size] for size in self._sizes}) != plan.last_group
        in_last = Mux(empty, 0, self._chosen({size: of_group[size][: in_part[size]] for size in self._sizes}))
        m.d.sync += last_part.eq(
            Mux(empty, 0, self._chosen({size: of_group[size] >> in_part[size] for size in self._sizes}))
        )
        word_over, pass_over = Signal(), Signal()
        pairs, pair = Signal(), Signal()  # columns come by pairs; these do
        apart = ~plan.position.point[0] & plan.position_step[0] & ~((plan.granularity == 5) & plan.x_step[4])
        m.d.comb += [
            pairs.eq(apart & plan.kernel_stays & (plan.granularity >= 4) & (plan.last_plane != 0) & self.pairs),
            # The last one of an odd number is alone.
            pair.eq(pairs & (plan.last_plane[0] | ~nest.at_last[_COLUMN])),
            nest.lasts[_TURN].eq(pairs),
            nest.cut[_TURN].eq(~pair),
            nest.start.eq(self.start),
            nest.lasts[_PART].eq(self._chosen(parts)),
            # A line's last group has as many points as the number of the last place says.
            ends.eq(nest.ends[_GROUP] & (nest.indices[_PART] == last_part)),
            nest.cut[_PART].eq(ends),
            nest.lasts[_COLUMN].eq(Mux(pairs, plan.last_plane >> 1, plan.last_plane)),
            nest.lasts[_ROW].eq(Mux(plan.keeps, 0, plan.last_kernel_row)),
            nest.lasts[_GROUP].eq(plan.last_group),
            nest.lasts[_LINE].eq(plan.last_row),
            nest.lasts[_IMAGE].eq(plan.last_image),
            nest.lasts[_PASS].eq(plan.last_pass),
            kernel.start.eq(self.start),
            kernel.lasts[0].eq(plan.last_step),
            kernel.lasts[1].eq(plan.last_kernel_row),
            kernel.step.eq(self.step & self.asking),
            feature.eq(self.step & ~self.asking),
            nest.step.eq(feature),
            word_over.eq(feature & nest.at_last[:_COLUMN].all()),
            pass_over.eq(feature & nest.at_last[:_PASS].all()),
        ]
        with m.If(self.step & self.asking):
            m.d.sync += [self.asking.eq(plan.kernel_stays & ~kernel.final), self.kernel_row.eq(self.kernel_row + 1)]
        with m.If(word_over):
            m.d.sync += [
                self.asking.eq(~plan.pool & (pass_over | ~plan.kernel_stays)),
                self.word.eq(self.word + Mux(pair, 2, 1)),
            ]
        with m.If(feature & nest.final):
            m.d.sync += self.busy.eq(0)
        with m.If(pass_over):
            m.d.sync += self.block.eq(self.block + (1 << plan.granularity))
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), self.asking.eq(~plan.pool), self.block.eq(0)]

        m.d.comb += [
            tag.word.eq(Mux(self.asking, self.kernel_row, self.word)),
            tag.part.eq(nest.indices[_PART]),
            tag.period.eq(
                Mux(self.asking, plan.granularity, Mux(plan.granularity > 4, 4, plan.granularity) + lanes_log2)
            ),
            tag.slaves.eq(~self.asking),
            tag.kernel.eq(self.asking),
            tag.complete.eq(nest.at_last[:_COLUMN].all()),
            tag.pair.eq(pair & ~self.asking),
            tag.turned.eq(nest.indices[_TURN] & ~self.asking),
        ]

        x, position, row = self._follow(m, feature, in_part, in_group, pairs)
        self._offsets(m, x, position, row, Mux(ends, in_last, params.lanes - 1))
        self._places(m, pair)
        return m

    def _chosen(self, values):
        """What belongs to a size of blocks."""
        return chosen(self.plan.granularity, values)

    def _begin(self, m, feature, in_group):
        """Where each line begins: Wo points further every sh lines, modulo those of a group."""
        plan, nest, width = self.plan, self.nest, len(self.begin)
        over, round_over, image_over = Signal(), Signal(), Signal()
        lines, last, after = Signal(9), Signal(width), Signal(width)
        whole = exact_log2(self.params.conv.row_bytes)
        m.d.comb += [
            over.eq(feature & nest.at_last[:_LINE].all()),
            round_over.eq(lines == plan.stride),
            image_over.eq(nest.at_last[_LINE] | ~plan.raster),
            last.eq(Mux(plan.granularity == whole, (1 << in_group[whole]) - 1, (2 << in_group[whole]) - 1)),
            after.eq(Mux(round_over, self.begin + plan.last_column + 1, self.begin) & last),
        ]
        with m.If(over):
            m.d.sync += [lines.eq(Mux(round_over | image_over, 0, lines + 1)), self.begin.eq(Mux(image_over, 0, after))]
        with m.If(self.start):
            m.d.sync += [lines.eq(0), self.begin.eq(0)]
        for name, before in self.before.items():
            # This takes a cycle: of groups of more than a point lines have two requests or more.
            point, moved = plan[name].point[: len(before)], Signal.like(before, name=f"{name}_moved")
            m.d.sync += moved.eq(reduce(add, (Mux(after[bit], point << bit, 0) for bit in range(width))))
            with m.If(over):
                m.d.sync += before.eq(Mux(image_over, 0, moved))
            with m.If(self.start):
                m.d.sync += before.eq(0)

    def _follow(self, m, feature, in_part, in_group, pairs):
        """Address, column and row of the request's first place: each level of the nest begins where it began before."""
        plan, nest = self.plan, self.nest

        def times(number, shape, log2s):
            product = Signal(shape)
            m.d.sync += product.eq(self._chosen({size: number << log2 for size, log2 in log2s.items()}))
            return product

        def follow(name, shape, start, added, begins):
            """A number by what its levels add; levels that add nothing begin where ``begins`` says."""
            registers = {level: Signal(shape, name=f"{name}_{level}") for level in added}
            begun, more, moved = (Signal(shape, name=f"{name}_{what}") for what in ("begun", "more", "moved"))
            m.d.comb += moved.eq(begun + more)
            with m.Switch(nest.advance):
                for level in range(_PASS):
                    with m.Case("".join("1" if each == level else "-" for each in reversed(range(_PASS + 1)))):
                        if level in added:
                            register = registers[level]
                            # Addresses are modulo the memory; others would come round.
                            far = register[_FAR:-1].any() & ~register[-1] if shape.signed else 0
                            m.d.comb += [begun.eq(register), more.eq(Mux(far, 0, added[level]))]
                        elif level in begins:
                            m.d.comb += begun.eq(registers[begins[level]])
                        else:
                            m.d.comb += begun.eq(start)
                with m.Default():
                    m.d.comb += begun.eq(start)
            innermost = min(added)
            for level, register in registers.items():
                # All levels inside of the one that goes on begin anew.
                with m.If(feature & (nest.advance[:level] == 0) if level else feature):
                    m.d.sync += register.eq(moved)
                with m.If(self.start):
                    m.d.sync += register.eq(start)
            return registers[innermost]

        def step(number):
            return Mux(pairs, number << 1, number)

        address, point = plan.x_row.shape(), plan.position.point[:9]
        x = follow("x", address, plan.x.start, {
            _PART: times(plan.x.point, address, in_part), _COLUMN: step(plan.x_step), _ROW: plan.x_row,
            _GROUP: times(plan.x.point, address, in_group), _LINE: plan.x.line, _IMAGE: plan.x.image},
            {_TURN: _COLUMN})  # fmt: skip
        position = follow("position", _POSITION, plan.position.start, {
            _PART: times(point, _POSITION, in_part), _COLUMN: step(plan.position_step),
            _GROUP: times(point, _POSITION, in_group)}, {_TURN: _COLUMN, _ROW: _GROUP})  # fmt: skip
        row = follow("row", _POSITION, plan.row.start, {_ROW: plan.row_step, _LINE: plan.row.line},
                     {_PART: _ROW, _TURN: _ROW, _COLUMN: _ROW, _GROUP: _LINE})  # fmt: skip
        return x, position, row

    def _offsets(self, m, first_x, first_position, first_row, last_place):
        """What is of the request, and then what it is compared with."""
        plan, kernel, o = self.plan, self.kernel, self.offsets
        base = Signal.like(first_x)  # of the row of the kernel
        with m.If(self.step & self.asking):
            m.d.sync += base.eq(Mux(kernel.final, plan.k, base + plan.k_pitch))
        with m.If(self.start):
            m.d.sync += base.eq(plan.k)

        x, position, row = (Signal.like(signal) for signal in (first_x, first_position, first_row))
        left, asking = Signal(self.params.pixel_width), Signal()
        places = Signal(range(self.params.lanes))  # of the request, less one
        m.d.sync += [
            x.eq(Mux(self.asking, base, first_x - self.before["x"]) + self.block),
            position.eq(first_position - self.before["position"]),
            row.eq(first_row),
            left.eq(plan.pixel_bytes - self.block),
            asking.eq(self.asking),
            places.eq(last_place),
        ]
        m.d.sync += [
            o.x.eq(x),
            o.position.eq(position),
            o.position_end.eq(plan.position_end + ~position),
            o.row_begin.eq(-row),
            o.row_end.eq(plan.row_end - row),
            o.rest.eq(Mux(left[7:].any(), 128, left[:7])),
            o.kernel.eq(asking),
            o.second.eq(0),
        ]
        for lane, place in enumerate(self.places):
            number = self._chosen({size: lane >> max(0, size - 4) for size in self._sizes})
            m.d.sync += place.there.eq(places >= number)

    def _places(self, m, pair):
        """How far the place of a lane is from the first one of the request, with the second column of a pair or not."""
        plan, lanes = self.plan, self.params.lanes
        second = Signal(2)  # for each half of the lanes
        turned = self.nest.indices[_TURN]
        m.d.sync += second.eq(Mux(pair, Cat(turned, ~turned), 0))
        for name in ("x", "position"):
            point = plan[name].point
            multiples = {}
            for number in range(lanes):
                if number & number - 1 == 0:
                    multiples[number] = point << exact_log2(number) if number else 0
                elif number % 2 == 0:
                    multiples[number] = multiples[number // 2] << 1
                else:  # 3, 5, 7
                    multiples[number] = Signal.like(self.places[0][name], name=f"{name}_times_{number}")
                    m.d.sync += multiples[number].eq(
                        (point << 3) - point if number == 7 else (point << exact_log2(number - 1)) + point
                    )
            for lane, place in enumerate(self.places):
                # These two are the same all over the job.
                first, other = (Signal.like(place[name], name=f"{name}_{what}{lane}") for what in ("first", "other"))
                mine = {size: multiples[lane >> max(0, size - 4)] for size in self._sizes}
                m.d.comb += first.eq(self._chosen(mine))
                m.d.sync += [
                    other.eq(first + plan[f"{name}_step"]),
                    place[name].eq(Mux(second[2 * lane // lanes], other, first) if self.pairs else first),
                ]
        m.d.comb += [place.row.eq(0) for place in self.places]
