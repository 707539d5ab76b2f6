"""Translation of page offsets to chunks of shared memory: page table, cache and translator (docs/pe.md)."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import MAX_PAGE_LOG2, PAGE_ENTRY, PeError

from ...lib.layouts import packed_layout
from ...smem.layouts import chunk_flips
from ..layouts import NUMBER_BITS, AccessKind, AccessLayout, PageWriteLayout, access_fields
from ..params import LANES
from .lanes import LinearLayout, stage_ready

__all__ = [
    "CACHE_ENTRIES",
    "PageLayout",
    "PageTable",
    "TranslatedLayout",
    "TranslationCache",
    "TranslationLayout",
    "Translator",
    "page_start",
]

#: Pages that the translation cache holds, a power of two.
CACHE_ENTRIES = 4
#: Bits of a chunk number in a 32-bit address, and in the largest page.
_CHUNK_BITS = 28
_OFFSET_BITS = MAX_PAGE_LOG2 - 4


class TranslationLayout(data.StructLayout):
    """Start of a page, reduced to the size of shared memory."""

    def __init__(self, params):
        super().__init__(
            {
                "chunk": unsigned(params.chunk_width),  # start, modulo the size of memory
                # Number of times that an address in memory wraps past the end of memory, counted from ``chunk``.
                "turns": unsigned(_OFFSET_BITS + 2 - params.chunk_width),
                "code": unsigned(4),  # PeError: NONE, UNMAPPED or OFF_CHIP
            }
        )


class PageLayout(data.StructLayout):
    """A page entry as stored."""

    def __init__(self, params):
        start = TranslationLayout(params)
        super().__init__(
            {**{name: start[name].shape for name in ("chunk", "turns")}, "valid": 1, "loaded": 1, "on_chip": 1}
        )


class TranslatedLayout(data.StructLayout):
    """An access, with the errors of its lanes."""

    def __init__(self, params):
        super().__init__(
            {
                "access": AccessLayout(params),
                "codes": data.ArrayLayout(4, LANES),  # PeError of each lane, enabled or not
                "number": unsigned(NUMBER_BITS),
                "inside": 1,
                "thread": unsigned(params.thread_width),
                "fault_register": unsigned(16),
            }
        )


def page_start(params, chunk):
    """``chunk`` and ``turns`` of the :class:`TranslationLayout` of a page.

    An offset can pass the end of memory from a page in memory, and wrap from the end of the address space into memory.
    In both cases memory is a fixed number of turns away. If no offset can reach it, ``turns`` is a number that does not
    occur.

    Parameters
    ----------
    params : PeParams
    chunk : Value
        Address of the page, in chunks, 28 bits.

    Returns
    -------
    dict of str to Value
    """
    width = params.chunk_width
    turns = (-chunk[width:])[: _CHUNK_BITS - width]
    most = 1 << (_OFFSET_BITS - width)
    return {"chunk": chunk[:width], "turns": Mux(turns > most, 4 * most - 1, turns)}


class PageTable(wiring.Component):
    """All page entries, in a memory.

    Throughput: one write or one look-up a cycle. A write is registered for one cycle, in which no look-up is accepted.
    After reset, all entries are cleared one a cycle, and meanwhile both wait.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "writes": In(stream.Signature(PageWriteLayout(params))),  # bits of no field are ignored
                "lookups": In(stream.Signature(unsigned(params.page_width))),  # ``ready`` depends on registers only
                # The entry looked up in the previous cycle. A write is visible to all look-ups accepted after it.
                "page": Out(PageLayout(params)),
                # Strobe in the cycle after a write is accepted: earlier look-ups may be out of date.
                "written": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        pages = self._params.pages
        m.submodules.memory = memory = Memory(
            shape=PageLayout(self._params), depth=pages, init=[], attrs={"ram_style": "block"}
        )
        write, read = memory.write_port(), memory.read_port()
        cleared = Signal(range(pages + 1))  # number of cleared entries
        clearing = Signal()
        m.d.comb += clearing.eq(cleared != pages)
        m.d.sync += cleared.eq(cleared + clearing)

        # A register between the writers and the carry chain of ``page_start``.
        written, request = self.written, Signal.like(self.writes.payload)
        m.d.sync += [written.eq(self.writes.valid & self.writes.ready), request.eq(self.writes.payload)]
        word = data.View(packed_layout(PAGE_ENTRY), request.word)
        entry = Signal(PageLayout(self._params))
        m.d.comb += [
            *(entry[name].eq(value) for name, value in page_start(self._params, word.address[4:]).items()),
            *(entry[name].eq(word[name]) for name in ("valid", "loaded", "on_chip")),
            self.writes.ready.eq(~clearing),
            self.lookups.ready.eq(~clearing & ~written),
            write.en.eq(clearing | written),
            write.addr.eq(Mux(clearing, cleared, request.index)),
            write.data.eq(Mux(clearing, 0, entry.as_value())),
            read.addr.eq(self.lookups.payload),
            self.page.eq(read.data),
        ]
        return m


