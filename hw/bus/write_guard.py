"""Isolation: the last block before the write port."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from tilewright.golden.spec import PAGE_BYTES

from .beats import BeatSequencer
from .writes import WritesSignature

__all__ = ["WriteGuard"]

#: Bursts that may be ahead of their words.
_AHEAD = 16


class WriteGuard(wiring.Component):
    """Lets only those bursts pass that write inside the window, whatever the blocks before it do.

    A burst outside becomes empty and refused, so that its response comes in its turn and says error; its words are
    swallowed. Combinational from inputs to outputs; one burst and one word a cycle. A burst must be taken before its
    words are.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word, a power of two up to 4096.

    Members
    -------
    i : In(WritesSignature)
    o : Out(WritesSignature)
    confine : In(1)
        There is a window. It and its bounds are those of the burst at ``i``, and hold while it waits.
    first, last : In(addr_width - exact_log2(PAGE_BYTES))
        The window's first and last page of 4 KiB.
    """

    def __init__(self, addr_width, bus_bytes):
        self._page_log2 = exact_log2(PAGE_BYTES) - exact_log2(bus_bytes)
        self.sequencer = BeatSequencer(unsigned(1), _AHEAD)  # the tag: refused
        page_width = addr_width - exact_log2(PAGE_BYTES)
        super().__init__(
            {
                "i": In(WritesSignature(addr_width, bus_bytes)),
                "o": Out(WritesSignature(addr_width, bus_bytes)),
                "confine": In(1),
                "first": In(page_width),
                "last": In(page_width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.sequencer = self.sequencer
        self._pass_bursts(m)
        self._pass_words(m)
        connect(m, o=flipped(self.o.responses), i=flipped(self.i.responses))
        return m

    def _pass_bursts(self, m):
        burst, o, noted = self.i.bursts, self.o.bursts, self.sequencer.bursts
        place, page = burst.payload.word[: self._page_log2], burst.payload.word[self._page_log2 :]
        crosses = Signal()  # no block makes such a burst; it would leave the page that is looked at
        outside = Signal()
        m.d.comb += [
            crosses.eq((place + burst.payload.beats_minus_one) >> self._page_log2 != 0),
            outside.eq(self.confine & ((page < self.first) | (page > self.last) | crosses)),
            o.payload.eq(burst.payload),
            o.valid.eq(burst.valid & noted.ready),
            burst.ready.eq(o.ready & noted.ready),
            noted.valid.eq(burst.valid & o.ready & ~burst.payload.empty),
            noted.payload.beats_minus_one.eq(burst.payload.beats_minus_one),
            noted.payload.tag.eq(outside),
        ]
        with m.If(outside & ~burst.payload.empty):
            m.d.comb += [o.payload.empty.eq(1), o.payload.refused.eq(1)]

    def _pass_words(self, m):
        word, o, due = self.i.words, self.o.words, self.sequencer.beats
        refused = due.payload.tag
        m.d.comb += [
            o.payload.eq(word.payload),
            o.valid.eq(word.valid & due.valid & ~refused),
            word.ready.eq(due.valid & (o.ready | refused)),
            due.ready.eq(word.valid & (o.ready | refused)),
        ]
