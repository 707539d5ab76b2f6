"""The lanes of an access: in which page, and where in it, each of them reads or writes."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import AccessKind
from ..params import LANES
from .block_parts import CHUNK_LOG2
from .columns import ColumnLayout
from .layouts import LinearLayout
from .line_directory import RequestLayout, block_rows, unit_log2
from .place import Place

__all__ = ["AddressLanes"]


class _StageLayout(data.StructLayout):
    """An access on its way: ``linear.lanes`` have what is known so far, ``segment`` what its page is counted from."""

    def __init__(self, params):
        super().__init__(
            {
                "valid": 1,
                "linear": LinearLayout(params),
                "first_entry": unsigned(params.page_width),
                "element_log2": unsigned(2),
            }
        )


class AddressLanes(wiring.Component):
    """Adds up the addresses of up to eight units, rows, or words. Latency 4, one access a cycle.

    Accesses without any column or word that is on are left out, but the last one of an instruction is sent: of LOAD as
    NOTHING.

    Members
    -------
    i : In(stream of RequestLayout)
    words : In(stream of array of LANES 32)
        One for each access of STORE, left out or not; there by the time the access leaves.
    o : Out(stream of LinearLayout)
        Registered.
    """

    def __init__(self, params):
        self._params = params
        self._stages = [Signal(_StageLayout(params), name=f"stage{n}") for n in range(3)]
        self._moves = Signal()
        super().__init__(
            {
                "i": In(stream.Signature(RequestLayout(params))),
                "words": In(stream.Signature(data.ArrayLayout(32, LANES))),
                "o": Out(stream.Signature(LinearLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self._moves.eq(~self.o.valid | self.o.ready), self.i.ready.eq(self._moves)]
        coordinates, limit, places = self._begin(m)
        self._bound(m, coordinates, limit)
        with m.If(self._moves):
            m.d.sync += self._stages[2].eq(self._stages[1])
        self._finish(m, places)
        return m

    def _begin(self, m):
        """Stage 1: the coordinate that differs from lane to lane. The places take two cycles from here."""
        request = self.i.p
        segment = request.part.item.job.segment
        fills, by_rows = Signal(), Signal()
        m.d.comb += [
            fills.eq(request.kind == AccessKind.FILL),
            by_rows.eq(fills | (request.kind == AccessKind.PICK)),
        ]
        limit = Signal(16)
        with m.If(self._moves):
            m.d.sync += limit.eq(Mux(by_rows, segment.size[1], segment.size[0]))
        self._describe(m)
        coordinates, places = self._measure_lanes(m, fills, by_rows)
        return coordinates, limit, (self._measure_chunk(m, fills), places)

    def _describe(self, m):
        """Stage 1: what all lanes have in common."""
        request, stage, linear = self.i.p, self._stages[0], self._stages[0].linear
        part, item = request.part, request.part.item
        job, segment = item.job, item.job.segment
        with m.If(self._moves):
            m.d.sync += [
                stage.valid.eq(self.i.valid),
                stage.first_entry.eq(segment.first_entry),
                stage.element_log2.eq(segment.element_log2),
                linear.kind.eq(request.kind),
                linear.last.eq(item.last),
                linear.flush.eq(job.flush),
                linear.paged.eq(segment.paged),
                linear.swizzle.eq(segment.swizzle),
                linear.base.eq(segment.base),
                linear.number.eq(job.number),
                linear.thread.eq(item.thread),
                linear.fault_register.eq(job.register),
                linear.on.eq(part.on),
                linear.register.eq(item.register),
                linear.first_member.eq(item.first_member),
                linear.group.eq(item.thread >> 3),
                linear.slot.eq(request.slot),
                linear.octet.eq(request.octet),
                linear.place.eq(part.origin << segment.element_log2[0]),
                linear.wide.eq(segment.element_log2[0]),
                linear.ka.eq(job.ka),
                linear.kb.eq(job.kb),
            ]

    def _measure_chunk(self, m, fills):
        """The place of the chunk of a block's rows in dimension 0; of other accesses the lanes have it."""
        part = self.i.p.part
        segment = part.item.job.segment
        first, page_log2 = Signal(16), Signal(4)
        with m.If(self._moves):
            m.d.sync += [
                first.eq(Mux(fills, part.leader.inner & ~((1 << CHUNK_LOG2 >> segment.element_log2[0]) - 1), 0)),
                page_log2.eq(segment.page_log2[0]),
            ]
        m.submodules.common_place = place = Place(self._params)
        m.d.comb += [
            place.enable.eq(self._moves),
            place.coordinate.eq(first),
            place.page_log2.eq(page_log2),
            place.pages_below.eq(1),
            place.shift.eq(0),
        ]
        return place

    def _measure_lanes(self, m, fills, by_rows):
        """The coordinates of the lanes, and their places."""
        params, job = self._params, self.i.p.part.item.job
        unit, rows = Signal(2), Signal(6)  # log2 of the elements of a unit; rows of a block
        m.d.comb += [unit.eq(unit_log2(params, job)), rows.eq(block_rows(params, job))]
        page_log2, pages_below, shift = Signal(4), Signal(params.page_width + 1), Signal(5)
        with m.If(self._moves):
            m.d.sync += [
                page_log2.eq(Mux(fills, job.segment.page_log2[1], job.segment.page_log2[0])),
                pages_below.eq(Mux(fills, job.segment.pages_below[0], 1)),
                shift.eq(Mux(fills, job.segment.shift[0], 0)),
            ]
        coordinates, places = [], []
        for lane in range(LANES):
            coordinate = Signal(17, name=f"coordinate{lane}")
            m.submodules[f"place{lane}"] = place = Place(params)
            m.d.comb += [
                place.enable.eq(self._moves),
                place.coordinate.eq(coordinate),
                place.page_log2.eq(page_log2),
                place.pages_below.eq(pages_below),
                place.shift.eq(shift),
            ]
            self._select(m, lane, coordinate, fills, by_rows, unit, rows)
            coordinates.append(coordinate)
            places.append(place)
        return coordinates, places

    def _select(self, m, lane, coordinate, fills, by_rows, unit, rows):
        """What one lane does: unit ``lane mod kb`` of column ``lane div kb``, or a row of the leader's block."""
        request, part = self.i.p, self.i.p.part
        job, target = part.item.job, self._stages[0].linear.lanes[lane]
        column, base = (Signal(ColumnLayout(self._params), name=f"{name}{lane}") for name in ("column", "base"))
        on, q, distance = Signal(name=f"on{lane}"), Signal(2, name=f"unit{lane}"), Signal(5, name=f"distance{lane}")
        with m.Switch(job.kb):
            for kb in range(1, 5):
                with m.Case(kb - 1):
                    m.d.comb += [column.eq(part.columns[lane // kb]), on.eq(part.on[lane // kb]), q.eq(lane % kb)]
        m.d.comb += base.eq(Mux(fills, part.leader, column))
        m.d.comb += distance.eq(Mux(fills, request.octet << 3 | lane, q << unit))
        with m.If(self._moves):
            m.d.sync += [
                coordinate.eq(Mux(by_rows, base.outer, base.inner) + distance),
                target.entry.eq(base.page),
                target.offset.eq(base.offset),
                target.code.eq(Mux(on & ~fills, column.code, 0)),
                target.enable.eq(Mux(fills, distance < rows, on & column.inside & (column.code == 0))),
            ]

    def _bound(self, m, coordinates, limit):
        """Stage 2: which elements are inside."""
        stage, now = self._stages[1], self._stages[0]
        with m.If(self._moves):
            m.d.sync += stage.eq(now)
        for lane, coordinate in enumerate(coordinates):
            source, target = now.linear.lanes[lane], stage.linear.lanes[lane]
            left = Signal(18, name=f"left{lane}")  # elements from the first one on, modulo 2^18
            inside = Signal(LANES, name=f"inside{lane}")  # which of the next eight elements are
            keep = Signal(8, name=f"keep{lane}")
            m.d.comb += left.eq(limit - coordinate)
            for element in range(LANES):
                m.d.comb += inside[element].eq(~left[-1] & (left[:17] > element))
            # A unit has as many bytes as the parameters say, a word four.
            words = (now.linear.kind == AccessKind.LOAD) | (now.linear.kind == AccessKind.STORE)
            with m.Switch(now.element_log2):
                for log2 in range(3):
                    with m.Case(log2):
                        m.d.comb += keep.eq(Cat(inside[byte >> log2] for byte in range(self._params.unit_bytes)))
            with m.If(self._moves):
                m.d.sync += [
                    target.enable.eq(source.enable & inside[0]),
                    target.keep.eq(keep & Mux(words, 0x0F, 0xFF)),
                ]

    def _finish(self, m, places):
        """Stage 4: the sums, and what is left out."""
        common, lanes = places
        now, linear = self._stages[2], self._stages[2].linear
        ends, stores, left_out = Signal(), Signal(), Signal()
        flush_due = Signal()  # an access that was left out should have flushed
        m.d.comb += [
            stores.eq(linear.kind == AccessKind.STORE),
            ends.eq(linear.on == 0),
            left_out.eq(ends & ~linear.last),
            self.words.ready.eq(self._moves & now.valid & stores),
        ]
        with m.If(self._moves):
            m.d.sync += [
                self.o.valid.eq(now.valid & ~left_out),
                self.o.p.eq(linear),
                self.o.p.flush.eq(linear.flush | flush_due),
                self.o.p.data.eq(self.words.p),
            ]
            with m.If(now.valid):
                m.d.sync += flush_due.eq((linear.flush | flush_due) & left_out)
            with m.If((linear.kind == AccessKind.LOAD) & ends):
                m.d.sync += self.o.p.kind.eq(AccessKind.NOTHING)
            for source, place, target in zip(linear.lanes, lanes, self.o.p.lanes, strict=True):
                m.d.sync += [
                    target.entry.eq(now.first_entry + source.entry + place.page + common.page),
                    target.offset.eq((source.offset + place.offset + common.offset) << now.element_log2),
                ]