class TranslationCache(wiring.Component):
    """The last ``CACHE_ENTRIES`` pages, for all lanes at once; fully associative, replaced first in, first out.

    Look-up is combinational. Changes take effect in the next cycle. ``flush`` overrides ``insert``.
    """

    def __init__(self, params):
        number, entries = params.page_width, CACHE_ENTRIES
        self.tags = [Signal(number, name=f"tag{k}") for k in range(entries)]
        self.entries = [Signal(TranslationLayout(params), name=f"kept{k}") for k in range(entries)]
        self.present = Signal(entries)
        super().__init__(
            {
                "numbers": In(data.ArrayLayout(number, LANES)),  # page of each lane
                "hits": Out(LANES),
                "pages": Out(data.ArrayLayout(TranslationLayout(params), LANES)),  # zero without a hit
                "insert": In(1),  # strobe: page ``number``, which is not in the cache, is ``page``
                "number": In(number),
                "page": In(TranslationLayout(params)),
                "flush": In(1),  # strobe: remove all pages
            }
        )

    def elaborate(self, platform):
        m = Module()
        victim = Signal(range(len(self.tags)))
        for lane in range(LANES):
            match = Signal(len(self.tags), name=f"match{lane}")
            m.d.comb += match.eq(
                Cat(present & (tag == self.numbers[lane]) for present, tag in zip(self.present, self.tags, strict=True))
            )
            page = 0
            for k, entry in enumerate(self.entries):
                page = page | (entry.as_value() & match[k].replicate(len(entry.as_value())))
            m.d.comb += [self.hits[lane].eq(match.any()), self.pages[lane].eq(page)]
        with m.If(self.flush):
            m.d.sync += self.present.eq(0)
        with m.Elif(self.insert):
            m.d.sync += victim.eq(victim + 1)
            for k, (tag, entry) in enumerate(zip(self.tags, self.entries, strict=True)):
                with m.If(victim == k):
                    m.d.sync += [tag.eq(self.number), entry.eq(self.page), self.present[k].eq(1)]
        return m


