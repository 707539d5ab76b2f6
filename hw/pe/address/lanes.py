"""Payloads between the blocks that make addresses."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MAX_PAGE_LOG2

from ..layouts import NUMBER_BITS, AccessKind, access_fields
from ..params import LANES
from .bases import Places
from .blocks import CHUNK_LOG2, PartColumnLayout, RequestLayout, block_rows, unit_log2

__all__ = ["AddressLanes", "LinearLayout", "takes"]


class LinearLayout(data.StructLayout):
    """An access before its pages are looked up."""

    def __init__(self, params):
        lane = data.StructLayout(
            {
                "enable": 1,  # has an element inside
                "entry": unsigned(params.page_width),  # page entry, if paged
                "offset": unsigned(20),  # byte offset in the page, of the unit, the word, or the row's chunk
                "keep": unsigned(8),
                "code": unsigned(4),  # PeError that is known already: PRODUCT, ALIGNMENT
            }
        )
        super().__init__(
            {
                "flush": 1,  # forget translations first
                "lanes": data.ArrayLayout(lane, LANES),
                "paged": 1,
                "swizzle": 2,
                "base": unsigned(28),  # chunk address of the page, if not paged
                "number": unsigned(NUMBER_BITS),
                "thread": unsigned(params.thread_width),  # of lane 0 (LOAD, STORE) or column 0 (COLUMNS, PICK)
                "fault_register": unsigned(16),  # for the record of errors of threads
                **access_fields(params),
            }
        )


def takes(params, valid, ready):
    """Whether a register may be filled: it is empty or, unless ``paced``, becomes so.

    Parameters
    ----------
    params : PeParams
    valid : Value
        It is full.
    ready : Value
        What is in it is taken, if it is full.

    Returns
    -------
    Value
    """
    return ~valid if params.paced else ~valid | ready


class _StageLayout(data.StructLayout):
    """An access on its way: ``linear.lanes`` have what is known so far."""

    def __init__(self, params):
        super().__init__(
            {
                "linear": LinearLayout(params),
                "element_log2": unsigned(2),
                "page": unsigned(params.page_width),  # what all lanes add to the number of their page
                "offset": unsigned(MAX_PAGE_LOG2),  # and to their place in it
            }
        )


class AddressLanes(wiring.Component):
    """Adds up the addresses of up to eight units, rows, or words. Latency 4, one access a cycle; if ``params.paced``,
    one every other cycle, and ``ready`` is a register.

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
        # The first one has no reset, but for one that zeroes what lanes of a FILL have not: a gate would be tables.
        self._stages = [Signal(_StageLayout(params), name=f"stage{n}", reset_less=n == 0) for n in range(3)]
        self._valid = Signal(3)  # by stage
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
        m.d.comb += [self._moves.eq(takes(self._params, self.o.valid, self.o.ready)), self.i.ready.eq(self._moves)]
        coordinates, limit, places = self._begin(m)
        self._bound(m, coordinates, limit)
        with m.If(self._moves):
            now, before = self._stages[2], self._stages[1]
            m.d.sync += [now.linear.eq(before.linear), self._valid.eq(Cat(self.i.valid, self._valid))]
        self._finish(m, places)
        return m

    def _begin(self, m):
        """Stage 1: the coordinate that differs from lane to lane. The places take two cycles from here."""
        request = self.i.p
        segment = request.part.item.job.segment
        fills, limit = Signal(), Signal(16)
        m.d.comb += fills.eq(request.kind == AccessKind.FILL)
        with m.If(self._moves):
            m.d.sync += limit.eq(Mux(fills, segment.size[1], segment.size[0]))
        self._describe(m)
        self._measure_chunk(m, fills)
        coordinates, places = self._measure_lanes(m, fills)
        return coordinates, limit, places

    def _describe(self, m):
        """Stage 1: what all lanes have in common."""
        request, stage, linear = self.i.p, self._stages[0], self._stages[0].linear
        part, item = request.part, request.part.item
        job, segment = item.job, item.job.segment
        with m.If(self._moves):
            m.d.sync += [
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
        """Stages 1 to 3: what all rows of a FILL add, dimension 1 aside. It is zero of other accesses."""
        part, (first_stage, second, third) = self.i.p.part, self._stages
        segment, leader = part.item.job.segment, part.leader
        chunk, page_log2 = (
            Signal(16, reset_less=True),
            Signal(4),
        )  # coordinate of the rows' first element in dimension 0
        page, place = Signal(self._params.page_width), Signal(16)  # of that element
        with m.If(self._moves):
            m.d.sync += [
                chunk.eq(leader.inner & ~((1 << CHUNK_LOG2 >> segment.element_log2[0]) - 1)),
                page_log2.eq(segment.page_log2[0]),
                first_stage.page.eq(leader.page),
                first_stage.offset.eq(leader.offset),
                page.eq(chunk >> page_log2),
                place.eq(chunk & ((1 << page_log2) - 1)),
                third.page.eq(second.page + page),
                third.offset.eq(second.offset | place << second.element_log2[0]),
            ]
            with m.If(~fills):
                m.d.sync += [chunk.eq(0), first_stage.page.eq(0), first_stage.offset.eq(0)]

    def _measure_lanes(self, m, fills):
        """The coordinates of the lanes, and their places."""
        params, job = self._params, self.i.p.part.item.job
        unit, rows = Signal(2), Signal(6)  # log2 of the elements of a unit; rows of a block
        m.d.comb += [unit.eq(unit_log2(params, job)), rows.eq(block_rows(params, job))]
        page_log2, pages_below, shift = Signal(4), Signal(params.page_width + 1), Signal(5)
        with m.If(self._moves):
            m.d.sync += [
                page_log2.eq(Mux(fills, job.segment.page_log2[1], job.segment.page_log2[0])),
                pages_below.eq(Mux(fills, job.segment.pages_below[0], 1)),
                shift.eq(Mux(fills, job.segment.shift[0], job.segment.element_log2)),
            ]
        m.submodules.places = places = Places(params)
        m.d.comb += [
            places.enable.eq(self._moves),
            places.page_log2.eq(page_log2),
            places.pages_below.eq(pages_below),
            places.shift.eq(shift),
        ]
        coordinates = []
        for lane in range(LANES):
            coordinate = Signal(17, name=f"coordinate{lane}")
            m.d.comb += places.coordinates[lane].eq(coordinate)
            self._select(m, lane, coordinate, fills, unit, rows)
            coordinates.append(coordinate)
        return coordinates, places

    def _select(self, m, lane, coordinate, fills, unit, rows):
        """What one lane does: unit ``lane mod kb`` of column ``lane div kb``, or a row of the leader's block."""
        request, part = self.i.p, self.i.p.part
        job, target = part.item.job, self._stages[0].linear.lanes[lane]
        column = Signal(PartColumnLayout(self._params), name=f"column{lane}")
        on, q, distance = Signal(name=f"on{lane}"), Signal(2, name=f"unit{lane}"), Signal(5, name=f"distance{lane}")
        with m.Switch(job.kb):
            for kb in range(1, 5):
                with m.Case(kb - 1):
                    # Lanes past the last whole column are never on, and take what they take otherwise.
                    number = lane // kb if lane < LANES // kb * kb else lane // (kb + 1)
                    m.d.comb += [column.eq(part.columns[number]), on.eq(part.on[lane // kb]), q.eq(lane % kb)]
        m.d.comb += distance.eq(Mux(fills, request.octet << 3 | lane, q << unit))
        with m.If(self._moves):
            m.d.sync += [
                coordinate.eq(Mux(fills, part.leader.outer, column.inner) + distance),
                target.entry.eq(column.page),
                target.offset.eq(column.offset),
                target.code.eq(column.code),
                target.enable.eq(Mux(fills, distance < rows, on & column.inside & (column.code == 0))),
            ]
            with m.If(fills):
                m.d.sync += [target.entry.eq(0), target.offset.eq(0)]
            with m.If(fills | ~on):
                m.d.sync += target.code.eq(0)

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
        now, linear = self._stages[2], self._stages[2].linear
        ends, stores, left_out = Signal(), Signal(), Signal()
        flush_due = Signal()  # an access that was left out should have flushed
        m.d.comb += [
            stores.eq(linear.kind == AccessKind.STORE),
            ends.eq(linear.on == 0),
            left_out.eq(ends & ~linear.last),
            self.words.ready.eq(self._moves & self._valid[2] & stores),
        ]
        with m.If(self._moves):
            m.d.sync += [
                self.o.valid.eq(self._valid[2] & ~left_out),
                self.o.p.eq(linear),
                self.o.p.flush.eq(linear.flush | flush_due),
                self.o.p.data.eq(self.words.p),
            ]
            with m.If(self._valid[2]):
                m.d.sync += flush_due.eq((linear.flush | flush_due) & left_out)
            with m.If((linear.kind == AccessKind.LOAD) & ends):
                m.d.sync += self.o.p.kind.eq(AccessKind.NOTHING)
            shares = zip(places.pages, places.offsets, strict=True)
            for source, (page, offset), target in zip(linear.lanes, shares, self.o.p.lanes, strict=True):
                m.d.sync += [
                    # Either the lane or all of them add something; offsets have no bit in common.
                    target.entry.eq((source.entry | now.page) + page),
                    target.offset.eq(source.offset | now.offset | offset),
                ]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
