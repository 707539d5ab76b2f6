"""Where pages are: the table of all their entries, and a few of them at hand (docs/pe.md, "Logical addresses")."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.data import View
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MAX_PAGE_LOG2, PAGE_ENTRY, PeError

from ...lib.layouts import packed_layout
from ...smem.layouts import chunk_flips
from ..layouts import NUMBER_BITS, AccessKind, AccessLayout, PageWriteLayout, access_fields
from ..params import LANES
from .lanes import LinearLayout, takes

__all__ = ["PageLayout", "PageTable", "TranslatedLayout", "TranslationCache", "TranslationLayout", "Translator",
           "beginning"]  # fmt: skip

#: Bits of a chunk's number in 32 bits of address, and in the largest page.
_CHUNK_BITS = 28
_OFFSET_BITS = MAX_PAGE_LOG2 - 4


class TranslationLayout(data.StructLayout):
    """What an access makes of a page: as much as there is shared memory, and what tells an address beyond it."""

    def __init__(self, params):
        super().__init__(
            {
                "chunk": unsigned(params.chunk_width),  # where it begins, modulo the size of memory
                # How often an address in memory lies past the end of memory, counted from ``chunk`` on.
                "turns": unsigned(_OFFSET_BITS + 2 - params.chunk_width),
                "code": unsigned(4),  # PeError: NONE, UNMAPPED or OFF_CHIP
            }
        )


class PageLayout(data.StructLayout):
    """A page entry as it is kept."""

    def __init__(self, params):
        place = TranslationLayout(params)
        super().__init__(
            {
                **{name: place[name].shape for name in ("chunk", "turns")},  # where it begins
                "valid": 1,
                "loaded": 1,
                "on_chip": 1,
            }
        )


def beginning(params, chunk):
    """Where a page begins.

    An offset reaches past the end of memory from a page within it, and from the end of all addresses around to memory.
    Either way memory is a certain number of turns away. Where no offset reaches it, that is one that never comes.

    Parameters
    ----------
    params : PeParams
    chunk : Value
        Address of the page, in chunks, 28 bits.

    Returns
    -------
    dict of str to Value
        ``chunk`` and ``turns`` of a :class:`TranslationLayout`.
    """
    width = params.chunk_width
    turns = (-chunk[width:])[: _CHUNK_BITS - width]
    most = 1 << (_OFFSET_BITS - width)
    return {"chunk": chunk[:width], "turns": Mux(turns > most, 4 * most - 1, turns)}


class PageTable(wiring.Component):
    """All page entries, in a memory.

    One write or one look-up a cycle; a write is in a register for a cycle, in which no look-up goes. After a reset no
    entry is valid: they are cleared one by one, ``params.pages`` cycles long, in which both wait.

    Members
    -------
    writes : In(stream of PageWriteLayout)
        The low four bits of an address, and bits of no field, are ignored.
    lookups : In(stream of unsigned(params.page_width))
        Number of an entry. ``ready`` comes from registers.
    page : Out(PageLayout(params))
        The entry looked up in the cycle before. A write is seen by all look-ups that are accepted after it.
    written : Out(1)
        Strobe, in the cycle after a write was accepted: its entry changes; look-ups of before may be out of date.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "writes": In(stream.Signature(PageWriteLayout(params))),
                "lookups": In(stream.Signature(unsigned(params.page_width))),
                "page": Out(PageLayout(params)),
                "written": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        pages = self.params.pages
        m.submodules.memory = memory = Memory(
            shape=PageLayout(self.params), depth=pages, init=[], attrs={"ram_style": "block"}
        )
        write, read = memory.write_port(), memory.read_port()
        cleared = Signal(range(pages + 1))  # entries that have been cleared
        clearing = Signal()
        m.d.comb += clearing.eq(cleared != pages)
        m.d.sync += cleared.eq(cleared + clearing)

        # Where a page begins hangs on a chain of carries, and who writes on more: a register between them.
        written, taken = self.written, Signal.like(self.writes.p)
        m.d.sync += [written.eq(self.writes.valid & self.writes.ready), taken.eq(self.writes.p)]
        word = View(packed_layout(PAGE_ENTRY), taken.word)
        entry = Signal(PageLayout(self.params))
        m.d.comb += [
            *(entry[name].eq(value) for name, value in beginning(self.params, word.address[4:]).items()),
            entry.valid.eq(word.valid),
            entry.loaded.eq(word.loaded),
            entry.on_chip.eq(word.on_chip),
            self.writes.ready.eq(~clearing),
            self.lookups.ready.eq(~clearing & ~written),
            write.en.eq(clearing | written),
            write.addr.eq(Mux(clearing, cleared, taken.index)),
            write.data.eq(Mux(clearing, 0, entry.as_value())),
            read.addr.eq(self.lookups.payload),
            self.page.eq(read.data),
        ]
        return m


class TranslationCache(wiring.Component):
    """The pages used last, for all lanes at once; fully associative.

    Look-up is combinational; changes are seen from the next cycle on. A new page takes the place of the one that came
    first. With ``flush`` in the same cycle nothing is inserted.

    Parameters
    ----------
    params : PeParams
    entries : int
        Number of pages, a power of two, at least 4.

    Members
    -------
    numbers : In(array of LANES params.page_width)
        The page of each lane.
    hits : Out(LANES)
        Lanes whose page is here.
    pages : Out(array of LANES TranslationLayout)
        Where it is; zero where it is not here.
    insert : In(1)
        Strobe: ``number`` is at ``page``. It is not here yet.
    number : In(params.page_width)
    page : In(TranslationLayout)
    flush : In(1)
        Strobe: forget all.
    """

    def __init__(self, params, entries=4):
        if not isinstance(entries, int) or entries < 4 or entries & (entries - 1):
            raise ValueError(f"entries must be a power of two, at least 4, not {entries!r}")
        number = params.page_width
        self.tags = [Signal(number, name=f"tag{k}") for k in range(entries)]
        self.kept = [Signal(TranslationLayout(params), name=f"kept{k}") for k in range(entries)]
        self.present = Signal(entries)
        self.victim = Signal(range(entries))
        super().__init__(
            {
                "numbers": In(data.ArrayLayout(number, LANES)),
                "hits": Out(LANES),
                "pages": Out(data.ArrayLayout(TranslationLayout(params), LANES)),
                "insert": In(1),
                "number": In(number),
                "page": In(TranslationLayout(params)),
                "flush": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for lane in range(LANES):
            match = Signal(len(self.tags), name=f"match{lane}")
            m.d.comb += match.eq(
                Cat(here & (tag == self.numbers[lane]) for here, tag in zip(self.present, self.tags, strict=True))
            )
            found = 0
            for k, kept in enumerate(self.kept):
                found = found | (kept.as_value() & match[k].replicate(len(kept.as_value())))
            m.d.comb += [self.hits[lane].eq(match.any()), self.pages[lane].eq(found)]
        with m.If(self.flush):
            m.d.sync += self.present.eq(0)
        with m.Elif(self.insert):
            m.d.sync += self.victim.eq(self.victim + 1)
            for k, (tag, kept) in enumerate(zip(self.tags, self.kept, strict=True)):
                with m.If(self.victim == k):
                    m.d.sync += [tag.eq(self.number), kept.eq(self.page), self.present[k].eq(1)]
        return m


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