class Translator(wiring.Component):
    """Adds the start of its page to the offset of each lane, applies the swizzle, and finds errors.

    A lane is translated if it is enabled, has no error, and the access is neither PICK nor NOTHING. Pages that are not
    in the translation cache are read from the table, one after the other. A page that is valid but not loaded is read
    again until it is, and the following accesses wait too. In a core that is stopped, such a page counts as one that
    is not on chip, and is not cached.

    Latency: 2 cycles. Throughput: one access a cycle, if it is not paged or all of its pages are in the cache. With
    ``params.paced``, one access every other cycle, and ``i.ready`` is a register. Each page that is read from the table
    takes two more cycles. ``o`` is registered.
    """

    def __init__(self, params, cores=1):
        self.params, self._cores = params, cores
        self.cache = TranslationCache(params)
        # The middle stage: an access, the start of its pages, and the lanes for which that is not known yet.
        self.access = Signal(LinearLayout(params))
        self.valid = Signal()
        self.pages = Signal(data.ArrayLayout(TranslationLayout(params), LANES))
        self.missing = Signal(LANES)
        self.requested = Signal(unsigned(params.page_width))
        self.answering = Signal()  # the table returns the page ``requested``
        self.matching = Signal(LANES)  # the lanes that use it
        self.leaves = Signal()  # the access moves to the output
        super().__init__(
            {
                "i": In(stream.Signature(LinearLayout(params))),
                "o": Out(stream.Signature(TranslatedLayout(params))),
                "lookups": Out(stream.Signature(unsigned(params.page_width))),  # to the page table
                "page": In(PageLayout(params)),  # its answer, in the cycle after the handshake
                "page_written": In(1),  # strobe: a page entry changes; flushes the cache
                "hit": Out(1),  # strobe: all pages of a paged access are in the cache
                "miss": Out(1),  # strobe: a page was read from the table that need not be waited for
                **({"stopped": In(1)} if cores > 1 else {}),  # in a cluster: the core is stopped
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.cache = self.cache
        leaves, accepted = self.leaves, Signal()
        m.d.comb += [
            leaves.eq(self.valid & ~self.missing.any() & stage_ready(self.params, self.o.valid, self.o.ready)),
            self.i.ready.eq(stage_ready(self.params, self.valid, leaves)),
            accepted.eq(self.i.valid & self.i.ready),
            self.cache.flush.eq(self.page_written | (accepted & self.i.payload.flush)),
        ]
        self._look_up(m, accepted)
        self._request(m)
        with m.If(accepted):
            m.d.sync += [self.valid.eq(1), self.access.eq(self.i.payload)]
        with m.Elif(leaves):
            m.d.sync += self.valid.eq(0)
        self._place(m, leaves)
        return m

    def _look_up(self, m, accepted):
        """Stage 1: which of the pages are in the cache."""
        access, cache = self.i.payload, self.cache
        needed, missing = Signal(LANES), Signal(LANES)
        m.d.comb += [
            needed.eq(Cat(lane.enable & (lane.code == 0) & _reads(access) & access.paged for lane in access.lanes)),
            missing.eq(Mux(access.flush, needed, needed & ~cache.hits)),
            self.hit.eq(accepted & needed.any() & ~missing.any()),
            *(number.eq(lane.entry) for number, lane in zip(cache.numbers, access.lanes, strict=True)),
        ]
        base = Signal(TranslationLayout(self.params))
        m.d.comb += [base[name].eq(value) for name, value in page_start(self.params, access.base).items()]
        with m.If(accepted):
            m.d.sync += self.missing.eq(missing)
            for page, cached in zip(self.pages, cache.pages, strict=True):
                m.d.sync += page.eq(Mux(access.paged, cached, base))

    def _request(self, m):
        """Reads missing pages, from the first lane on. All lanes with the same page get it at once."""
        lookups, cache, page = self.lookups, self.cache, self.page
        known, requests = Signal(), lookups.valid & lookups.ready
        resolved, away = known, ~page.on_chip
        if self._cores > 1:
            resolved, away = known | (self.answering & self.stopped), away | ~page.loaded
        m.d.comb += lookups.valid.eq(self.valid & self.missing.any() & ~self.answering)
        for number in reversed(range(LANES)):
            with m.If(self.missing[number]):
                m.d.comb += lookups.payload.eq(self.access.lanes[number].entry)
        m.d.sync += self.answering.eq(requests)
        with m.If(requests):
            m.d.sync += self.requested.eq(lookups.payload)
            for number, lane in enumerate(self.access.lanes):
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
        with m.If(resolved):
            m.d.sync += self.missing.eq(self.missing & ~self.matching)
            for number in range(LANES):
                with m.If(self.matching[number]):
                    m.d.sync += self.pages[number].eq(cache.page)

    def _place(self, m, leaves):
        """Stage 2: addresses, and whether they are in memory."""
        access, out = self.access, self.o.payload
        width = self.params.chunk_width
        with m.If(leaves):
            m.d.sync += self.o.valid.eq(1)
            m.d.sync += [out.access[name].eq(access[name]) for name in access_fields(self.params)]
            m.d.sync += [out[name].eq(access[name]) for name in ("number", "inside", "thread", "fault_register")]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        for number, (lane, page) in enumerate(zip(access.lanes, self.pages, strict=True)):
            place = Signal(MAX_PAGE_LOG2 - 4 + 1, name=f"place{number}")  # chunks from the start of memory
            code = Signal(4, name=f"code{number}")
            chunk = place[:width]
            m.d.comb += place.eq(page.chunk + lane.offset[4:])
            with m.If(lane.code != 0):
                m.d.comb += code.eq(lane.code)
            with m.Elif(lane.enable & _reads(access)):
                m.d.comb += code.eq(Mux(page.code != 0, page.code, Mux(place[width:] != page.turns, PeError.MEMORY, 0)))
            target = out.access.lanes[number]
            with m.If(leaves):
                m.d.sync += [
                    out.codes[number].eq(code),
                    target.enable.eq(lane.enable),
                    target.chunk.eq(chunk ^ chunk_flips(access.swizzle, chunk[3:])),
                    target.byte.eq(lane.offset[:4]),
                    target.keep.eq(lane.keep),
                ]


def _reads(access):
    return (access.kind != AccessKind.PICK) & (access.kind != AccessKind.NOTHING)
