"""The translator: from places in pages to chunks of shared memory (docs/pe.md, "Logical addresses")."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.segment import MAX_PAGE_LOG2

from ...smem.swizzle import chunk_flips
from ..layouts import NUMBER_BITS, AccessKind, AccessLayout, access_fields
from ..params import LANES
from .layouts import LinearLayout
from .pace import takes
from .pages import PageLayout, TranslationCache, TranslationLayout, beginning

__all__ = ["TranslatedLayout", "Translator"]


class TranslatedLayout(data.StructLayout):
    """An access, and what is wrong with its lanes."""

    def __init__(self, params):
        super().__init__(
            {
                "access": AccessLayout(params),
                "codes": data.ArrayLayout(4, LANES),  # PeError of each lane, enabled or not
                "number": unsigned(NUMBER_BITS),
                "thread": unsigned(params.thread_width),
                "fault_register": unsigned(16),
            }
        )


class Translator(wiring.Component):
    """Adds to the offset of each lane where its page begins, applies the swizzle, and says what is wrong.

    A lane is translated if it is enabled, no error is known of it, and the access is none of PICK and NOTHING. Pages
    that are not in the translation cache are read from the table, one after the other. A page that is valid but not
    loaded is read again and again, and the accesses behind it wait too. In a core that is stopped such a page counts as
    one that is not on chip, and is not kept.

    Latency 2, and one access a cycle, if the access is not paged or all its pages are in the cache; every other cycle
    if ``params.paced``, and ``ready`` is a register then. Each page that is not takes two cycles more.

    Members
    -------
    i : In(stream of LinearLayout)
    o : Out(stream of TranslatedLayout)
        Registered.
    lookups : Out(stream of unsigned(params.page_width))
        To the page table.
    page : In(PageLayout(params))
        Its answer, in the cycle after the handshake.
    page_written : In(1)
        Strobe: a page entry changes, and the cache is flushed.
    hit : Out(1)
        Strobe: a paged access has found all its pages in the cache.
    miss : Out(1)
        Strobe: a page was read from the table, and was not one to wait for.
    stopped : In(1) if cores > 1
        The core, of so many in a cluster, is stopped.
    """

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        self.cache = TranslationCache(params)
        # The stage in the middle: an access, where its pages are, and the lanes of which that is not known yet.
        self.held = Signal(LinearLayout(params))
        self.valid = Signal()
        self.pages = Signal(data.ArrayLayout(TranslationLayout(params), LANES))
        self.missing = Signal(LANES)
        self.requested = Signal(unsigned(params.page_width))
        self.answering = Signal()  # the table shows the page ``requested``
        self.matching = Signal(LANES)  # the lanes that it is the page of
        self.leaves = Signal()  # the access in the middle goes to the output
        super().__init__(
            {
                "i": In(stream.Signature(LinearLayout(params))),
                "o": Out(stream.Signature(TranslatedLayout(params))),
                "lookups": Out(stream.Signature(unsigned(params.page_width))),
                "page": In(PageLayout(params)),
                "page_written": In(1),
                "hit": Out(1),
                "miss": Out(1),
                **({"stopped": In(1)} if cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.cache = self.cache
        leaves, accepted = self.leaves, Signal()
        m.d.comb += [
            leaves.eq(self.valid & ~self.missing.any() & takes(self.params, self.o.valid, self.o.ready)),
            self.i.ready.eq(takes(self.params, self.valid, leaves)),
            accepted.eq(self.i.valid & self.i.ready),
            self.cache.flush.eq(self.page_written | (accepted & self.i.p.flush)),
        ]
        self._look_up(m, accepted)
        self._request(m)
        with m.If(accepted):
            m.d.sync += [self.valid.eq(1), self.held.eq(self.i.p)]
        with m.Elif(leaves):
            m.d.sync += self.valid.eq(0)
        self._place(m, leaves)
        return m

    def _look_up(self, m, accepted):
        """The first stage: which of the pages are in the cache."""
        access, cache = self.i.p, self.cache
        reads = Signal()
        needed, missing = Signal(LANES), Signal(LANES)
        m.d.comb += [
            reads.eq((access.kind != AccessKind.PICK) & (access.kind != AccessKind.NOTHING) & access.paged),
            needed.eq(Cat(lane.enable & (lane.code == 0) & reads for lane in access.lanes)),
            missing.eq(Mux(access.flush, needed, needed & ~cache.hits)),
            self.hit.eq(accepted & needed.any() & ~missing.any()),
        ]
        for number, lane in zip(cache.numbers, access.lanes, strict=True):
            m.d.comb += number.eq(lane.entry)
        base = Signal(TranslationLayout(self.params))
        m.d.comb += [base[name].eq(value) for name, value in beginning(self.params, access.base).items()]
        with m.If(accepted):
            m.d.sync += self.missing.eq(missing)
            for page, found in zip(self.pages, cache.pages, strict=True):
                m.d.sync += page.eq(Mux(access.paged, found, base))

    def _request(self, m):
        """The pages that are missing, from the first lane on; all lanes with the same page get it at once."""
        lookups, cache, page = self.lookups, self.cache, self.page
        requests, known = Signal(), Signal()
        goes_on, away = known, ~page.on_chip
        if self._cores > 1:
            goes_on, away = known | (self.answering & self.stopped), away | ~page.loaded
        m.d.comb += lookups.valid.eq(self.valid & self.missing.any() & ~self.answering)
        for number in reversed(range(LANES)):
            with m.If(self.missing[number]):
                m.d.comb += lookups.payload.eq(self.held.lanes[number].entry)
        m.d.comb += requests.eq(lookups.valid & lookups.ready)
        m.d.sync += self.answering.eq(requests)
        with m.If(requests):
            m.d.sync += self.requested.eq(lookups.payload)
            for number, lane in enumerate(self.held.lanes):
                m.d.sync += self.matching[number].eq(self.missing[number] & (lane.entry == lookups.payload))

        m.d.comb += [
            known.eq(self.answering & (~page.valid | page.loaded)),
            self.miss.eq(known),
            cache.insert.eq(known),
            cache.number.eq(self.requested),
            cache.page.chunk.eq(page.chunk),
            cache.page.turns.eq(page.turns),
        ]
        with m.If(~page.valid):
            m.d.comb += cache.page.code.eq(PeError.UNMAPPED)
        with m.Elif(away):
            m.d.comb += cache.page.code.eq(PeError.OFF_CHIP)
        with m.If(goes_on):
            m.d.sync += self.missing.eq(self.missing & ~self.matching)
            for number in range(LANES):
                with m.If(self.matching[number]):
                    m.d.sync += self.pages[number].eq(cache.page)

    def _place(self, m, leaves):
        """The last stage: addresses, and whether there is memory."""
        held, out = self.held, self.o.p
        width = self.params.chunk_width
        reads = Signal()
        m.d.comb += reads.eq((held.kind != AccessKind.PICK) & (held.kind != AccessKind.NOTHING))
        with m.If(leaves):
            m.d.sync += self.o.valid.eq(1)
            m.d.sync += [out.access[name].eq(held[name]) for name in access_fields(self.params)]
            m.d.sync += [out[name].eq(held[name]) for name in ("number", "thread", "fault_register")]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        for number, (lane, page) in enumerate(zip(held.lanes, self.pages, strict=True)):
            place = Signal(MAX_PAGE_LOG2 - 4 + 1, name=f"place{number}")  # past the beginning of memory
            code = Signal(4, name=f"code{number}")
            chunk = place[:width]
            m.d.comb += place.eq(page.chunk + lane.offset[4:])
            with m.If(lane.code != 0):
                m.d.comb += code.eq(lane.code)
            with m.Elif(lane.enable & reads):
                m.d.comb += code.eq(Mux(page.code != 0, page.code, Mux(place[width:] != page.turns, PeError.MEMORY, 0)))
            target = out.access.lanes[number]
            with m.If(leaves):
                m.d.sync += [
                    out.codes[number].eq(code),
                    target.enable.eq(lane.enable),
                    target.chunk.eq(chunk ^ chunk_flips(held.swizzle, chunk[3:])),
                    target.byte.eq(lane.offset[:4]),
                    target.keep.eq(lane.keep),
                ]
