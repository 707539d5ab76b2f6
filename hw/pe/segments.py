"""The segment table: segments are checked once, when they are written (docs/pe.md, "Logical addresses")."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from tilewright.spec.pe import MAX_PAGE_LOG2, SEGMENT, SegmentElement

from ..lib.layouts import packed_layout
from ..lib.logic import is_one_of
from .layouts import SegmentEntryLayout, SegmentReadSignature, SegmentWriteLayout

__all__ = ["SegmentTable"]

_DIMENSIONS = 4
_CHUNK_LOG2 = 4
_SIGNED = (SegmentElement.S8, SegmentElement.S16, SegmentElement.S32)


class SegmentTable(wiring.Component):
    """Segments and values derived from them. An invalid segment is written too, with ``good`` 0.

    A write is accepted in the seventh cycle in which it is valid, and is visible to reads from the next cycle on. After
    reset, all entries are cleared one a cycle. Meanwhile writes wait, and reads return entries that are not good.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {"writes": In(stream.Signature(SegmentWriteLayout(params))), "read": In(SegmentReadSignature(params))}
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
        layout = SegmentEntryLayout(params)
        m.submodules.memory = memory = Memory(shape=layout, depth=params.segments, init=[])
        write, read = memory.write_port(), memory.read_port()
        cleared = Signal(range(params.segments + 1))  # number of cleared entries
        clearing, was_clearing = Signal(), Signal(init=1)
        m.d.comb += clearing.eq(cleared != params.segments)
        m.d.sync += [cleared.eq(cleared + clearing), was_clearing.eq(clearing)]

        segment = data.View(packed_layout(SEGMENT), self.writes.payload.word)
        step = Signal(range(_DIMENSIONS + 3))
        done = Signal()
        m.d.comb += [done.eq(step == _DIMENSIONS + 2), self.writes.ready.eq(done)]
        with m.If(done):
            m.d.sync += step.eq(0)
        with m.Elif(self.writes.valid & ~clearing):
            m.d.sync += step.eq(step + 1)

        entry = Signal(layout)
        self._copy(m, segment, entry)
        fits = self._count_pages(m, segment, entry, step)
        m.d.comb += [
            # Sufficient to clear an entry: no block uses the other fields of an entry that is not good.
            entry.good.eq(self._valid(m, segment, entry) & fits & ~clearing),
            write.en.eq(clearing | done),
            write.addr.eq(Mux(clearing, cleared, self.writes.payload.index)),
            write.data.eq(entry),
            read.addr.eq(self.read.number),
            self.read.entry.eq(read.data),
        ]
        with m.If(was_clearing):
            m.d.comb += self.read.entry.good.eq(0)
        return m

    def _copy(self, m, segment, entry):
        """Fields copied from the word, and the shifts."""
        m.d.comb += [
            entry.element_log2.eq(segment.element[:2]),
            *([entry.signed.eq(is_one_of(segment.element, _SIGNED))] if self._params.units else []),
            *(entry[name].eq(segment[name]) for name in ("rank", "swizzle", "paged", "first_entry")),
            entry.base.eq(segment.base >> _CHUNK_LOG2),
        ]
        shift = entry.element_log2
        for d in range(_DIMENSIONS):
            m.d.comb += [entry.size[d].eq(segment[f"size{d}"]), entry.page_log2[d].eq(segment[f"page_log2{d}"])]
            if d < _DIMENSIONS - 1:
                shift = shift + segment[f"page_log2{d}"]
                m.d.comb += entry.shift[d].eq(shift)

    def _count_pages(self, m, segment, entry, step):
        """Counts the pages of one dimension a step, and multiplies the counts, one and two steps later.

        Returns, in the last step, whether the page table has entries for all pages, or an unpaged segment is one page.
        """
        params = self._params
        length = params.page_width + 1
        last_page = Signal(16)  # pages of the previous dimension, less one
        several = Signal()  # a dimension has more than one page
        product, overflow = Signal(length), Signal()  # pages of all dimensions so far; the product was truncated
        size, page_log2 = Signal(16), Signal(4)  # of the dimension of the previous step
        with m.Switch(step):
            for d in range(_DIMENSIONS):
                with m.Case(d):
                    m.d.sync += [size.eq(segment[f"size{d}"]), page_log2.eq(segment[f"page_log2{d}"])]
        # An unused dimension counts as one page. ``_valid`` rejects a size of 0 in a used dimension.
        m.d.sync += last_page.eq(Mux(step <= segment.rank + 1, (size - 1)[:16] >> page_log2, 0))

        # No factor is zero, so a product that was truncated once is too large.
        full = Signal(length + 16)
        m.d.comb += full.eq(product * (last_page + 1)[:16])
        with m.If(step <= 1):
            m.d.sync += [product.eq(1), overflow.eq(0), several.eq(0)]
        with m.Else():
            m.d.sync += [
                product.eq(full),
                overflow.eq(overflow | full[length:].any()),
                several.eq(several | (last_page != 0)),
            ]
        for d in range(_DIMENSIONS - 1):
            below = Signal(length, name=f"below{d + 1}")
            with m.If(step == d + 2):
                m.d.sync += below.eq(full)
            m.d.comb += entry.pages_below[d].eq(below)
        end = Signal(unsigned(18))
        m.d.comb += end.eq(segment.first_entry + product)
        return Mux(segment.paged, ~overflow & (end <= params.pages), ~several)

    def _valid(self, m, segment, entry):
        """Whether all rules hold, other than those on the number of pages."""
        known, dimensions, row, page = Signal(), Signal(_DIMENSIONS), Signal(5), Signal(7)
        with m.Switch(segment.element):
            with m.Case(*SegmentElement):
                m.d.comb += known.eq(1)
        for d in range(_DIMENSIONS):
            size, page_log2 = segment[f"size{d}"], segment[f"page_log2{d}"]
            unused = ~(size.any() | page_log2.any())
            m.d.comb += dimensions[d].eq(Mux(segment.rank >= d, size.any(), unused))
        # Registered, because the word is stable for several steps.
        m.d.sync += [
            row.eq(entry.page_log2[0] + entry.element_log2),
            page.eq(sum(entry.page_log2) + entry.element_log2),
        ]
        reserved = self.writes.payload.word & SEGMENT.reserved_mask
        placed = Mux(segment.paged, segment.base == 0, ~segment.base[:_CHUNK_LOG2].any() & (segment.first_entry == 0))
        valid = Signal()
        m.d.sync += valid.eq(
            Cat(known, dimensions, row >= _CHUNK_LOG2, page <= MAX_PAGE_LOG2, ~reserved.any(), placed).all()
        )
        return valid
