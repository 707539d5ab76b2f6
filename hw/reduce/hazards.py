"""Which writes are under way, so that what they change is not read."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.golden.spec import PAGE_BYTES

from ..bus.reads import BurstLayout

__all__ = ["WriteTable"]


class WriteTable(wiring.Component):
    """Bursts whose writes are under way: enter at the end, leave at the front, and are compared all at once.

    The comparison is combinational, changes are seen from the next cycle on. The entries are registers, as all are
    compared in each cycle: a small number.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word, a power of two.
    entries : int
        A power of two, at least 2.

    Members
    -------
    burst : In(BurstLayout)
        A legal burst: it stays in its page of 4 KiB.
    clash : Out(1)
        It has a word in common with one in the table.
    push : In(1)
        Strobe: ``burst`` enters. Only while not ``full``.
    pop : In(1)
        Strobe: the oldest leaves. Only while not ``empty``.
    full, empty : Out(1)
    """

    def __init__(self, addr_width, bus_bytes, entries):
        if not isinstance(entries, int) or entries < 2 or entries & (entries - 1):
            raise ValueError(f"entries must be a power of two of at least 2, not {entries!r}")
        self._page_log2 = exact_log2(PAGE_BYTES // bus_bytes)
        word_width = addr_width - exact_log2(bus_bytes)
        entry = data.StructLayout(
            {
                "page": unsigned(word_width - self._page_log2),
                "first": unsigned(self._page_log2),  # place of its first word in the page
                "last": unsigned(self._page_log2),
            }
        )
        self.used = Signal(entries)
        self.entries = [Signal(entry, name=f"entry{k}") for k in range(entries)]
        self.head = Signal(range(entries))
        self.tail = Signal(range(entries))
        super().__init__(
            {
                "burst": In(BurstLayout(word_width)),
                "clash": Out(1),
                "push": In(1),
                "pop": In(1),
                "full": Out(1),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        page, first = self.burst.word[self._page_log2 :], self.burst.word[: self._page_log2]
        last = Signal(self._page_log2)
        m.d.comb += [
            last.eq(first + self.burst.beats_minus_one),
            # One page at most: two bursts of one page overlap if each begins before the other ends.
            self.clash.eq(
                Cat(
                    used & (entry.page == page) & (entry.first <= last) & (first <= entry.last)
                    for used, entry in zip(self.used, self.entries, strict=True)
                ).any()
            ),
            self.full.eq(self.used.all()),
            self.empty.eq(~self.used.any()),
        ]
        m.d.sync += [self.tail.eq(self.tail + self.push), self.head.eq(self.head + self.pop)]
        for k, entry in enumerate(self.entries):
            with m.If(self.pop & (self.head == k)):
                m.d.sync += self.used[k].eq(0)
            with m.If(self.push & (self.tail == k)):
                m.d.sync += [self.used[k].eq(1), entry.page.eq(page), entry.first.eq(first), entry.last.eq(last)]
        return m
