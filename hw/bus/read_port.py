"""The AXI4 read port of the TMAU: data and descriptors share one bus."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec import PAGE_BYTES

from ..lib.stream import DeepQueue, Queue, SkidBuffer
from .axi4 import Axi4ReadSignature, drive_request, is_error
from .bursts import BurstLayout, DescriptorWordLayout, ReadWordLayout

__all__ = ["DESCRIPTOR_BYTES", "ReadPort"]

#: Bytes of a descriptor fetch.
DESCRIPTOR_BYTES = 128
#: Log2 of the alignment of descriptors, which no burst of a descriptor crosses.
_ALIGNED_LOG2 = 6

_DATA_ID = 0
_DESCRIPTOR_ID = 1


class ReadPort(wiring.Component):
    """Issues read bursts and returns their words.

    Data bursts use ARID 0, and their words return in the order of the bursts. Descriptors use ARID 1, go first, and are
    fetched one at a time, in bursts of 64 bytes or, if that is too long, of ``max_burst`` words. Beats of the two may
    be interleaved in any way. One register from a burst to AR, two from a descriptor, none from R to the words; one
    burst and one beat a cycle. ``bursts.ready`` depends on registers only; RREADY depends combinationally on RVALID and
    the ready of both streams of words.

    A data burst holds one of ``max_outstanding`` credits from its handshake at ``bursts`` until its last beat. A queue
    keeps the address of each for error reports; its level is the number of credits in use.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word: 4, 8, 16, 32 or 64.
    max_outstanding : int
        Data bursts in flight at most, 2 to 1024, a power of two. The bursts of one descriptor are added to them.
    max_burst : int
        Bus words of a burst of a descriptor at most, a power of two. Data bursts arrive cut.
    prefer_bram : bool
        The queue of addresses is a block memory.
    """

    def __init__(self, *, addr_width, bus_bytes, max_outstanding, max_burst, prefer_bram=False):
        if bus_bytes not in (4, 8, 16, 32, 64):
            raise ValueError(f"bus_bytes must be 4, 8, 16, 32 or 64, not {bus_bytes!r}")
        self._bus_log2 = exact_log2(bus_bytes)
        self._descriptor_words = DESCRIPTOR_BYTES // bus_bytes
        word_width = addr_width - self._bus_log2
        self.request_layout = data.StructLayout({"id": unsigned(1), "burst": BurstLayout(word_width)})
        self.requests = SkidBuffer(self.request_layout)
        if prefer_bram:  # an address is there two cycles later: no earlier than its first word
            self.in_flight = DeepQueue(word_width, max_outstanding, direct=True)
        else:
            self.in_flight = Queue(word_width, max_outstanding)
        self._part_log2 = min(_ALIGNED_LOG2, self._bus_log2 + exact_log2(max_burst))  # bytes of a descriptor's burst
        self.offered = Signal()  # a descriptor's burst goes next
        self.sent = Signal(range(DESCRIPTOR_BYTES >> self._part_log2))  # bursts of the descriptor that have been sent
        self.fetching = Signal()  # a descriptor has been accepted, and words of it are still to come
        self.received = Signal(range(self._descriptor_words))  # words of the current descriptor that have come
        self.beat = Signal(8)  # words of the oldest burst that have come
        super().__init__(
            {
                "bursts": In(stream.Signature(BurstLayout(word_width))),
                "words": Out(stream.Signature(ReadWordLayout(addr_width, bus_bytes))),  # of ``bursts``, in order
                # Byte address of a descriptor, a multiple of 64; accepted with its last burst.
                "descriptors": In(stream.Signature(addr_width)),
                "descriptor_words": Out(stream.Signature(DescriptorWordLayout(bus_bytes))),
                "axi": Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 1)),
                "ar_stb": Out(1),  # the bus accepts a request for data
                "beat_stb": Out(1),  # a word of data is accepted
                "stall_credit": Out(1),  # a burst waits because ``max_outstanding`` are in flight
                "stall_ar": Out(1),  # a request waits for the bus
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.requests = self.requests
        m.submodules.in_flight = self.in_flight
        axi, request = self.axi, self.requests.o
        self._request(m)
        drive_request(
            m,
            axi,
            "ar",
            request,
            ident=request.payload.id,
            address=Cat(Const(0, self._bus_log2), request.payload.burst.word),
            beats_minus_one=request.payload.burst.beats_minus_one,
        )
        self._data_beats(m)
        self._descriptor_beats(m)
        m.d.comb += [
            self.stall_ar.eq(axi.arvalid & ~axi.arready),
            self.ar_stb.eq(axi.arvalid & axi.arready & (axi.arid == _DATA_ID)),
            # Without RVALID neither sink is chosen, because an idle RID means nothing, and is X before the first beat.
            axi.rready.eq(Cat(sink.valid & sink.ready for sink in (self.words, self.descriptor_words)).any()),
        ]
        return m

    def _request(self, m):
        """One request a cycle goes into the AR buffer: a burst of a descriptor, or else a data burst with credit."""
        requests, in_flight, descriptors, bursts = self.requests.i, self.in_flight.i, self.descriptors, self.bursts
        offered, sent, burst = self.offered, self.sent, requests.payload.burst
        # A descriptor overtakes a burst that waits here. So the inputs of buffer and queue may change while these are
        # not ready, which is harmless.
        granted = Signal()
        m.d.comb += [
            granted.eq(in_flight.ready & ~offered),
            in_flight.valid.eq(bursts.valid & granted & requests.ready),
            in_flight.payload.eq(bursts.payload.word),
            bursts.ready.eq(granted & requests.ready),
            self.stall_credit.eq(bursts.valid & ~in_flight.ready),
            requests.valid.eq(offered | (bursts.valid & granted)),
            descriptors.ready.eq(offered & requests.ready & sent.all()),
        ]
        m.d.sync += offered.eq(descriptors.valid & ~self.fetching & ~descriptors.ready)
        with m.If(offered & requests.ready):
            m.d.sync += sent.eq(sent + 1)

        # A descriptor is aligned to its half: only the upper half may lie in another page, which takes a carry.
        inner = _ALIGNED_LOG2 - self._bus_log2
        upper, low = Signal(len(burst.word) - inner), Signal(inner)
        m.d.comb += burst.word.eq(Cat(low, upper + (offered & sent[-1])))
        with m.If(offered):
            m.d.comb += [
                requests.payload.id.eq(_DESCRIPTOR_ID),
                burst.beats_minus_one.eq((1 << self._part_log2 - self._bus_log2) - 1),
                upper.eq(descriptors.payload[_ALIGNED_LOG2:]),
                low.eq(sent[:-1] << self._part_log2 - self._bus_log2),
            ]
        with m.Else():
            m.d.comb += [
                requests.payload.id.eq(_DATA_ID),
                burst.beats_minus_one.eq(bursts.payload.beats_minus_one),
                upper.eq(bursts.payload.word[inner:]),
                low.eq(bursts.payload.word[:inner]),
            ]

    def _data_beats(self, m):
        axi, words, burst, beat = self.axi, self.words, self.in_flight.o, self.beat
        # A burst does not leave its page, so the sum has no more bits than an offset in a page.
        page_words = exact_log2(PAGE_BYTES) - self._bus_log2
        offset = Signal(page_words)
        m.d.comb += [
            offset.eq(burst.payload[:page_words] + beat),
            words.valid.eq(axi.rvalid & (axi.rid == _DATA_ID)),
            words.payload.data.eq(axi.rdata),
            words.payload.error.eq(is_error(axi.rresp)),
            words.payload.address.eq(Cat(Const(0, self._bus_log2), offset, burst.payload[page_words:])),
            self.beat_stb.eq(words.valid & words.ready),
            burst.ready.eq(self.beat_stb & axi.rlast),
        ]
        with m.If(self.beat_stb):
            m.d.sync += beat.eq(Mux(axi.rlast, 0, beat + 1))

    def _descriptor_beats(self, m):
        axi, words = self.axi, self.descriptor_words
        m.d.comb += [
            words.valid.eq(axi.rvalid & (axi.rid == _DESCRIPTOR_ID)),
            words.payload.data.eq(axi.rdata),
            words.payload.error.eq(is_error(axi.rresp)),
            # Counted, because a descriptor may come in several bursts.
            words.payload.last.eq(self.received == self._descriptor_words - 1),
        ]
        with m.If(words.valid & words.ready):
            m.d.sync += self.received.eq(self.received + 1)
            with m.If(words.payload.last):
                m.d.sync += self.fetching.eq(0)
        with m.If(self.descriptors.valid & self.descriptors.ready):
            m.d.sync += self.fetching.eq(1)
