"""The lanes of an access: in which page, and where in it, each lane reads or writes."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MAX_PAGE_LOG2

from ..layouts import NUMBER_BITS, AccessKind, access_fields
from ..params import LANES
from .bases import address_terms
from .blocks import CHUNK_LOG2, PartColumnLayout, RequestLayout, block_rows, unit_log2

__all__ = ["AddressLanes", "LinearLayout", "stage_ready"]


def stage_ready(params, valid, ready):
    """Whether the register of a stage accepts an item: it is empty or, unless ``paced``, becomes empty.

    With ``paced`` an access takes two cycles of shared memory anyway, and no path runs from ``ready`` to ``ready``.

    Parameters
    ----------
    params : PeParams
    valid : Value
        The register is full.
    ready : Value
        The next stage accepts its item.

    Returns
    -------
    Value
    """
    return ~valid if params.paced else ~valid | ready


class LinearLayout(data.StructLayout):
    """An access before translation."""

    def __init__(self, params):
        lane = data.StructLayout(
            {
                "enable": 1,  # has an element inside
                "entry": unsigned(params.page_width),  # page entry, if paged
                "offset": unsigned(20),  # byte offset in the page, of the unit, the word, or the row's chunk
                "keep": unsigned(8),
                "code": unsigned(4),  # PeError found so far: PRODUCT, ALIGNMENT
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
                "inside": 1,
                "thread": unsigned(params.thread_width),  # of lane 0 (LOAD, STORE) or column 0 (COLUMNS, PICK)
                "fault_register": unsigned(16),  # for error records of threads
                **access_fields(params),
            }
        )


class _StageLayout(data.StructLayout):
    """An access in a stage: ``linear.lanes`` have the terms added so far."""

    def __init__(self, params):
        super().__init__(
            {
                "linear": LinearLayout(params),
                "element_log2": unsigned(2),
                # Terms of all lanes:
                "page": unsigned(params.page_width),
                "offset": unsigned(MAX_PAGE_LOG2),
            }
        )


class AddressLanes(wiring.Component):
    """Computes the addresses of up to eight units, rows, or words.

    Accesses without a column or word that is on are dropped, except for the last one of an instruction: of LOAD, it is
    sent as NOTHING.

    Latency: 4 cycles. Throughput: one access a cycle. With ``params.paced``, one access every other cycle, and
    ``i.ready`` is a register. ``o`` is registered.
    """

    def __init__(self, params):
        self._params = params
        # The first stage has no reset, except where fields of a FILL are cleared: with a gate this would take LUTs.
        self._stages = [Signal(_StageLayout(params), name=f"stage{n}", reset_less=n == 0) for n in range(3)]
        self._moves = Signal()
        self._lacks = Signal()  # the words of the next access have not come: their registers were read late
        super().__init__(
            {
                "i": In(stream.Signature(RequestLayout(params))),
                # One for each access of STORE, dropped or not, which waits for it.
                "words": In(stream.Signature(data.ArrayLayout(32, LANES))),
                "o": Out(stream.Signature(LinearLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        segment = self.i.payload.part.item.job.segment
        fills, limit = Signal(), Signal(16)
        m.d.comb += [
            self._moves.eq(stage_ready(self._params, self.o.valid, self.o.ready) & ~self._lacks),
            self.i.ready.eq(self._moves),
            fills.eq(self.i.payload.kind == AccessKind.FILL),
        ]
        with m.If(self._moves):
            m.d.sync += limit.eq(Mux(fills, segment.size[1], segment.size[0]))
        self._describe(m)
        self._measure_chunk(m, fills)
        coordinates, terms = self._measure_lanes(m, fills)
        self._bound(m, coordinates, limit)
        self._finish(m, terms)
        return m

    def _describe(self, m):
        """Stage 1: fields that all lanes have in common."""
        request, stage, linear = self.i.payload, self._stages[0], self._stages[0].linear
        part, item = request.part, request.part.item
        job, segment = item.job, item.job.segment
        sources = (
            (request, ("kind", "slot", "octet")),
            (part, ("on",)),
            (item, ("last", "thread", "register", "first_member")),
            (job, ("flush", "number", "inside", "ka", "kb")),
            (segment, ("paged", "swizzle", "base")),
        )
        with m.If(self._moves):
            m.d.sync += [linear[name].eq(source[name]) for source, names in sources for name in names]
            m.d.sync += [
                stage.element_log2.eq(segment.element_log2),
                linear.fault_register.eq(job.register),
                linear.group.eq(item.thread >> 3),
                linear.place.eq(part.origin << segment.element_log2[0]),
                linear.wide.eq(segment.element_log2[0]),
            ]
            if self._params.units:
                single = job.element & ~segment.element_log2[1]
                m.d.sync += [
                    linear.element.eq(Mux(single, segment.element_log2 + 1, 0)),
                    linear.signed.eq(segment.signed),
                ]

    def _measure_chunk(self, m, fills):
        """Stages 1 to 3: terms of all rows of a FILL, without dimension 1. They are zero for other accesses."""
        part, (first, second, third) = self.i.payload.part, self._stages
        segment, leader = part.item.job.segment, part.leader
        # Coordinate of the rows' first element in dimension 0.
        chunk, page_log2 = Signal(16, reset_less=True), Signal(4)
        page, place = Signal(self._params.page_width), Signal(16)  # of that element
        with m.If(self._moves):
            m.d.sync += [
                chunk.eq(leader.inner & ~((1 << CHUNK_LOG2 >> segment.element_log2[0]) - 1)),
                page_log2.eq(segment.page_log2[0]),
                first.page.eq(leader.page),
                first.offset.eq(leader.offset),
                page.eq(chunk >> page_log2),
                place.eq(chunk & ((1 << page_log2) - 1)),
                third.page.eq(second.page + page),
                third.offset.eq(second.offset | place << second.element_log2[0]),
            ]
            with m.If(~fills):
                m.d.sync += [chunk.eq(0), first.page.eq(0), first.offset.eq(0)]

    def _measure_lanes(self, m, fills):
        """Stage 1: the coordinate that differs from lane to lane. Its terms are valid two cycles later."""
        params, job = self._params, self.i.payload.part.item.job
        segment = job.segment
        unit, rows = Signal(2), Signal(6)  # log2 of the elements of a unit; rows of a block
        m.d.comb += [unit.eq(unit_log2(params, job)), rows.eq(block_rows(params, job))]
        page_log2, pages_below, shift = Signal(4), Signal(params.page_width + 1), Signal(5)
        with m.If(self._moves):
            m.d.sync += [
                page_log2.eq(Mux(fills, segment.page_log2[1], segment.page_log2[0])),
                pages_below.eq(Mux(fills, segment.pages_below[0], 1)),
                shift.eq(Mux(fills, segment.shift[0], segment.element_log2)),
            ]
        coordinates = [Signal(17, name=f"coordinate{lane}") for lane in range(LANES)]
        for lane, coordinate in enumerate(coordinates):
            self._select(m, lane, coordinate, fills, unit, rows)
        terms = address_terms(
            m,
            params,
            [coordinate[:16] for coordinate in coordinates],
            page_log2=page_log2,
            pages_below=pages_below,
            shift=shift,
            enable=self._moves,
        )
        return coordinates, terms

    def _select(self, m, lane, coordinate, fills, unit, rows):
        """Stage 1: a lane is unit ``lane mod kb`` of column ``lane div kb``, or a row of the leader's block."""
        request, part = self.i.payload, self.i.payload.part
        job, target = part.item.job, self._stages[0].linear.lanes[lane]
        column = Signal(PartColumnLayout(self._params), name=f"column{lane}")
        on, q, distance = Signal(name=f"on{lane}"), Signal(2, name=f"unit{lane}"), Signal(5, name=f"distance{lane}")
        with m.Switch(job.kb):
            for kb in range(1, 5):
                with m.Case(kb - 1):
                    # Lanes past the last whole column are never on, and use the column that simplifies the multiplexer.
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
        first, second, third = self._stages
        with m.If(self._moves):
            m.d.sync += [second.eq(first), third.linear.eq(second.linear)]
        for lane, coordinate in enumerate(coordinates):
            source, target = first.linear.lanes[lane], second.linear.lanes[lane]
            length = Signal(18, name=f"left{lane}")  # elements from the first one to the limit, modulo 2^18
            inside = Signal(LANES, name=f"inside{lane}")  # which of the next eight elements are inside
            keep = Signal(8, name=f"keep{lane}")
            m.d.comb += length.eq(limit - coordinate)
            for element in range(LANES):
                m.d.comb += inside[element].eq(~length[-1] & (length[:17] > element))
            # A unit has ``params.unit_bytes`` bytes, a word four.
            words = (first.linear.kind == AccessKind.LOAD) | (first.linear.kind == AccessKind.STORE)
            with m.Switch(first.element_log2):
                for log2 in range(3):
                    with m.Case(log2):
                        m.d.comb += keep.eq(Cat(inside[byte >> log2] for byte in range(self._params.unit_bytes)))
            of_word = 0x0F
            if self._params.units:
                element = first.linear.element
                of_word = Mux(element == 1, 0x01, Mux(element == 2, 0x03, 0x0F))
            with m.If(self._moves):
                m.d.sync += [
                    target.enable.eq(source.enable & inside[0]),
                    target.keep.eq(keep & Mux(words, of_word, 0xFF)),
                ]

    def _finish(self, m, terms):
        """Stage 4: the sums, and which accesses are dropped."""
        stage, linear, out = self._stages[2], self._stages[2].linear, self.o.payload
        valid = Signal(3)  # by stage
        ends, stores, dropped = Signal(), Signal(), Signal()
        flush_due = Signal()  # an access with a flush was dropped
        m.d.comb += [
            stores.eq(linear.kind == AccessKind.STORE),
            ends.eq(linear.on == 0),
            dropped.eq(ends & ~linear.last),
            self._lacks.eq(valid[2] & stores & ~self.words.valid),
            self.words.ready.eq(self._moves & valid[2] & stores),
        ]
        with m.If(self._moves):
            m.d.sync += [
                valid.eq(Cat(self.i.valid, valid)),
                self.o.valid.eq(valid[2] & ~dropped),
                out.eq(linear),
                out.flush.eq(linear.flush | flush_due),
                out.data.eq(self.words.payload),
            ]
            with m.If(valid[2]):
                m.d.sync += flush_due.eq((linear.flush | flush_due) & dropped)
            with m.If((linear.kind == AccessKind.LOAD) & ends):
                m.d.sync += out.kind.eq(AccessKind.NOTHING)
            for source, page, offset, target in zip(linear.lanes, *terms, out.lanes, strict=True):
                m.d.sync += [
                    # Either the lane or the stage has a term, never both. Offsets have no bit in common.
                    target.entry.eq((source.entry | stage.page) + page),
                    target.offset.eq(source.offset | stage.offset | offset),
                ]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
