"""The end of a chain of writes: the guard that keeps them inside the window, and the AXI4 write port."""

from amaranth.hdl import Cat, Const, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from tilewright.spec import PAGE_BYTES

from ..lib.stream import DeepQueue, Queue, SkidBuffer
from .axi4 import Axi4WriteSignature, drive_request, is_error
from .bursts import BURSTS_AHEAD, BeatSequencer, BurstLayout, WritesSignature, WriteWordLayout

__all__ = ["WriteGuard", "WritePort"]

_WRITE_ID = 0  # of all bursts, so that their answers come in order


class WriteGuard(wiring.Component):
    """Passes only bursts that write inside the window, whatever the blocks before it do.

    Any other burst becomes empty and refused, so that its response comes in its turn and says error; its words are
    dropped. Combinational from inputs to outputs; one burst and one word a cycle. Words are accepted after their burst.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word, a power of two up to 4096.
    """

    def __init__(self, addr_width, bus_bytes):
        self._page_log2 = exact_log2(PAGE_BYTES) - exact_log2(bus_bytes)
        self.sequencer = BeatSequencer(unsigned(1), BURSTS_AHEAD)  # the tag: refused
        page_width = addr_width - exact_log2(PAGE_BYTES)
        super().__init__(
            {
                "i": In(WritesSignature(addr_width, bus_bytes)),
                "o": Out(WritesSignature(addr_width, bus_bytes)),
                # There is a window, with this first and last page of 4 KiB; stable while a burst waits at ``i``.
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
        burst, o, counted = self.i.bursts, self.o.bursts, self.sequencer.bursts
        offset, page = burst.payload.word[: self._page_log2], burst.payload.word[self._page_log2 :]
        crosses = Signal()  # into the next page, which is not compared; no block makes such a burst
        outside = Signal()
        m.d.comb += [
            crosses.eq((offset + burst.payload.beats_minus_one) >> self._page_log2 != 0),
            outside.eq(self.confine & ((page < self.first) | (page > self.last) | crosses)),
            o.payload.eq(burst.payload),
            o.valid.eq(burst.valid & counted.ready),
            burst.ready.eq(o.ready & counted.ready),
            counted.valid.eq(burst.valid & o.ready & ~burst.payload.empty),
            counted.payload.beats_minus_one.eq(burst.payload.beats_minus_one),
            counted.payload.tag.eq(outside),
        ]
        with m.If(outside & ~burst.payload.empty):
            m.d.comb += [o.payload.empty.eq(1), o.payload.refused.eq(1)]

    def _pass_words(self, m):
        word, o, beat = self.i.words, self.o.words, self.sequencer.beats
        refused = beat.payload.tag
        m.d.comb += [
            o.payload.eq(word.payload),
            o.valid.eq(word.valid & beat.valid & ~refused),
            word.ready.eq(beat.valid & (o.ready | refused)),
            beat.ready.eq(word.valid & (o.ready | refused)),
        ]


class WritePort(wiring.Component):
    """Issues write bursts and reports their outcome.

    Latency 1 from a burst to AW and from a word to W, through a buffer each; none from B to the responses. One burst
    and one word a cycle. With ``direct`` words have no buffer and no latency. Words may pass W before or after their
    request passes AW; neither channel waits for the other. Words are accepted after their burst: a block that makes
    both must not wait with a burst for an earlier word.

    ``ready`` of bursts and words depends on registers only, with ``direct`` that of words on WREADY too. BREADY depends
    combinationally on the ready of responses. ``reduction`` and ``element`` are ignored.

    A burst holds one of ``max_outstanding`` credits from its handshake until its response. A queue keeps what the
    response will say.

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
        Words come from a queue, which is the buffer.
    prefer_bram : bool
        The queue of responses is a block memory, from which they come two cycles later.
    """

    def __init__(self, *, addr_width, bus_bytes, max_outstanding, id_width, direct=False, prefer_bram=False):
        if bus_bytes not in (4, 8, 16, 32, 64):
            raise ValueError(f"bus_bytes must be 4, 8, 16, 32 or 64, not {bus_bytes!r}")
        self._bus_log2 = exact_log2(bus_bytes)
        word_width = addr_width - self._bus_log2
        self.requests = SkidBuffer(BurstLayout(word_width))
        self.sequencer = BeatSequencer(unsigned(0), BURSTS_AHEAD)
        beat = data.StructLayout({"word": WriteWordLayout(bus_bytes), "last": unsigned(1)})
        self.direct = stream.Signature(beat).create() if direct else None
        self.beats = None if direct else SkidBuffer(beat)
        burst = data.StructLayout(
            {"word": unsigned(word_width), **{name: unsigned(1) for name in ("empty", "refused", "last")}}
        )
        self.in_flight = (
            DeepQueue(burst, max_outstanding, direct=True) if prefer_bram else Queue(burst, max_outstanding)
        )
        super().__init__(
            {
                "writes": In(WritesSignature(addr_width, bus_bytes)),
                "axi": Out(Axi4WriteSignature(addr_width, 8 * bus_bytes, id_width)),
                "aw_stb": Out(1),  # the bus accepts a request
                "beat_stb": Out(1),  # the bus accepts a word
                "stall_credit": Out(1),  # a burst waits because ``max_outstanding`` are in flight
                "stall_aw": Out(1),  # a request waits for the bus
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.requests = self.requests
        m.submodules.sequencer = self.sequencer
        if self.beats:
            m.submodules.beats = self.beats
        m.submodules.in_flight = self.in_flight
        axi, request = self.axi, self.requests.o
        self._accept_bursts(m)
        drive_request(
            m,
            axi,
            "aw",
            request,
            ident=_WRITE_ID,
            address=Cat(Const(0, self._bus_log2), request.payload.word),
            beats_minus_one=request.payload.beats_minus_one,
        )
        m.d.comb += [self.aw_stb.eq(axi.awvalid & axi.awready), self.stall_aw.eq(axi.awvalid & ~axi.awready)]
        self._drive_w(m)
        self._respond(m)
        return m

    def _accept_bursts(self, m):
        """A burst goes to three blocks at once: the AW buffer, the counter of its words, and the queue of responses."""
        burst, sequencer = self.writes.bursts, self.sequencer.bursts
        request, in_flight = self.requests.i, self.in_flight.i
        accept = Signal()
        m.d.comb += [
            burst.ready.eq(request.ready & sequencer.ready & in_flight.ready),
            accept.eq(burst.valid & burst.ready),
            request.valid.eq(accept & ~burst.payload.empty),
            request.payload.word.eq(burst.payload.word),
            request.payload.beats_minus_one.eq(burst.payload.beats_minus_one),
            sequencer.valid.eq(accept & ~burst.payload.empty),
            sequencer.payload.beats_minus_one.eq(burst.payload.beats_minus_one),
            in_flight.valid.eq(accept),
            *(in_flight.payload[name].eq(burst.payload[name]) for name in ("word", "empty", "refused", "last")),
            self.stall_credit.eq(burst.valid & ~in_flight.ready),
        ]

    def _drive_w(self, m):
        axi, words, beat = self.axi, self.writes.words, self.sequencer.beats
        i, o = (self.beats.i, self.beats.o) if self.beats else (self.direct, self.direct)
        m.d.comb += [
            words.ready.eq(beat.valid & i.ready),
            i.valid.eq(words.valid & beat.valid),
            beat.ready.eq(words.valid & i.ready),
            i.payload.word.eq(words.payload),
            i.payload.last.eq(beat.payload.last),
            axi.wdata.eq(o.payload.word.data),
            axi.wstrb.eq(o.payload.word.strobe),
            axi.wlast.eq(o.payload.last),
            axi.wvalid.eq(o.valid),
            o.ready.eq(axi.wready),
            self.beat_stb.eq(axi.wvalid & axi.wready),
        ]

    def _respond(self, m):
        axi, responses, burst = self.axi, self.writes.responses, self.in_flight.o
        m.d.comb += [
            responses.valid.eq(burst.valid & (burst.payload.empty | axi.bvalid)),
            axi.bready.eq(burst.valid & ~burst.payload.empty & responses.ready),
            burst.ready.eq(responses.ready & (burst.payload.empty | axi.bvalid)),
            responses.payload.error.eq(burst.payload.refused | (~burst.payload.empty & is_error(axi.bresp))),
            responses.payload.last.eq(burst.payload.last),
            responses.payload.address.eq(Cat(Const(0, self._bus_log2), burst.payload.word)),
        ]
