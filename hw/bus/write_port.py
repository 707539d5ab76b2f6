"""Isolation: the last block before the write port."""

from amaranth.hdl import Cat, Const, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from tilewright.spec import PAGE_BYTES

from ..lib.stream import DeepQueue, Queue, SkidBuffer
from .axi4 import MODIFIABLE, UNPRIVILEGED_NON_SECURE, Axi4WriteSignature, Burst
from .bursts import BeatSequencer, BurstLayout, WritesSignature, WriteWordLayout

__all__ = ["WriteGuard", "WritePort"]

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


_WRITE_ID = 0  # all bursts: their answers come in order


class WritePort(wiring.Component):
    """Issues write bursts and says what became of them.

    One register from bursts to AW, a memory of two places from words to W, none from B to the responses; one burst and
    one word a cycle, with a latency of one. With ``direct`` words go to W as they are, without latency.
    Words may pass on W before or after the request of their burst on AW; neither channel waits for the other. A burst
    must be taken before its words are, so that a block that makes both must not wait with a burst for an earlier word.

    A burst holds one of ``max_outstanding`` credits from the cycle in which it is taken until its response. A queue in
    memory keeps what the response will say.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word: 4, 8, 16, 32 or 64.
    max_outstanding : int
        Bursts in flight at most, 2 to 1024, a power of two.
    id_width : int
        Bits of AWID, which is always zero.
    direct : bool
        Words come from a queue, which holds them as well.
    block : bool
        What responses will say lies in a block memory, from which it comes two cycles later: a response waits for that.

    Members
    -------
    writes : In(WritesSignature)
        ``ready`` of bursts and words depends on registers only, with ``direct`` that of words on ``axi.wready`` too;
        ``axi.bready`` depends combinationally on that of the responses. ``reduction`` and ``element`` mean nothing
        here.
    axi : Out(Axi4WriteSignature(addr_width, 8 * bus_bytes, id_width))
        The bus.
    aw_stb : Out(1)
        A request is accepted by the bus.
    beat_stb : Out(1)
        A word is accepted by the bus.
    stall_credit : Out(1)
        A burst waits because ``max_outstanding`` are in flight.
    stall_aw : Out(1)
        A request waits for the bus.
    """

    def __init__(self, *, addr_width, bus_bytes, max_outstanding, id_width, direct=False, block=False):
        if bus_bytes not in (4, 8, 16, 32, 64):
            raise ValueError(f"bus_bytes must be 4, 8, 16, 32 or 64, not {bus_bytes!r}")
        self._bus_log2 = exact_log2(bus_bytes)
        word_width = addr_width - self._bus_log2
        self.requests = SkidBuffer(BurstLayout(word_width))
        self.sequencer = BeatSequencer(unsigned(0), _AHEAD)
        beat = data.StructLayout({"word": WriteWordLayout(bus_bytes), "last": unsigned(1)})
        self.direct = stream.Signature(beat).create() if direct else None
        self.beats = None if direct else SkidBuffer(beat)
        told = data.StructLayout(
            {"word": unsigned(word_width), **{name: unsigned(1) for name in ("empty", "refused", "last")}}
        )
        self.in_flight = DeepQueue(told, max_outstanding, direct=True) if block else Queue(told, max_outstanding)
        super().__init__(
            {
                "writes": In(WritesSignature(addr_width, bus_bytes)),
                "axi": Out(Axi4WriteSignature(addr_width, 8 * bus_bytes, id_width)),
                "aw_stb": Out(1),
                "beat_stb": Out(1),
                "stall_credit": Out(1),
                "stall_aw": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.requests = self.requests
        m.submodules.sequencer = self.sequencer
        if self.beats:
            m.submodules.beats = self.beats
        m.submodules.in_flight = self.in_flight
        self._take_bursts(m)
        self._drive_aw(m)
        self._drive_w(m)
        self._respond(m)
        return m

    def _take_bursts(self, m):
        """A burst goes to three places at once: AW, the count of its words, and what the response will say."""
        burst, sequencer = self.writes.bursts, self.sequencer.bursts
        request, in_flight = self.requests.i, self.in_flight.i
        taken = Signal()
        m.d.comb += [
            burst.ready.eq(request.ready & sequencer.ready & in_flight.ready),
            taken.eq(burst.valid & burst.ready),
            request.valid.eq(taken & ~burst.payload.empty),
            request.payload.word.eq(burst.payload.word),
            request.payload.beats_minus_one.eq(burst.payload.beats_minus_one),
            sequencer.valid.eq(taken & ~burst.payload.empty),
            sequencer.payload.beats_minus_one.eq(burst.payload.beats_minus_one),
            in_flight.valid.eq(taken),
            *(in_flight.payload[name].eq(burst.payload[name]) for name in ("word", "empty", "refused", "last")),
            self.stall_credit.eq(burst.valid & ~in_flight.ready),
        ]

    def _drive_aw(self, m):
        axi, request = self.axi, self.requests.o
        m.d.comb += [
            axi.awid.eq(_WRITE_ID),
            axi.awaddr.eq(Cat(Const(0, self._bus_log2), request.payload.word)),
            axi.awlen.eq(request.payload.beats_minus_one),
            axi.awsize.eq(self._bus_log2),
            axi.awburst.eq(Burst.INCR),
            axi.awprot.eq(UNPRIVILEGED_NON_SECURE),
            axi.awcache.eq(MODIFIABLE),
            axi.awvalid.eq(request.valid),
            request.ready.eq(axi.awready),
            self.aw_stb.eq(axi.awvalid & axi.awready),
            self.stall_aw.eq(axi.awvalid & ~axi.awready),
        ]

    def _drive_w(self, m):
        axi, words, due = self.axi, self.writes.words, self.sequencer.beats
        i, o = (self.beats.i, self.beats.o) if self.beats else (self.direct, self.direct)
        m.d.comb += [
            words.ready.eq(due.valid & i.ready),
            i.valid.eq(words.valid & due.valid),
            due.ready.eq(words.valid & i.ready),
            i.payload.word.eq(words.payload),
            i.payload.last.eq(due.payload.last),
            axi.wdata.eq(o.payload.word.data),
            axi.wstrb.eq(o.payload.word.strobe),
            axi.wlast.eq(o.payload.last),
            axi.wvalid.eq(o.valid),
            o.ready.eq(axi.wready),
            self.beat_stb.eq(axi.wvalid & axi.wready),
        ]

    def _respond(self, m):
        axi, responses, burst = self.axi, self.writes.responses, self.in_flight.o
        failed = axi.bresp.as_value()[1]
        m.d.comb += [
            responses.valid.eq(burst.valid & (burst.payload.empty | axi.bvalid)),
            axi.bready.eq(burst.valid & ~burst.payload.empty & responses.ready),
            burst.ready.eq(responses.ready & (burst.payload.empty | axi.bvalid)),
            responses.payload.error.eq(burst.payload.refused | (~burst.payload.empty & failed)),
            responses.payload.last.eq(burst.payload.last),
            responses.payload.address.eq(Cat(Const(0, self._bus_log2), burst.payload.word)),
        ]
