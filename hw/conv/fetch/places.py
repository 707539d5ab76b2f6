"""The point walker: the places of all tiles of a job, with numbers that follow the points (docs/conv.md, "Points")."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.loop_nest import LoopNest
from ..layouts import FollowLayout, PlanLayout

__all__ = ["NUMBERS", "PlaceLayout", "PlaceTable", "PointWalker", "TablePlaceLayout"]

_POINT, _LINE, _IMAGE = range(3)


class PlaceLayout(data.StructLayout):
    """A place of a tile, and the numbers of its point, in ``values`` by their names in the plan; or two places."""

    def __init__(self, params, numbers, pairs=False):
        plan = PlanLayout(params)
        super().__init__(
            {
                "there": 1,  # a point of the job; otherwise its numbers are anything
                **({"alone": 1} if params.halves > 1 else {}),  # lines come by pairs, and its line has no second one
                **({"both": 1} if pairs else {}),  # the next place too, whose point is the next one of the line
                "values": data.StructLayout({name: plan[name].shape["start"].shape for name in numbers}),
                "last": 1,  # of its tile
                "final": 1,  # the pass has no point behind this place; with ``last``: the tile is its last one
            }
        )


class PointWalker(wiring.Component):
    """Walks the places of all tiles of all passes, one after the other.

    A tile has NCU · ws places. Without ``raster`` what lies behind the end of a line is surplus, up to the end of the
    tile. In lane-private mode a tile has up to NS rows of ws places, and ends with the row in which its line ends, or
    with ``raster`` its image. Behind the last point all is surplus, up to the end of the tile. Each pass starts over.

    A number begins with its ``start``. From a point to the next one on the line ``point`` is added. A line begins with
    what the line before it began with and ``line``, an image with what the image before it began with and ``image``.
    Sums are modulo the width of the number.

    A number with an *end* in the plan stays as it is along a line, or from line to line, once it is not less than that:
    one addition late, so that it remains below its end plus twice of what is added, or four times where two places come
    at once.

    Latency 1 from ``start`` to the first place; then a place a cycle, without a gap between tiles or passes. With
    ``pairs`` places 2 · n and 2 · n + 1 come as one, if their points adjoin on a line or both are surplus. In
    lane-private mode they do if a row has two places or more, and R results are those of two or more.

    Parameters
    ----------
    params : ConvUnitParams
    numbers : sequence of str
        What follows the points: members of the plan that are a ``FollowLayout``. The end of one is
        the member ``NAME_end``.
    pairs : bool
        Two places at once; NCU is 2 or more. Numbers are those of the first one.

    Members
    -------
    start : In(1)
        Strobe, while ``o.valid`` is low.
    plan : In(PlanLayout(params))
        Must hold from the cycle of ``start`` until the last place has been taken.
    o : Out(stream of PlaceLayout(params, numbers, pairs))
        Registered, but ``there``, ``alone``, ``last`` and ``final``, which are a table or two behind registers.
    """

    def __init__(self, params, numbers, *, pairs=False):
        plan = PlanLayout(params)
        followed = [name for name, field in plan if isinstance(field.shape, FollowLayout)]
        for name in numbers:
            if name not in followed:
                raise ValueError(f"numbers must be of {', '.join(followed)}, not {name!r}")
        self.params, self.numbers = params, tuple(numbers)
        self.ended = {name for name in numbers if f"{name}_end" in dict(plan)}
        self.pairs = pairs
        self.nest = LoopNest(
            [16, 16, 16], pairs=pairs
        )  # column, line, image of the point; while surplus places pass the next one
        self.place = Signal(range(params.places))  # of the tile
        self.passed = Signal(params.pixel_width)  # number of the pass
        self.line_over = Signal()  # a line has ended; places are surplus up to the end of the tile or the row
        self.pass_over = Signal()  # the pass has ended; places are surplus up to the end of the tile
        super().__init__(
            {
                "start": In(1),
                "plan": In(plan),
                "o": Out(stream.Signature(PlaceLayout(params, numbers, pairs))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.nest = nest = self.nest
        plan, o, conv = self.plan, self.o, self.params.conv

        step, point = Signal(), Signal()  # a place is taken; it is a point's
        m.d.comb += [
            step.eq(o.valid & o.ready),
            point.eq(step & o.p.there),
            nest.start.eq(self.start),
            nest.lasts.eq(Cat(plan.last_column, plan.last_line, plan.last_image)),
            nest.step.eq(point),  # from the last point on to the first one of the next pass
        ]

        row_last = Signal(range(self.params.folds))  # ws - 1
        whole = conv.row_bytes.bit_length() - 1
        m.d.comb += row_last.eq(Cat(plan.granularity < whole - bit for bit in range(len(row_last))))
        in_tile, in_lanes = (Cat(Const(n - 1, (n - 1).bit_length()), row_last) for n in (conv.units, conv.slaves))
        row_over, ends, line_ends = Signal(), Signal(), Signal()
        both = self._pair(m)
        place = self.place | both  # the last one
        m.d.comb += [
            ends.eq(~plan.raster | (plan.lanes & nest.at_last[_LINE])),
            line_ends.eq(self.line_over | (nest.at_last[_POINT] & ends)),
            row_over.eq(plan.lanes & (place | ~row_last)[: len(row_last)].all()),
            o.p.last.eq((place == Mux(plan.lanes, in_lanes, in_tile)) | (row_over & line_ends)),
            o.p.there.eq(~(self.line_over | self.pass_over)),
            o.p.final.eq(self.pass_over | (o.p.there & nest.final)),
        ]
        if self.params.halves > 1:
            m.d.comb += o.p.alone.eq(plan.alone & nest.ends[_LINE])
        with m.If(step):
            m.d.sync += [
                self.place.eq(Mux(o.p.last, 0, place + 1)),
                self.line_over.eq(line_ends & ~o.p.last),
                self.pass_over.eq(o.p.final & ~o.p.last),
            ]
            with m.If(o.p.last & o.p.final):
                m.d.sync += self.passed.eq(self.passed + 1)
                with m.If(self.passed == plan.last_pass):
                    m.d.sync += o.valid.eq(0)
        with m.If(self.start):
            m.d.sync += [o.valid.eq(1), self.passed.eq(0)]

        for name in self.numbers:
            self._follow(m, name, load=self.start | (point & nest.final), advance=nest.advance, point=point, both=both)
        return m

    def _pair(self, m):
        """Whether the next place comes with this one."""
        if not self.pairs:
            return Const(0, 1)
        plan, o, conv = self.plan, self.o, self.params.conv
        several = Signal()  # places of a row, and of a transfer
        row, transfer = (exact_log2(size) for size in (conv.row_bytes, conv.results))
        m.d.comb += [
            several.eq(~plan.lanes | ((plan.granularity < row) & (plan.granularity < transfer + plan.wide))),
            o.p.both.eq(several & ~self.place[0] & ~(o.p.there & self.nest.ends[_POINT])),
            self.nest.pair.eq(o.p.there & o.p.both),
        ]
        return o.p.both

    def _follow(self, m, name, *, load, advance, point, both):
        """Moves a number on: its value, and what its line and its image began with."""
        follow, value = self.plan[name], self.o.p.values[name]
        line, image = (Signal.like(value, name=f"{name}_{level}") for level in ("line", "image"))
        begun, added, moved = (Signal.like(value, name=f"{name}_{what}") for what in ("begun", "added", "moved"))
        stays = Signal(2, name=f"{name}_stays")  # by level: along the line, from line to line
        with m.Switch(advance):
            with m.Case("1--"):
                m.d.comb += [begun.eq(image), added.eq(follow.image)]
            with m.Case("-1-"):
                m.d.comb += [begun.eq(line), added.eq(Mux(stays[_LINE], 0, follow.line))]
            with m.Default():
                m.d.comb += [begun.eq(value), added.eq(Mux(stays[_POINT], 0, follow.point << both))]
        m.d.comb += moved.eq(Mux(load, follow.start, begun + added))

        moves = load | point
        registers = (value, moves), (line, moves & (load | ~advance[_POINT])), (image, moves & (load | advance[_IMAGE]))
        for register, changes in registers:
            with m.If(changes):
                m.d.sync += register.eq(moved)
        if name in self.ended:
            # The comparison is with what the number was: the sum has no time for it.
            ended = Signal(name=f"{name}_ended")
            m.d.comb += ended.eq(begun >= self.plan[f"{name}_end"])
            with m.If(moves):
                m.d.sync += stays[_POINT].eq(~load & advance[_POINT] & ended)
            with m.If(moves & (load | ~advance[_POINT])):
                m.d.sync += stays[_LINE].eq(~load & advance[_LINE] & ended)


#: What follows the points of a feature map.
NUMBERS = ("x", "position", "row")


class TablePlaceLayout(data.StructLayout):
    """What is known of a place."""

    def __init__(self, params):
        place = PlaceLayout(params, NUMBERS)
        super().__init__({"there": 1} | dict(place["values"].shape.members))


class PlaceTable(wiring.Component):
    """Holds the places of two tiles of a convolution; each lane of a request reads the place of its own piece.

    A lane has a memory of its own. A request asks for ``lanes`` successive pieces of a row after the other, so that a
    lane needs one place of ``lanes``, or where a place has several pieces a few more, and its memory is as much
    smaller. Only where pairs of blocks are asked for (``pair``) the lanes see the places in two orders: then there are
    no more than a unit's number of them, and each lane has all.

    The memories are read two cycles after ``part``; a place a cycle comes in, or two with ``params.place_pairs``, while
    there is a free half. Each lane needs one of two then.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        Constant from the first place of a job to the last ``take``.
    i : In(stream of PlaceLayout(params, NUMBERS, params.place_pairs))
    full : Out(1)
        The oldest tile is complete.
    final : Out(1)
        It is the last one of its pass.
    part : In(range(params.places // params.lanes + 1))
        Number of a request in its set.
    pair : In(1)
        It asks for two blocks of each place: half the lanes for each.
    take : In(1)
        Strobe, while ``full``: the request is the last one of the tile.
    o : Out(array of params.lanes TablePlaceLayout(params))
        Places of the pieces of the request of two cycles ago; anything if it has none for the piece.
    """

    def __init__(self, params):
        self.params = params
        self.half = Signal()  # of the oldest tile
        self.filling = Signal()  # half that places come into
        self.halves = Signal(2)  # which are complete
        self.finals = Signal(2)
        self.place = Signal(range(params.sums))
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "i": In(stream.Signature(PlaceLayout(params, NUMBERS, params.place_pairs))),
                "full": Out(1),
                "final": Out(1),
                "part": In(range(params.places // params.lanes + 1)),
                "pair": In(1),
                "take": In(1),
                "o": Out(data.ArrayLayout(TablePlaceLayout(params), params.lanes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        plan, i, lanes, slots = self.plan, self.i, self.params.lanes, self.params.row_slots
        half, depth = lanes // 2, self.params.sums // lanes

        pieces_log2 = Signal(2)  # pieces of a place
        whole = Signal()  # each lane has all places
        m.d.comb += [
            pieces_log2.eq(Mux(plan.granularity > 4, plan.granularity[:2], 0)),
            whole.eq(plan.granularity == self.params.conv.row_bytes.bit_length() - 1),
        ]

        # A half that is left is written again from the second cycle on: it is being read in the first one.
        leaving, left = Signal(), Signal()
        coming = Signal()
        m.d.comb += [
            i.ready.eq(~self.halves.bit_select(self.filling, 1)),
            coming.eq(i.valid & i.ready),
            self.full.eq(self.halves.bit_select(self.half, 1)),
            self.final.eq(self.finals.bit_select(self.half, 1)),
        ]
        m.d.sync += [leaving.eq(self.take), left.eq(self.half), self.half.eq(self.half ^ self.take)]
        with m.If(leaving):
            m.d.sync += self.halves.bit_select(left, 1).eq(0)
        both = i.p.both if self.params.place_pairs else Const(0, 1)
        with m.If(coming):
            m.d.sync += self.place.eq(Mux(i.p.last, 0, (self.place | both) + 1))
            with m.If(i.p.last):
                m.d.sync += [
                    self.halves.bit_select(self.filling, 1).eq(1),
                    self.finals.bit_select(self.filling, 1).eq(i.p.final),
                    self.filling.eq(~self.filling),
                ]

        row, second = Signal(TablePlaceLayout(self.params)), Signal(TablePlaceLayout(self.params))
        piece = Signal.like(self.place)
        several = Cat(pieces_log2 <= bit for bit in range(lanes.bit_length() - 1))  # bits that tell lanes' places apart
        m.d.comb += [
            row.there.eq(i.p.there),
            *(row[name].eq(i.p["values"][name]) for name in NUMBERS),
            # Behind the end of a row it does not matter by how much.
            second.eq(row),
            second.x.eq(row.x + plan.x.point),
            second.position.eq(row.position + plan.position.point),
            piece.eq(self.place << pieces_log2),  # the first one of the place, in its row of places
        ]
        for lane in range(lanes):
            m.submodules[f"places{lane}"] = memory = Memory(shape=row.shape(), depth=2 * depth, init=[])
            write = memory.write_port()
            read = memory.read_port()
            asked = Signal.like(read.addr, name=f"asked{lane}")
            single = self.part * (lanes // slots) + lane // slots
            paired = self.part * (half // slots) + lane % half // slots if self.params.pairs else 0
            # Of two places a lane takes the one that it needs: its own, or where it has all those of its unit.
            second_whole, second_here = both & (lane // slots & 1), both & (lane & 1)
            address = Signal(range(depth), name=f"address{lane}")
            m.d.comb += [
                address.eq(Mux(whole, self.place | second_whole, piece >> lanes.bit_length() - 1)),
                write.addr.eq(Cat(address, self.filling)),
                write.data.eq(Mux(Mux(whole, second_whole, second_here), second, row)),
                write.en.eq(coming & (whole | ((((piece | both) ^ (lane | both)) & several) == 0))),
                read.addr.eq(asked),
                self.o[lane].eq(read.data),
            ]
            number = Mux(whole, Mux(self.pair, paired, single), self.part)
            m.d.sync += asked.eq(Cat(number[: len(address)], self.half))
        return m
