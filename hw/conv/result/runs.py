"""The run cutter: places of groups become pieces of runs, with addresses."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...lib.stream import ShallowQueue
from ..layouts import PlanLayout
from .layouts import GroupPlaceLayout, ResultSizes, RunPieceLayout, both_places

__all__ = ["RunCutter"]

#: Places that wait, and pieces: at least two groups of the most places.
_PLACES, _PIECES, _GROUPS = 32, 32, 16


class RunCutter(wiring.Component):
    """Cuts the runs of groups to pieces of at most W bytes, in the order in which the assembler collects them.

    The *run* of a place are the bytes of its results of a pass. In a convolution pieces come W bytes after W bytes of
    the runs, and of each in all places of the group; in lane-private mode run after run. Where at most W / 2 bytes of
    two places that come together are left, in lane-private mode of whole runs, both pieces come as one, if there are
    pairs (:class:`ResultSizes`).

    Addresses of places lie in a ring, for those of a group are looked at several times: one for two that come together.
    Latency 3; a piece a cycle, and a place, or two, a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        ``lanes``, ``wide``, ``granularity``, ``result_log2`` and ``y`` are used. Must hold while anything is under way.
    i : In(stream of GroupPlaceLayout(params))
        ``ready`` depends on registers only.
    o : Out(stream of RunPieceLayout(params))
        From a memory that is read combinationally.
    idle : Out(1)
        There is no piece, and no place of which one would be made. From registers.
    """

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        self._run_bytes = 4 * self._sizes.most_channels
        both = {"both": 1} if self._sizes.pairs else {}
        entry = data.StructLayout({"y": params.smem.addr_width} | both)
        self.ring = Memory(shape=entry, depth=_PLACES, init=[])
        self.tail, self.base = Signal(range(_PLACES)), Signal(range(_PLACES))  # next free entry, first one of the group
        self.level = Signal(range(_PLACES + 1))
        self.groups = ShallowQueue(
            data.StructLayout({"entries": range(params.folds), "last_byte": range(self._run_bytes)}), _GROUPS
        )
        self.pieces = ShallowQueue(RunPieceLayout(params), _PIECES)
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "i": In(stream.Signature(GroupPlaceLayout(params))),
                "o": Out(stream.Signature(RunPieceLayout(params))),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.groups, m.submodules.pieces = self.groups, self.pieces
        m.submodules.ring = ring = self.ring
        write, read = ring.write_port(), ring.read_port(domain="comb")
        plan, i, groups = self.plan, self.i, self.groups

        count = Signal(range(self._params.folds + 1))  # entries of the group that came before
        entries, taken, kept = Signal.like(count), Signal(), Signal()
        m.d.comb += [
            i.ready.eq((self.level != _PLACES) & groups.i.ready),
            taken.eq(i.valid & i.ready),
            kept.eq(taken & i.p.there),
            entries.eq(count + i.p.there),
            groups.i.valid.eq(taken & i.p.group_last & i.p.any),
            groups.i.p.entries.eq(entries - 1),
            groups.i.p.last_byte.eq(((i.p.channels + 1) << plan.result_log2) - 1),
            write.addr.eq(self.tail),
            write.data.eq(Cat(i.p.y, both_places(self._sizes, i.p))),
            write.en.eq(kept),
        ]
        with m.If(taken):
            m.d.sync += [count.eq(Mux(i.p.group_last, 0, entries)), self.tail.eq(self.tail + i.p.there)]

        gone = Signal.like(count)
        m.d.sync += self.level.eq(self.level + kept - gone)
        made = self._walk(m, read, gone)
        m.d.comb += self.idle.eq(~groups.o.valid & ~made & (count == 0) & ~self.pieces.o.valid)
        m.d.comb += [
            self.o.valid.eq(self.pieces.o.valid),
            self.o.p.eq(self.pieces.o.p),
            self.pieces.o.ready.eq(self.o.ready),
        ]
        return m

    def _walk(self, m, read, gone):
        """Goes through the pieces of the oldest group; whether one is between its address and the queue."""
        sizes, plan, group = self._sizes, self.plan, self.groups.o
        width, whole_width = exact_log2(sizes.piece_bytes), exact_log2(sizes.buffer_bytes)
        entry, second = Signal(range(self._params.folds)), Signal()  # of the group; the second one of its places
        place = Signal(range(self._params.folds))
        segment = Signal(range(max(1, self._run_bytes // sizes.piece_bytes)))  # of W bytes
        place_last, segment_last, group_over, go = Signal(), Signal(), Signal(), Signal()
        pair, entry_over = Signal(), Signal()  # both places have a piece; that was the last one of the entry
        both = both_places(sizes, read.data) & ~second
        short = group.p.last_byte[:width] < sizes.piece_bytes // 2
        m.d.comb += [
            segment_last.eq(segment == group.p.last_byte >> width),
            pair.eq(both & segment_last & short & ~(plan.lanes & (segment != 0))),
            entry_over.eq(~both | pair),
            place_last.eq(entry_over & (entry == group.p.entries)),
            group_over.eq(place_last & segment_last),
            group.ready.eq(go & group_over),
            gone.eq(Mux(go & group_over, group.p.entries + 1, 0)),
            read.addr.eq(self.base + entry),
        ]
        with m.If(go):
            with m.If(~plan.lanes | segment_last):
                m.d.sync += [
                    place.eq(Mux(place_last, 0, place + 1 + pair)),
                    entry.eq(Mux(place_last, 0, entry + entry_over)),
                    second.eq(~entry_over),
                ]
            with m.If(plan.lanes | place_last):
                m.d.sync += segment.eq(Mux(segment_last, 0, segment + 1))
            with m.If(group_over):
                m.d.sync += self.base.eq(self.base + group.p.entries + 1)

        # In lane-private mode a flush are W bytes, or one transfer; several places are always in one.
        results_log2 = exact_log2(self._params.conv.results)
        fits = Signal(range(max(1, sizes.buffer_bytes // sizes.piece_bytes)))  # segments of a flush, less one
        elements = Signal(range(8))  # log2 of the elements of a place in a row
        position, stride, flush_last = Signal(whole_width), Signal(whole_width), Signal()
        transfer = Const(self._params.conv.results, results_log2 + 3) << plan.result_log2
        m.d.comb += [
            fits.eq(Mux(transfer > sizes.piece_bytes, (transfer >> width) - 1, 0)),
            elements.eq(plan.granularity - plan.wide),
        ]
        with m.If(plan.lanes):
            m.d.comb += [
                position.eq((place << elements << plan.result_log2) | (segment & fits) << width),
                stride.eq(1 << elements << plan.result_log2),
                flush_last.eq(group_over | ((elements >= results_log2) & ((segment & fits) == fits))),
            ]
        with m.Else():
            m.d.comb += [position.eq(place << width), stride.eq(sizes.piece_bytes), flush_last.eq(place_last)]

        made = Signal()
        address, lowest = Signal(self._params.smem.addr_width), Signal(4)
        piece = Signal(RunPieceLayout(self._params))
        moves = ~made | self.pieces.i.ready
        m.d.comb += go.eq(group.valid & moves)
        with m.If(moves):
            m.d.sync += [
                made.eq(group.valid),
                address.eq(read.data.y + Mux(second, plan.y.point, 0) + (segment << width)),
                lowest.eq(position[:4]),
                piece.slot.eq(position[4:]),
                piece.bytes.eq(Mux(segment_last, group.p.last_byte, sizes.piece_bytes - 1)),
                piece.flush_last.eq(flush_last),
            ]
        queued = self.pieces.i
        m.d.comb += [
            queued.valid.eq(made),
            queued.p.eq(piece),
            queued.p.origin.eq(address - lowest),
            queued.p.first.eq((address - lowest)[:4] + lowest),
            queued.p.last.eq(queued.p.first + piece.bytes),
        ]
        if sizes.pairs:
            self._second(m, read, moves, pair, second, segment << width, (position, stride), piece)
        return made

    def _second(self, m, read, moves, pair, second, behind, places, piece):
        """The second half of a window: what follows the first, or what there is of the next place.

        A pair begins with a place of even number, so that one bit of the position is added for the next one.
        """
        half, queued = self._sizes.piece_bytes // 2, self.pieces.i.p.second
        address, lowest, less = Signal(self._params.smem.addr_width), Signal(4), Signal(signed(8))
        position = places[0] | Mux(pair, places[1], half)
        with m.If(moves):
            m.d.sync += [
                address.eq(read.data.y + Mux(pair | second, self.plan.y.point, 0) + behind),
                lowest.eq(position[:4]),
                less.eq(Mux(pair, position[:4], position[:4] - half)),
                piece.second.slot.eq(position[4:]),
                piece.second.there.eq(pair),
            ]
        m.d.comb += [
            queued.origin.eq(address - less),
            queued.first.eq((address - less)[:4] + lowest),
            queued.last.eq(queued.first + piece.bytes),
        ]
