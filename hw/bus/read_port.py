"""The AXI4 read port of the TMAU: data and descriptors share one bus."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec import PAGE_BYTES

from ..lib.stream import DeepQueue, Queue, SkidBuffer
from .axi4 import MODIFIABLE, UNPRIVILEGED_NON_SECURE, Axi4ReadSignature, Burst
from .bursts import BurstLayout, DescriptorWordLayout, ReadWordLayout

__all__ = ["DESCRIPTOR_BYTES", "ReadPort"]

#: Bytes of a descriptor fetch.
DESCRIPTOR_BYTES = 128
#: What it is a multiple of, and no burst of it crosses.
_ALIGNED_LOG2 = 6

_DATA_ID = 0
_DESCRIPTOR_ID = 1


class ReadPort(wiring.Component):
    """Issues read bursts and hands back what they bring.

    Data bursts use ARID 0 and come back in the order of the requests; descriptors use ARID 1, go first, and are fetched
    one at a time, in bursts of 64 bytes or, if these may not be so long, of ``max_burst`` words. Beats of the two may
    be interleaved in any way. One register from a burst to AR, two from a descriptor, none from R to the words; one
    burst and one beat a cycle.

    A data burst holds one of ``max_outstanding`` credits from the cycle in which it is taken from ``bursts`` until its
    last beat. A queue in memory keeps the address of each, for error reports; its level is the count of credits in use.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address.
    bus_bytes : int
        Bytes of a bus word: 4, 8, 16, 32 or 64.
    max_outstanding : int
        Data bursts in flight at most, 2 to 1024, a power of two. The bursts of one descriptor come on top.
    max_burst : int
        Bus words of a burst of a descriptor at most, a power of two. Bursts of data come cut.
    block : bool
        Addresses lie in a block memory, from which they come two cycles later: no sooner does a word.

    Members
    -------
    bursts : In(stream of BurstLayout)
        Data to read. ``ready`` depends on registers only.
    words : Out(stream of ReadWordLayout)
        One for each beat of ``bursts``, in order. ``axi.rready`` depends combinationally on its ``ready`` and RVALID.
    descriptors : In(stream of addr_width)
        Byte address of a descriptor to read, a multiple of 64. Taken as its last burst leaves.
    descriptor_words : Out(stream of DescriptorWordLayout)
        The bus words of each descriptor, in order.
    axi : Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 1))
        The bus.
    ar_stb : Out(1)
        A request for data is accepted by the bus.
    beat_stb : Out(1)
        A word of data is taken.
    stall_credit : Out(1)
        A burst waits because ``max_outstanding`` are in flight.
    stall_ar : Out(1)
        A request waits for the bus.
    """

    def __init__(self, *, addr_width, bus_bytes, max_outstanding, max_burst, block=False):
        if bus_bytes not in (4, 8, 16, 32, 64):
            raise ValueError(f"bus_bytes must be 4, 8, 16, 32 or 64, not {bus_bytes!r}")
        self._bus_log2 = exact_log2(bus_bytes)
        self._descriptor_words = DESCRIPTOR_BYTES // bus_bytes
        word_width = addr_width - self._bus_log2
        self.request_layout = data.StructLayout({"id": unsigned(1), "burst": BurstLayout(word_width)})
        self.requests = SkidBuffer(self.request_layout)
        if block:
            self.in_flight = DeepQueue(word_width, max_outstanding, direct=True)
        else:
            self.in_flight = Queue(word_width, max_outstanding)
        self._part_log2 = min(_ALIGNED_LOG2, self._bus_log2 + exact_log2(max_burst))  # bytes of a descriptor's burst
        self.offered = Signal()  # a descriptor's burst goes next
        self.sent = Signal(range(DESCRIPTOR_BYTES >> self._part_log2))  # of them that have left
        self.fetching = Signal()  # a descriptor has been taken, and not all of it has come
        self.received = Signal(range(self._descriptor_words))  # words of the current descriptor that have come
        self.beat = Signal(8)  # words of the oldest burst that have come
        super().__init__(
            {
                "bursts": In(stream.Signature(BurstLayout(word_width))),
                "words": Out(stream.Signature(ReadWordLayout(addr_width, bus_bytes))),
                "descriptors": In(stream.Signature(addr_width)),
                "descriptor_words": Out(stream.Signature(DescriptorWordLayout(bus_bytes))),
                "axi": Out(Axi4ReadSignature(addr_width, 8 * bus_bytes, 1)),
                "ar_stb": Out(1),
                "beat_stb": Out(1),
                "stall_credit": Out(1),
                "stall_ar": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.requests = self.requests
        m.submodules.in_flight = self.in_flight
        self._request(m)
        self._drive_ar(m)
        self._data_beats(m)
        self._descriptor_beats(m)
        # An idle RID means nothing, and is X before the first beat: without RVALID neither sink is chosen.
        sinks = (self.words, self.descriptor_words)
        m.d.comb += self.axi.rready.eq(Cat(sink.valid & sink.ready for sink in sinks).any())
        return m

    def _request(self, m):
        """One request a cycle goes into the AR buffer: a descriptor's, or else a burst that has credit."""
        requests, in_flight, descriptors, bursts = self.requests.i, self.in_flight.i, self.descriptors, self.bursts
        offered, sent, burst = self.offered, self.sent, requests.payload.burst
        # A descriptor overtakes a burst that waits here: what is offered to the buffer and the queue may change while
        # they are not ready, which neither minds.
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

        # It is aligned to its half: only the upper half may lie in another page, and carries into the address.
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

    def _drive_ar(self, m):
        axi, request = self.axi, self.requests.o
        m.d.comb += [
            axi.arid.eq(request.payload.id),
            axi.araddr.eq(Cat(Const(0, self._bus_log2), request.payload.burst.word)),
            axi.arlen.eq(request.payload.burst.beats_minus_one),
            axi.arsize.eq(self._bus_log2),
            axi.arburst.eq(Burst.INCR),
            axi.arprot.eq(UNPRIVILEGED_NON_SECURE),
            axi.arcache.eq(MODIFIABLE),
            axi.arvalid.eq(request.valid),
            request.ready.eq(axi.arready),
            self.stall_ar.eq(axi.arvalid & ~axi.arready),
            self.ar_stb.eq(axi.arvalid & axi.arready & (axi.arid == _DATA_ID)),
        ]

    def _data_beats(self, m):
        axi, words, burst = self.axi, self.words, self.in_flight.o
        beat = self.beat
        # A burst does not leave its page, so that the sum needs no more bits than that.
        page_words = exact_log2(PAGE_BYTES) - self._bus_log2
        place = Signal(page_words)
        m.d.comb += [
            place.eq(burst.payload[:page_words] + beat),
            words.valid.eq(axi.rvalid & (axi.rid == _DATA_ID)),
            words.payload.data.eq(axi.rdata),
            words.payload.error.eq(_failed(axi.rresp)),
            words.payload.address.eq(Cat(Const(0, self._bus_log2), place, burst.payload[page_words:])),
            self.beat_stb.eq(words.valid & words.ready),
            burst.ready.eq(self.beat_stb & axi.rlast),
        ]
        with m.If(self.beat_stb):
            m.d.sync += beat.eq(Mux(axi.rlast, 0, beat + 1))

    def _descriptor_beats(self, m):
        axi, words = self.axi, self.descriptor_words
        # Counted, and not told by RLAST: a descriptor may come in several bursts.
        m.d.comb += [
            words.valid.eq(axi.rvalid & (axi.rid == _DESCRIPTOR_ID)),
            words.payload.data.eq(axi.rdata),
            words.payload.error.eq(_failed(axi.rresp)),
            words.payload.last.eq(self.received == self._descriptor_words - 1),
        ]
        with m.If(words.valid & words.ready):
            m.d.sync += self.received.eq(self.received + 1)
            with m.If(words.payload.last):
                m.d.sync += self.fetching.eq(0)
        with m.If(self.descriptors.valid & self.descriptors.ready):
            m.d.sync += self.fetching.eq(1)


def _failed(response):
    return response.as_value()[1]
