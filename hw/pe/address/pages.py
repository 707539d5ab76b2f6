"""Where pages are: the table of all their entries, and a few of them at hand (docs/pe.md, "Logical addresses")."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.data import View
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.segment import MAX_PAGE_LOG2, PAGE_ENTRY

from ...lib.formats import packed_layout
from ..layouts import PageWriteLayout
from ..params import LANES

__all__ = ["PageLayout", "PageTable", "TranslationCache", "TranslationLayout", "beginning"]

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
