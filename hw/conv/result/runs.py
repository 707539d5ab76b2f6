"""The run cutter: it cuts the results of places into pieces with addresses."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ...lib.stream import ShallowQueue
from ..layouts import PlanLayout
from ..params import FOLDS
from .layouts import GroupPlaceLayout, ResultSizes, RunPieceLayout, both_places

__all__ = ["RunCutter"]

#: Places, pieces and groups that can wait: at least two groups of the largest size.
_PLACES, _PIECES, _GROUPS = 32, 32, 16


class RunCutter(wiring.Component):
    """Cuts the runs of groups into pieces of at most W bytes, in the order in which the assembler collects them.

    The *run* of a place is the bytes of its results in a pass. In a convolution the first W bytes of the runs of all
    places of the group come first, then the next W bytes; in lane-private mode run after run. With pairs
    (:class:`ResultSizes`) the pieces of two places that come together are sent as one if at most W / 2 bytes of each
    remain, in lane-private mode only if these are whole runs.

    The addresses of a group are used several times and therefore kept in a ring, one entry for two places that come
    together. Latency 3; a piece a cycle, and a payload, of one place or two, a cycle.

    Parameters
    ----------
    params : ConvUnitParams
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
            data.StructLayout({"entries": range(FOLDS), "last_byte": range(self._run_bytes)}), _GROUPS
        )
        self.pieces = ShallowQueue(RunPieceLayout(params), _PIECES)
        super().__init__(
            {
                "plan": In(PlanLayout(params)),  # constant while anything is under way
                "i": In(stream.Signature(GroupPlaceLayout(params))),
                "o": Out(stream.Signature(RunPieceLayout(params))),
                "idle": Out(1),  # there is no piece, and no place that will have one
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.groups, m.submodules.pieces = self.groups, self.pieces
        m.submodules.ring = ring = self.ring
        write, read = ring.write_port(), ring.read_port(domain="comb")
        plan, i, place, groups = self.plan, self.i, self.i.payload, self.groups

        count = Signal(range(FOLDS + 1))  # previous entries of the group
        entries, accepted, stored = Signal.like(count), Signal(), Signal()
        m.d.comb += [
            i.ready.eq((self.level != _PLACES) & groups.i.ready),
            accepted.eq(i.valid & i.ready),
            stored.eq(accepted & place.there),
            entries.eq(count + place.there),
            groups.i.valid.eq(accepted & place.group_last & place.any),
            groups.i.payload.entries.eq(entries - 1),
            groups.i.payload.last_byte.eq(((place.channels + 1) << plan.result_log2) - 1),
            write.addr.eq(self.tail),
            write.data.eq(Cat(place.y, both_places(self._sizes, place))),
            write.en.eq(stored),
        ]
        with m.If(accepted):
            m.d.sync += [count.eq(Mux(place.group_last, 0, entries)), self.tail.eq(self.tail + place.there)]

        removed = Signal.like(count)
        m.d.sync += self.level.eq(self.level + stored - removed)
        pending = self._walk(m, read, removed)
        m.d.comb += self.idle.eq(~groups.o.valid & ~pending & (count == 0) & ~self.pieces.o.valid)
        connect(m, self.pieces.o, flipped(self.o))
        return m

    def _walk(self, m, read, removed):
        """Walks the pieces of the oldest group. Returns whether one is on its way to the queue."""
        sizes, plan, group = self._sizes, self.plan, self.groups.o
        width, whole_width = exact_log2(sizes.piece_bytes), exact_log2(sizes.buffer_bytes)
        entry, second = Signal(range(FOLDS)), Signal()  # of the group; the second place of the entry
        place = Signal(range(FOLDS))
        segment = Signal(range(max(1, self._run_bytes // sizes.piece_bytes)))  # of W bytes
        place_last, segment_last, group_over, step = Signal(), Signal(), Signal(), Signal()
        pair, entry_over = Signal(), Signal()  # the piece is for both places; it is the last one of the entry
        both = both_places(sizes, read.data) & ~second
        short = group.payload.last_byte[:width] < sizes.piece_bytes // 2
        m.d.comb += [
            segment_last.eq(segment == group.payload.last_byte >> width),
            pair.eq(both & segment_last & short & ~(plan.lanes & (segment != 0))),
            entry_over.eq(~both | pair),
            place_last.eq(entry_over & (entry == group.payload.entries)),
            group_over.eq(place_last & segment_last),
            group.ready.eq(step & group_over),
            removed.eq(Mux(step & group_over, group.payload.entries + 1, 0)),
            read.addr.eq(self.base + entry),
        ]
        with m.If(step):
            with m.If(~plan.lanes | segment_last):
                m.d.sync += [
                    place.eq(Mux(place_last, 0, place + 1 + pair)),
                    entry.eq(Mux(place_last, 0, entry + entry_over)),
                    second.eq(~entry_over),
                ]
            with m.If(plan.lanes | place_last):
                m.d.sync += segment.eq(Mux(segment_last, 0, segment + 1))
            with m.If(group_over):
                m.d.sync += self.base.eq(self.base + group.payload.entries + 1)

        # In lane-private mode a flush is W bytes, or one transfer; several places are always in one flush.
        results_log2 = exact_log2(self._params.conv.results)
        fits = Signal(range(max(1, sizes.buffer_bytes // sizes.piece_bytes)))  # segments of a flush, minus one
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

        pending = Signal()
        address, lowest = Signal(self._params.smem.addr_width), Signal(4)
        piece = Signal(RunPieceLayout(self._params))
        enable = ~pending | self.pieces.i.ready
        m.d.comb += step.eq(group.valid & enable)
        with m.If(enable):
            m.d.sync += [
                pending.eq(group.valid),
                address.eq(read.data.y + Mux(second, plan.y.point, 0) + (segment << width)),
                lowest.eq(position[:4]),
                piece.slot.eq(position[4:]),
                piece.bytes.eq(Mux(segment_last, group.payload.last_byte, sizes.piece_bytes - 1)),
                piece.flush_last.eq(flush_last),
            ]
        queued = self.pieces.i
        m.d.comb += [
            queued.valid.eq(pending),
            queued.payload.eq(piece),
            queued.payload.origin.eq(address - lowest),
            queued.payload.first.eq((address - lowest)[:4] + lowest),
            queued.payload.last.eq(queued.payload.first + piece.bytes),
        ]
        if sizes.pairs:
            self._second(m, read, enable, pair, second, segment << width, (position, stride), piece)
        return pending

    def _second(self, m, read, enable, pair, second, offset, positions, piece):
        """Describes the second half of a window: the continuation of the first, or the piece of the next place.

        A pair begins with an even place, so that the position of the next one differs in one bit.
        """
        half, queued = self._sizes.piece_bytes // 2, self.pieces.i.payload.second
        address, lowest, distance = Signal(self._params.smem.addr_width), Signal(4), Signal(signed(8))
        position = positions[0] | Mux(pair, positions[1], half)
        with m.If(enable):
            m.d.sync += [
                address.eq(read.data.y + Mux(pair | second, self.plan.y.point, 0) + offset),
                lowest.eq(position[:4]),
                distance.eq(Mux(pair, position[:4], position[:4] - half)),
                piece.second.slot.eq(position[4:]),
                piece.second.there.eq(pair),
            ]
        m.d.comb += [
            queued.origin.eq(address - distance),
            queued.first.eq((address - distance)[:4] + lowest),
            queued.last.eq(queued.first + piece.bytes),
        ]
