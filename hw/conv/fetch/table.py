"""The table of places: the tile whose rows are being fetched, and the next one (docs/conv.md, "Points")."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..layouts import PlanLayout
from .points import PlaceLayout

__all__ = ["NUMBERS", "PlaceTable", "TablePlaceLayout"]

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
