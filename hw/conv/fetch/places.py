"""The places of all tiles of a job, with numbers that follow the points, and their table (docs/conv.md, "Points")."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.loop_nest import LoopNest
from ..layouts import FollowLayout, PlanLayout
from ..params import FOLDS

__all__ = ["NUMBERS", "PlaceLayout", "PlaceTable", "PointWalker", "TablePlaceLayout"]

_POINT, _LINE, _IMAGE = range(3)
#: The numbers of a feature map that follow the points.
NUMBERS = ("x", "position", "row")


class PlaceLayout(data.StructLayout):
    """A place of a tile, or two, and the numbers of its point, in ``values`` by their names in the plan."""

    def __init__(self, params, numbers, pairs=False):
        plan = PlanLayout(params)
        super().__init__(
            {
                "there": 1,  # a point of the job; otherwise the numbers are undefined
                **({"alone": 1} if params.halves > 1 else {}),  # its line is a pair without a second line
                **({"both": 1} if pairs else {}),  # and the next place, whose point is the next one of the line
                "values": data.StructLayout({name: plan[name].shape["start"].shape for name in numbers}),
                "last": 1,  # of its tile
                "final": 1,  # the pass has no point after this place; with ``last``: its last tile
            }
        )


class PointWalker(wiring.Component):
    """Walks the places of all tiles of all passes, one after the other.

    A tile has NCU · ws places. Without ``raster`` the places after the end of a line, up to the end of the tile, have
    no point. In lane-private mode a tile has up to NS rows of ws places, and ends with the row in which its line ends,
    or with ``raster`` its image. After the last point of a pass the remaining places of the tile have no point. Each
    pass starts over.

    A number begins with its ``start``. From a point to the next one on the line ``point`` is added; from the first
    point of a line to that of the next ``line``, and from image to image ``image``. Sums are modulo the width of the
    number.

    A number with an *end* in the plan stops growing along a line, or from line to line, when it reaches its end. It
    stops one addition late, so that it remains below its end plus two increments, or four where two places come at
    once.

    Latency 1 from ``start`` to the first place; then a place a cycle, without a gap between tiles or passes. With
    ``pairs`` places 2 · n and 2 · n + 1 come as one, if their points are neighbours on a line or neither has a point;
    in lane-private mode only if a row has two places or more, and so have R results.

    Parameters
    ----------
    params : ConvUnitParams
    numbers : sequence of str
        Members of the plan that are a ``FollowLayout``. The end of one is the member ``NAME_end``.
    pairs : bool
        Two places at once; NCU is 2 or more. The numbers are those of the first place.
    """

    def __init__(self, params, numbers, *, pairs=False):
        plan = PlanLayout(params)
        following = [name for name, field in plan if isinstance(field.shape, FollowLayout)]
        for name in numbers:
            if name not in following:
                raise ValueError(f"numbers must be of {', '.join(following)}, not {name!r}")
        self._params, self.numbers = params, tuple(numbers)
        self.ended = {name for name in numbers if f"{name}_end" in dict(plan)}
        self.pairs = pairs
        # Column, line and image of the point, or of the next point after places without one.
        self.nest = LoopNest([16, 16, 16], pairs=pairs)
        self.place = Signal(range(params.places))  # of the tile
        self.passes = Signal(params.pixel_width)  # that have ended
        self.line_over = Signal()  # a line has ended: no points up to the end of the tile or the row
        self.pass_over = Signal()  # the pass has ended: no points up to the end of the tile
        super().__init__(
            {
                "start": In(1),  # Strobe, while ``o.valid`` is low
                "plan": In(plan),  # constant from ``start`` until the last place has been accepted
                # Registered; ``there``, ``alone``, ``last`` and ``final`` are one or two LUTs after registers.
                "o": Out(stream.Signature(PlaceLayout(params, numbers, pairs))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.nest = nest = self.nest
        plan, o, conv = self.plan, self.o, self._params.conv

        step, point = Signal(), Signal()  # a place is accepted; it has a point
        m.d.comb += [
            step.eq(o.valid & o.ready),
            point.eq(step & o.payload.there),
            nest.start.eq(self.start),
            nest.lasts.eq(Cat(plan.last_column, plan.last_line, plan.last_image)),
            nest.step.eq(point),  # after the last point to the first one of the next pass
        ]

        row_last = Signal(range(FOLDS))  # ws - 1
        whole = conv.row_bytes.bit_length() - 1
        m.d.comb += row_last.eq(Cat(plan.granularity < whole - bit for bit in range(len(row_last))))
        in_tile, in_lanes = (Cat(Const(n - 1, (n - 1).bit_length()), row_last) for n in (conv.units, conv.slaves))
        row_over, ends, line_ends = Signal(), Signal(), Signal()
        both = self._pair(m)
        place = self.place | both  # the second one of two
        m.d.comb += [
            ends.eq(~plan.raster | (plan.lanes & nest.at_last[_LINE])),
            line_ends.eq(self.line_over | (nest.at_last[_POINT] & ends)),
            row_over.eq(plan.lanes & (place | ~row_last)[: len(row_last)].all()),
            o.payload.last.eq((place == Mux(plan.lanes, in_lanes, in_tile)) | (row_over & line_ends)),
            o.payload.there.eq(~(self.line_over | self.pass_over)),
            o.payload.final.eq(self.pass_over | (o.payload.there & nest.final)),
        ]
        if self._params.halves > 1:
            m.d.comb += o.payload.alone.eq(plan.alone & nest.ends[_LINE])
        with m.If(step):
            m.d.sync += [
                self.place.eq(Mux(o.payload.last, 0, place + 1)),
                self.line_over.eq(line_ends & ~o.payload.last),
                self.pass_over.eq(o.payload.final & ~o.payload.last),
            ]
            with m.If(o.payload.last & o.payload.final):
                m.d.sync += self.passes.eq(self.passes + 1)
                with m.If(self.passes == plan.last_pass):
                    m.d.sync += o.valid.eq(0)
        with m.If(self.start):
            m.d.sync += [o.valid.eq(1), self.passes.eq(0)]

        for name in self.numbers:
            self._follow(m, name, load=self.start | (point & nest.final), advance=nest.advance, point=point, both=both)
        return m

    def _pair(self, m):
        """Whether the next place comes with the current one."""
        if not self.pairs:
            return Const(0, 1)
        plan, o, conv = self.plan, self.o, self._params.conv
        several = Signal()  # places of a row, and of a transfer
        row, transfer = (exact_log2(size) for size in (conv.row_bytes, conv.results))
        m.d.comb += [
            several.eq(~plan.lanes | ((plan.granularity < row) & (plan.granularity < transfer + plan.wide))),
            o.payload.both.eq(several & ~self.place[0] & ~(o.payload.there & self.nest.ends[_POINT])),
            self.nest.pair.eq(o.payload.there & o.payload.both),
        ]
        return o.payload.both

    def _follow(self, m, name, *, load, advance, point, both):
        """Advances a number: its value, and its values at the beginning of the line and of the image."""
        follow, value = self.plan[name], self.o.payload.values[name]
        line, image = (Signal.like(value, name=f"{name}_{level}") for level in ("line", "image"))
        base, step, following = (Signal.like(value, name=f"{name}_{role}") for role in ("base", "step", "next"))
        stays = Signal(2, name=f"{name}_stays")  # along the line, from line to line
        with m.Switch(advance):
            with m.Case("1--"):
                m.d.comb += [base.eq(image), step.eq(follow.image)]
            with m.Case("-1-"):
                m.d.comb += [base.eq(line), step.eq(Mux(stays[_LINE], 0, follow.line))]
            with m.Default():
                m.d.comb += [base.eq(value), step.eq(Mux(stays[_POINT], 0, follow.point << both))]
        m.d.comb += following.eq(Mux(load, follow.start, base + step))

        moves = load | point
        registers = (value, moves), (line, moves & (load | ~advance[_POINT])), (image, moves & (load | advance[_IMAGE]))
        for register, enable in registers:
            with m.If(enable):
                m.d.sync += register.eq(following)
        if name in self.ended:
            # The previous value is compared: there is no time for a comparison after the sum.
            ended = Signal(name=f"{name}_ended")
            m.d.comb += ended.eq(base >= self.plan[f"{name}_end"])
            with m.If(moves):
                m.d.sync += stays[_POINT].eq(~load & advance[_POINT] & ended)
            with m.If(moves & (load | ~advance[_POINT])):
                m.d.sync += stays[_LINE].eq(~load & advance[_LINE] & ended)


class TablePlaceLayout(data.StructLayout):
    """A place in the table."""

    def __init__(self, params):
        place = PlaceLayout(params, NUMBERS)
        super().__init__({"there": 1} | dict(place["values"].shape.members))


class PlaceTable(wiring.Component):
    """Holds the places of two tiles of a convolution; each lane of a request reads the place of its own piece.

    A lane has a memory of its own. A request is for ``lanes`` successive pieces, row after row, so that a lane needs
    one of ``lanes`` places, or a few more if a place has several pieces, and its memory is that much smaller. Only if
    pairs of blocks may be requested (``pair``), lanes need the places in two orders: then there are no more places than
    units, and each lane has all of them.

    Latency: 2 cycles from ``part`` to ``o``. A place a cycle is accepted, or two with ``params.place_pairs``, while
    there is a free half; each lane needs one of the two then.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params = params
        self.half = Signal()  # of the oldest tile
        self.filling = Signal()  # half that is being written
        self.halves = Signal(2)  # halves that are complete
        self.finals = Signal(2)
        self.place = Signal(range(params.sums))
        super().__init__(
            {
                "plan": In(PlanLayout(params)),  # constant from the first place of a job to the last ``take``
                "i": In(stream.Signature(PlaceLayout(params, NUMBERS, params.place_pairs))),
                "full": Out(1),  # the oldest tile is complete
                "final": Out(1),  # it is the last one of its pass
                "part": In(range(params.places // params.lanes + 1)),  # number of a request in its set
                "pair": In(1),  # it is for two blocks of each place, with half of the lanes for each
                "take": In(1),  # Strobe, while ``full``: the request is the last one of the tile.
                # By lane: the place of the piece; undefined if the request has no such piece.
                "o": Out(data.ArrayLayout(TablePlaceLayout(params), params.lanes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        plan, i, lanes, slots = self.plan, self.i, self._params.lanes, self._params.row_slots
        half, depth = lanes // 2, self._params.sums // lanes

        pieces_log2 = Signal(2)  # pieces of a place
        whole = Signal()  # each lane has all places
        m.d.comb += [
            pieces_log2.eq(Mux(plan.granularity > 4, plan.granularity[:2], 0)),
            whole.eq(plan.granularity == self._params.conv.row_bytes.bit_length() - 1),
        ]

        # A half is read for one more cycle after ``take``, and is free after that.
        frees, freed_half, accepted = Signal(), Signal(), Signal()
        m.d.comb += [
            i.ready.eq(~self.halves.bit_select(self.filling, 1)),
            accepted.eq(i.valid & i.ready),
            self.full.eq(self.halves.bit_select(self.half, 1)),
            self.final.eq(self.finals.bit_select(self.half, 1)),
        ]
        m.d.sync += [frees.eq(self.take), freed_half.eq(self.half), self.half.eq(self.half ^ self.take)]
        with m.If(frees):
            m.d.sync += self.halves.bit_select(freed_half, 1).eq(0)
        both = i.payload.both if self._params.place_pairs else Const(0, 1)
        with m.If(accepted):
            m.d.sync += self.place.eq(Mux(i.payload.last, 0, (self.place | both) + 1))
            with m.If(i.payload.last):
                m.d.sync += [
                    self.halves.bit_select(self.filling, 1).eq(1),
                    self.finals.bit_select(self.filling, 1).eq(i.payload.final),
                    self.filling.eq(~self.filling),
                ]

        row, second = Signal(TablePlaceLayout(self._params)), Signal(TablePlaceLayout(self._params))
        piece = Signal.like(self.place)
        lane_bits = Cat(pieces_log2 <= bit for bit in range(lanes.bit_length() - 1))  # in which lanes' places differ
        m.d.comb += [
            row.there.eq(i.payload.there),
            *(row[name].eq(i.payload["values"][name]) for name in NUMBERS),
            # Beyond the end of a row the distance does not matter.
            second.eq(row),
            second.x.eq(row.x + plan.x.point),
            second.position.eq(row.position + plan.position.point),
            piece.eq(self.place << pieces_log2),  # the first one of the place, in its row of places
        ]
        for lane in range(lanes):
            m.submodules[f"places{lane}"] = memory = Memory(shape=row.shape(), depth=2 * depth, init=[])
            write = memory.write_port()
            read = memory.read_port()
            read_address = Signal.like(read.addr, name=f"read_address{lane}")
            single = self.part * (lanes // slots) + lane // slots
            paired = self.part * (half // slots) + lane % half // slots if self._params.pairs else 0
            # The second of two places is written if its pieces are this lane's, or with all places its unit's.
            second_whole, second_lane = both & (lane // slots & 1), both & (lane & 1)
            address = Signal(range(depth), name=f"address{lane}")
            m.d.comb += [
                address.eq(Mux(whole, self.place | second_whole, piece >> lanes.bit_length() - 1)),
                write.addr.eq(Cat(address, self.filling)),
                write.data.eq(Mux(Mux(whole, second_whole, second_lane), second, row)),
                write.en.eq(accepted & (whole | ((((piece | both) ^ (lane | both)) & lane_bits) == 0))),
                read.addr.eq(read_address),
                self.o[lane].eq(read.data),
            ]
            number = Mux(whole, Mux(self.pair, paired, single), self.part)
            m.d.sync += read_address.eq(Cat(number[: len(address)], self.half))
        return m
