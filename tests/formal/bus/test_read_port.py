"""F3, F4, F5, F11 of the read port: AR holds, is legal and prompt, credits are counted, descriptors come singly.

Requests are the bursts and descriptors that were accepted, and words have the addresses of their bursts. The
subordinate may delay, interleave and end bursts at any time; it only answers requests.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal, Value
from amaranth.utils import exact_log2

from support.formal import Spec, channel_rules
from tilewright.hw.bus.read_port import DESCRIPTOR_BYTES, ReadPort
from tilewright.spec import PAGE_BYTES
from tilewright.verify.formal import prove, queue_invariants

BUS_BYTES = 16
OUTSTANDING = 4
WORDS = DESCRIPTOR_BYTES // BUS_BYTES
HALF = WORDS // 2  # words of a burst of a descriptor
PAGE_WORDS = PAGE_BYTES // BUS_BYTES


def legal(burst):
    """A burst that stays in its page."""
    return burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS


class ReadPortSpec(Spec):
    given = "bursts descriptors"

    def __init__(self, prefer_bram=False):
        self.prefer_bram = prefer_bram
        self.dut = ReadPort(
            addr_width=16, bus_bytes=BUS_BYTES, max_outstanding=OUTSTANDING, max_burst=16, prefer_bram=prefer_bram
        )

    def specify(self, m, dut):
        m.d.comb += Assume(legal(dut.bursts.payload))
        m.d.comb += Assume(dut.descriptors.payload[:6] == 0)

        # The AR buffer: the request at AR, and perhaps the next one.
        buffered = [(dut.requests.o.valid, dut.requests.o.payload), (dut.requests.skidded, dut.requests.skid)]
        self._check_ar(m, buffered)
        self._check_credits(m, buffered)
        self._check_words(m)
        if not self.prefer_bram:
            self._check_first(m, buffered)
        self._check_descriptors(m, buffered)
        self._check_progress(m)

    def _check_ar(self, m, buffered):
        axi = self.dut.axi
        m.submodules += channel_rules(axi, "ar")
        first = Signal(init=1)
        m.d.sync += first.eq(0)
        m.d.comb += Assert(~(first & axi.arvalid))
        for valid, request in buffered:
            m.d.comb += Assert(~valid | legal(request.burst))
        with m.If(axi.arvalid):
            m.d.comb += Assert(axi.araddr % PAGE_BYTES + (axi.arlen + 1) * BUS_BYTES <= PAGE_BYTES)
            m.d.comb += Assert(axi.araddr % BUS_BYTES == 0)

    def _check_credits(self, m, buffered):
        dut, axi = self.dut, self.dut.axi
        data = axi.rvalid & (axi.rid == 0)
        accepted = axi.arvalid & axi.arready & (axi.arid == 0)
        in_flight = Signal(8)  # bursts that the bus has accepted and not completed
        m.d.sync += in_flight.eq(in_flight + accepted - (data & axi.rready & axi.rlast))
        m.d.comb += Assume(~data | (in_flight != 0))

        shown = sum(valid & (request.id == 0) for valid, request in buffered)
        m.d.comb += [
            Assert(dut.in_flight.level == in_flight + shown),
            Assert(in_flight + shown <= OUTSTANDING),
            # A beat always finds the address of its burst.
            Assert(~data | dut.in_flight.o.valid),
            # A burst is accepted only with credit, so that the queue of addresses never loses one.
            Assert(~(dut.bursts.valid & dut.bursts.ready) | (dut.in_flight.level != OUTSTANDING)),
            Assert((dut.bursts.valid & dut.bursts.ready) == (dut.in_flight.i.valid & dut.in_flight.i.ready)),
            Assert(dut.stall_credit == (dut.bursts.valid & (dut.in_flight.level == OUTSTANDING))),
            Cover(in_flight == OUTSTANDING),
            Cover(dut.stall_credit),
        ]
        m.d.comb += queue_invariants(dut.in_flight)
        if self.prefer_bram:
            # The address is there before the bus has accepted the request.
            m.d.comb += Assert(dut.in_flight.o.valid | (in_flight == 0))

    def _check_words(self, m):
        """A burst goes to AR and to the queue unchanged, and each word has the next address of the oldest burst."""
        dut, axi = self.dut, self.dut.axi
        request, shown, due = dut.requests.i.payload, dut.requests.o, dut.in_flight.o.payload
        data = axi.rvalid & (axi.rid == 0)
        beat = Signal(8)  # words of the oldest burst that have come
        with m.If(data & axi.rready):
            m.d.sync += beat.eq(Mux(axi.rlast, 0, beat + 1))
        place = ((due % PAGE_WORDS + beat) % PAGE_WORDS)[: exact_log2(PAGE_WORDS)]
        m.d.comb += [
            Assert(dut.beat == beat),
            Assert(dut.words.valid == data),
            Assert(axi.rready == (axi.rvalid & Mux(axi.rid == 0, dut.words.ready, dut.descriptor_words.ready))),
            Assert(dut.beat_stb == (data & axi.rready)),
            Assert(axi.arvalid == shown.valid),
            Assert(dut.ar_stb == (axi.arvalid & axi.arready & (axi.arid == 0))),
            Assert(dut.stall_ar == (axi.arvalid & ~axi.arready)),
        ]
        with m.If(dut.bursts.valid & dut.bursts.ready):
            m.d.comb += [
                Assert(dut.requests.i.valid & (request.id == 0)),
                Assert(request.burst.as_value() == dut.bursts.payload.as_value()),
                Assert(dut.in_flight.i.payload == dut.bursts.payload.word),
            ]
        with m.If(axi.arvalid):
            m.d.comb += [
                Assert(axi.arid == shown.payload.id),
                Assert(axi.araddr == shown.payload.burst.word * BUS_BYTES),
                Assert(axi.arlen == shown.payload.burst.beats_minus_one),
            ]
        for answer, words in ((data, dut.words), (axi.rvalid & (axi.rid == 1), dut.descriptor_words)):
            with m.If(answer):
                m.d.comb += Assert(words.payload.data == axi.rdata)
                m.d.comb += Assert(words.payload.error == (Value.cast(axi.rresp) >= 2))
        with m.If(data):
            m.d.comb += Assert(dut.words.payload.address == Cat(place, due[exact_log2(PAGE_WORDS) :]) * BUS_BYTES)

    def _check_first(self, m, buffered):
        """The first burst after a reset, from its handshake to AR and to its first word.

        It stands for all: no other burst is in the AR buffer or in the queue before it.
        """
        dut, axi = self.dut, self.dut.axi
        first = Signal.like(dut.bursts.payload)
        accepted, requested, answered = Signal(), Signal(), Signal()
        with m.If(dut.bursts.valid & dut.bursts.ready & ~accepted):
            m.d.sync += [accepted.eq(1), first.eq(dut.bursts.payload)]
        with m.If(axi.arvalid & axi.arready & (axi.arid == 0)):
            m.d.sync += requested.eq(1)
        with m.If(dut.words.valid & dut.words.ready):
            m.d.sync += answered.eq(1)
        shown = [valid & (request.id == 0) for valid, request in buffered]
        m.d.comb += [
            Assert(accepted | ~(shown[0] | shown[1] | requested | answered | (dut.in_flight.level != 0))),
            Assert(~accepted | requested | shown[0] | shown[1]),
            Assert(answered | ((dut.beat == 0) & (accepted == (dut.in_flight.level != 0)))),
        ]
        with m.If(~requested):
            with m.If(axi.arvalid & (axi.arid == 0)):
                m.d.comb += Assert((axi.araddr == first.word * BUS_BYTES) & (axi.arlen == first.beats_minus_one))
            with m.If(shown[1] & ~shown[0]):
                m.d.comb += Assert(buffered[1][1].burst.as_value() == first.as_value())
        with m.If(~answered & dut.in_flight.o.valid):
            m.d.comb += Assert(dut.in_flight.o.payload == first.word)
        with m.If(~answered & dut.words.valid):
            m.d.comb += Assert(dut.words.payload.address == first.word * BUS_BYTES)

    def _check_descriptors(self, m, buffered):
        dut, axi = self.dut, self.dut.axi
        answer = axi.rvalid & (axi.rid == 1)
        received = answer & axi.rready
        beats = axi.arlen + 1
        owed = Signal(8)  # beats of descriptors that the bus has accepted and not delivered
        m.d.sync += owed.eq(owed + Mux(axi.arvalid & axi.arready & (axi.arid == 1), beats, 0) - received)
        m.d.comb += Assume(~answer | (owed != 0))

        requested = Signal(range(WORDS + 1))  # words of the current descriptor that have been requested
        burst = dut.requests.i.payload.burst
        with m.If(dut.offered & dut.requests.i.ready):
            m.d.sync += requested.eq(requested + burst.beats_minus_one + 1)
        last = dut.descriptor_words.payload.last
        with m.If(received & last):
            m.d.sync += requested.eq(0)
        shown = sum(Mux(valid & (request.id == 1), request.burst.beats_minus_one + 1, 0) for valid, request in buffered)
        m.d.comb += [
            Assert(requested == owed + shown + dut.received),
            Assert(requested == Mux(dut.fetching, WORDS, dut.sent * HALF)),
            # It is offered, and stable, until all of it has been requested.
            Assert(~(dut.offered | (dut.sent != 0)) | (dut.descriptors.valid & ~dut.fetching)),
            Assert(dut.descriptor_words.valid == answer),
            Assert(~(answer & last) | dut.fetching),
            Cover(received & last),
        ]
        with m.If(dut.offered):
            m.d.comb += [
                Assert(dut.requests.i.valid & (dut.requests.i.payload.id == 1)),
                Assert(burst.word == (dut.descriptors.payload[4:] + requested)[:12]),
                Assert(burst.beats_minus_one == HALF - 1),
                Cover(dut.requests.i.ready & (requested != 0)),
            ]

    def _check_progress(self, m):
        """A burst with credit waits at most one cycle while AR is idle; a descriptor one cycle more."""
        dut = self.dut
        waited = Signal(2)
        waits = dut.bursts.valid & (dut.in_flight.level != OUTSTANDING) & ~dut.axi.arvalid
        m.d.sync += waited.eq(Mux(waits, waited + 1, 0))
        m.d.comb += Assert(waited <= 1)
        was_waiting = Signal()  # a descriptor in the previous cycle, while the port fetched none
        m.d.sync += was_waiting.eq(dut.descriptors.valid & ~dut.descriptors.ready & ~dut.fetching)
        m.d.comb += Assert(dut.offered | ~was_waiting)
        m.d.comb += Assert(dut.requests.o.valid | ~dut.requests.skidded)
        m.d.comb += Cover(waited == 1)


@pytest.mark.parametrize("prefer_bram", [False, True])
def test_rules_and_counts(prefer_bram):
    prove(ReadPortSpec(prefer_bram), name=f"bus-read-port-{int(prefer_bram)}", depth=2, proves="F3 F4 F5 F11")


@pytest.mark.long
def test_every_case_is_reached():
    prove(ReadPortSpec(), name="bus-read-port-cover", mode="cover", depth=14)
