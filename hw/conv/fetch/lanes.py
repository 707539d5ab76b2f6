"""The order of requests in lane-private mode (docs/conv.md, "Lane-private mode")."""

from functools import reduce
from operator import add

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import KERNEL_ROWS

from ...lib.logic import mux_tree
from ...lib.loop_nest import LoopNest
from ..layouts import PlanLayout
from .places import TablePlaceLayout
from .reads import in_pairs
from .sets import FeatureTagLayout, OffsetsLayout

__all__ = ["LaneWalker"]

_PART, _TURN, _COLUMN, _ROW, _GROUP, _LINE, _IMAGE, _PASS = range(8)
#: Rows and columns from 2^17 on are outside X, and counting stops there.
_FAR = 17
#: Positions below that, and one more step: a stride of up to 256, for at most 256 points.
_POSITION = signed(_FAR + 2)
_PASS_BITS = 17


class LaneWalker(wiring.Component):
    """Walks the requests of a job in lane-private mode: features of all slaves, word by word, and rows of the kernel.

    A *group* is the set of rows of one line that all slaves have at once: up to NS · ws points. A word holds its rows
    for one kernel position, and takes a request for every ``lanes`` pieces, as far as the line has points. With
    ``keeps`` the lines of X are requested one after the other, once in a pass: group after group, and for each group
    the kernel's columns. Otherwise the words of a group are requested kernel row after kernel row, again for each
    output line.

    With rotation only the first columns of the kernel have words, one with a stride of 1 and two with a stride of 2;
    the last words of a line have further points for the other columns. With ``raster`` a line begins in its first word
    at the place after the last point of the previous line, so that one or two requests may have places without a point.

    With an even stride every second column is requested, whose chunks are in half of the banks or fewer. Therefore two
    kernel columns that are an odd number apart are requested together: the lower half of the lanes for the first of
    the two words and the upper half for the second, and then vice versa. Blocks of two chunks are requested so only if
    these columns are an even number of chunks apart.

    Rows of the kernel are requested before the words that they are multiplied with: all of them at the beginning of a
    pass, or if they do not stay one before each word. In pooling there are none.

    A request a cycle. ``tag`` is a few LUTs after registers; ``offsets`` and ``places`` are two cycles later.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        part = len(FeatureTagLayout(params)["part"].shape)
        self.nest = LoopNest([part, 1, 8, 8, 16, 24, 16, _PASS_BITS])
        self.pairs = params.pairs and not in_pairs(params)  # columns may be requested in pairs
        self.kernel = LoopNest([8, 8])  # rows of the kernel
        self.kernel_turn = Signal()  # the request is for one of these
        self.word, self.kernel_row = Signal(range(params.words)), Signal(range(KERNEL_ROWS))
        self.block = Signal(params.pixel_width)  # first byte of the block in its pixel
        self.begin = Signal(range(2 * params.conv.slaves))  # point of its first group that the line begins with
        # From the first place of that group to this point, as address and as column.
        self.before = {"x": Signal(params.smem.addr_width), "position": Signal(_POSITION)}
        super().__init__(
            {
                "start": In(1),  # Strobe, while not ``busy``.
                "plan": In(PlanLayout(params)),  # constant from ``start`` until two cycles after the last ``step``
                "busy": Out(1),  # there is a request
                "step": In(1),  # Strobe: go to the next request.
                "tag": Out(FeatureTagLayout(params)),  # words are counted from 0 after a reset, over jobs
                # Of the request of two cycles ago; registered.
                "offsets": Out(OffsetsLayout(params)),
                # By lane: the distance of its place from the first one of the request.
                "places": Out(data.ArrayLayout(TablePlaceLayout(params), params.lanes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.nest, m.submodules.kernel = nest, kernel = self.nest, self.kernel
        params, plan, tag = self._params, self.plan, self.tag
        lanes_log2, row_log2 = exact_log2(params.lanes), exact_log2(params.conv.row_bytes)
        self._sizes = range(row_log2 - 4, row_log2 + 1)

        # Logarithms of the places of a request, and of the points of a group.
        in_part = {size: lanes_log2 - max(0, size - 4) for size in self._sizes}
        in_group = {size: exact_log2(params.conv.slaves) + row_log2 - size for size in self._sizes}
        parts = {size: max(1 << in_group[size] >> in_part[size], 1) - 1 for size in self._sizes}
        # The last request of a line's last group, and whether it is the current one.
        last_part, ends = Signal(len(nest.indices[_PART])), Signal()
        feature, place = Signal(), Signal(18)
        if params.conv.rotation:
            self._begin(m, feature, in_group)
        m.d.comb += place.eq(plan.last_place + self.begin)
        of_group = {size: place[: in_group[size]] for size in self._sizes}
        # A line that begins later in its first word may have no points in its last group.
        empty = self._by_size({size: place >> in_group[size] for size in self._sizes}) != plan.last_group
        in_last = Mux(empty, 0, self._by_size({size: of_group[size][: in_part[size]] for size in self._sizes}))
        m.d.sync += last_part.eq(
            Mux(empty, 0, self._by_size({size: of_group[size] >> in_part[size] for size in self._sizes}))
        )
        word_over, pass_over = Signal(), Signal()
        pairs, pair = Signal(), Signal()  # columns come in pairs; the current ones do
        apart = ~plan.position.point[0] & plan.position_step[0] & ~((plan.granularity == 5) & plan.x_step[4])
        m.d.comb += [
            pairs.eq(apart & plan.kernel_stays & (plan.granularity >= 4) & (plan.last_plane != 0) & self.pairs),
            # The last of an odd number of columns is alone.
            pair.eq(pairs & (plan.last_plane[0] | ~nest.at_last[_COLUMN])),
            nest.lasts[_TURN].eq(pairs),
            nest.cut[_TURN].eq(~pair),
            nest.start.eq(self.start),
            nest.lasts[_PART].eq(self._by_size(parts)),
            # The number of the last place decides how many points the last group of a line has.
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
            kernel.step.eq(self.step & self.kernel_turn),
            feature.eq(self.step & ~self.kernel_turn),
            nest.step.eq(feature),
            word_over.eq(feature & nest.at_last[:_COLUMN].all()),
            pass_over.eq(feature & nest.at_last[:_PASS].all()),
        ]
        with m.If(self.step & self.kernel_turn):
            m.d.sync += [
                self.kernel_turn.eq(plan.kernel_stays & ~kernel.final),
                self.kernel_row.eq(self.kernel_row + 1),
            ]
        with m.If(word_over):
            m.d.sync += [
                self.kernel_turn.eq(~plan.pool & (pass_over | ~plan.kernel_stays)),
                self.word.eq(self.word + Mux(pair, 2, 1)),
            ]
        with m.If(feature & nest.final):
            m.d.sync += self.busy.eq(0)
        with m.If(pass_over):
            m.d.sync += self.block.eq(self.block + (1 << plan.granularity))
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), self.kernel_turn.eq(~plan.pool), self.block.eq(0)]

        m.d.comb += [
            tag.word.eq(Mux(self.kernel_turn, self.kernel_row, self.word)),
            tag.part.eq(nest.indices[_PART]),
            tag.period.eq(
                Mux(self.kernel_turn, plan.granularity, Mux(plan.granularity > 4, 4, plan.granularity) + lanes_log2)
            ),
            tag.slaves.eq(~self.kernel_turn),
            tag.kernel.eq(self.kernel_turn),
            tag.complete.eq(nest.at_last[:_COLUMN].all()),
            tag.pair.eq(pair & ~self.kernel_turn),
            tag.turned.eq(nest.indices[_TURN] & ~self.kernel_turn),
        ]

        x, position, row = self._follow(m, feature, in_part, in_group, pairs)
        self._offsets(m, x, position, row, Mux(ends, in_last, params.lanes - 1))
        self._places(m, pair)
        return m

    def _by_size(self, values):
        """The value for the size of blocks."""
        return mux_tree(self.plan.granularity, values)

    def _begin(self, m, feature, in_group):
        """Follows the beginning of lines: Wo points later every sh lines, modulo the points of a group."""
        plan, nest, width = self.plan, self.nest, len(self.begin)
        over, round_over, image_over = Signal(), Signal(), Signal()
        lines, last, following = Signal(9), Signal(width), Signal(width)
        whole = exact_log2(self._params.conv.row_bytes)
        m.d.comb += [
            over.eq(feature & nest.at_last[:_LINE].all()),
            round_over.eq(lines == plan.stride),
            image_over.eq(nest.at_last[_LINE] | ~plan.raster),
            last.eq(Mux(plan.granularity == whole, (1 << in_group[whole]) - 1, (2 << in_group[whole]) - 1)),
            following.eq(Mux(round_over, self.begin + plan.last_column + 1, self.begin) & last),
        ]
        with m.If(over):
            m.d.sync += [
                lines.eq(Mux(round_over | image_over, 0, lines + 1)),
                self.begin.eq(Mux(image_over, 0, following)),
            ]
        with m.If(self.start):
            m.d.sync += [lines.eq(0), self.begin.eq(0)]
        for name, before in self.before.items():
            # The product has a cycle of its own, as a line has two requests or more if its groups have several points.
            point, product = plan[name].point[: len(before)], Signal.like(before, name=f"{name}_product")
            m.d.sync += product.eq(reduce(add, (Mux(following[bit], point << bit, 0) for bit in range(width))))
            with m.If(over):
                m.d.sync += before.eq(Mux(image_over, 0, product))
            with m.If(self.start):
                m.d.sync += before.eq(0)

    def _follow(self, m, feature, in_part, in_group, pairs):
        """Follows address, column and row of the request's first place.

        An outer level of the nest continues from where it last began.
        """
        plan, nest = self.plan, self.nest

        def times(number, shape, log2s):
            product = Signal(shape)
            m.d.sync += product.eq(self._by_size({size: number << log2 for size, log2 in log2s.items()}))
            return product

        def follow(name, shape, start, added, begins):
            """A number with the increments ``added`` of its levels; other levels continue from those in ``begins``."""
            registers = {level: Signal(shape, name=f"{name}_{level}") for level in added}
            base, step, following = (Signal(shape, name=f"{name}_{role}") for role in ("base", "step", "next"))
            m.d.comb += following.eq(base + step)
            with m.Switch(nest.advance):
                for level in range(_PASS):
                    with m.Case("".join("1" if each == level else "-" for each in reversed(range(_PASS + 1)))):
                        if level in added:
                            register = registers[level]
                            # Addresses are modulo the memory; other numbers must not wrap.
                            far = register[_FAR:-1].any() & ~register[-1] if shape.signed else 0
                            m.d.comb += [base.eq(register), step.eq(Mux(far, 0, added[level]))]
                        else:
                            m.d.comb += base.eq(registers[begins[level]] if level in begins else start)
                with m.Default():
                    m.d.comb += base.eq(start)
            innermost = min(added)
            for level, register in registers.items():
                # All levels inside the one that advances begin with the same value.
                with m.If(feature & (nest.advance[:level] == 0) if level else feature):
                    m.d.sync += register.eq(following)
                with m.If(self.start):
                    m.d.sync += register.eq(start)
            return registers[innermost]

        def column_step(number):
            return Mux(pairs, number << 1, number)

        address, point = plan.x_row.shape(), plan.position.point[:9]
        x = follow("x", address, plan.x.start, {
            _PART: times(plan.x.point, address, in_part), _COLUMN: column_step(plan.x_step), _ROW: plan.x_row,
            _GROUP: times(plan.x.point, address, in_group), _LINE: plan.x.line, _IMAGE: plan.x.image},
            {_TURN: _COLUMN})  # fmt: skip
        position = follow("position", _POSITION, plan.position.start, {
            _PART: times(point, _POSITION, in_part), _COLUMN: column_step(plan.position_step),
            _GROUP: times(point, _POSITION, in_group)}, {_TURN: _COLUMN, _ROW: _GROUP})  # fmt: skip
        row = follow("row", _POSITION, plan.row.start, {_ROW: plan.row_step, _LINE: plan.row.line},
                     {_PART: _ROW, _TURN: _ROW, _COLUMN: _ROW, _GROUP: _LINE})  # fmt: skip
        return x, position, row

    def _offsets(self, m, first_x, first_position, first_row, last_place):
        """Registers the numbers of the request, and then what places are compared with."""
        plan, kernel, o = self.plan, self.kernel, self.offsets
        kernel_address = Signal.like(first_x)
        with m.If(self.step & self.kernel_turn):
            m.d.sync += kernel_address.eq(Mux(kernel.final, plan.k, kernel_address + plan.k_pitch))
        with m.If(self.start):
            m.d.sync += kernel_address.eq(plan.k)

        x, position, row = (Signal.like(signal) for signal in (first_x, first_position, first_row))
        rest, kernel_turn = Signal(self._params.pixel_width), Signal()
        places = Signal(range(self._params.lanes))  # of the request, minus one
        m.d.sync += [
            x.eq(Mux(self.kernel_turn, kernel_address, first_x - self.before["x"]) + self.block),
            position.eq(first_position - self.before["position"]),
            row.eq(first_row),
            rest.eq(plan.pixel_bytes - self.block),
            kernel_turn.eq(self.kernel_turn),
            places.eq(last_place),
        ]
        m.d.sync += [
            o.x.eq(x),
            o.position.eq(position),
            o.position_end.eq(plan.position_end + ~position),
            o.row_begin.eq(-row),
            o.row_end.eq(plan.row_end - row),
            o.rest.eq(Mux(rest[7:].any(), 128, rest[:7])),
            o.kernel.eq(kernel_turn),
            o.second.eq(0),
        ]
        for lane, place in enumerate(self.places):
            number = self._by_size({size: lane >> max(0, size - 4) for size in self._sizes})
            m.d.sync += place.there.eq(places >= number)

    def _places(self, m, pair):
        """Registers the distance of each lane's place from the first one, for the first or second column of a pair."""
        plan, lanes = self.plan, self._params.lanes
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
                # Both columns have the same distances throughout a job.
                first, other = (
                    Signal.like(place[name], name=f"{name}_{column}{lane}") for column in ("first", "second")
                )
                m.d.comb += first.eq(self._by_size({size: multiples[lane >> max(0, size - 4)] for size in self._sizes}))
                m.d.sync += [
                    other.eq(first + plan[f"{name}_step"]),
                    place[name].eq(Mux(second[2 * lane // lanes], other, first) if self.pairs else first),
                ]
        m.d.comb += [place.row.eq(0) for place in self.places]
