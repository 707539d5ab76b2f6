"""F7: while there is a window, no write leaves it: at the guard, and at the bus after the write port.

Of the blocks before the guard only the stream rules are assumed. That words go with their bursts follows from the proof
of the beat sequencer, because each word is accepted with one of its beats. F3, F4, F5 of the write port.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Signal
from amaranth.lib.wiring import connect

from support.formal import Spec, channel_rules
from tilewright.hw.bus.write_port import WriteGuard, WritePort
from tilewright.spec import PAGE_BYTES
from tilewright.verify.formal import prove, queue_invariants

ADDR_WIDTH = 64
BUS_BYTES = 64
PAGE_WORDS = PAGE_BYTES // BUS_BYTES


class GuardSpec(Spec):
    """The guard and its outputs. If the allowed window is ``narrower`` by some pages, the proof must fail."""

    given, made = "i.bursts i.words", "o.bursts o.words"

    def __init__(self, narrower=0):
        self.dut = WriteGuard(ADDR_WIDTH, BUS_BYTES)
        self.narrower = narrower

    @property
    def window(self):
        return [self.dut.confine, self.dut.first, self.dut.last]

    def specify(self, m, dut):
        self.hold_window(m, dut.i.bursts.valid)
        burst = dut.o.bursts.payload
        with m.If(dut.o.bursts.valid & ~burst.empty):
            m.d.comb += self.confined(burst.word, burst.beats_minus_one)
        m.d.comb += queue_invariants(dut.sequencer.queue)
        self._check_bursts(m)
        self._check_words(m)

    def hold_window(self, m, busy):
        """The window does not change while ``busy``."""
        before, was_busy = Signal(sum(len(part) for part in self.window)), Signal()
        m.d.sync += [before.eq(Cat(self.window)), was_busy.eq(busy)]
        m.d.comb += Assume(~was_busy | (Cat(self.window) == before))

    def confined(self, word, beats_minus_one):
        """Asserts that a burst is inside the window from its first to its last byte."""
        end = (word + beats_minus_one)[: len(word)]
        page, last_page = word // PAGE_WORDS, (word + beats_minus_one) // PAGE_WORDS
        inside = (page >= self.dut.first) & (last_page + self.narrower <= self.dut.last) & (end >= word)
        return Assert(~self.dut.confine | inside)

    def _check_bursts(self, m):
        dut = self.dut
        before, after = dut.i.bursts.payload, dut.o.bursts.payload
        unchanged = ("word", "beats_minus_one", "last", "reduction", "element")
        refused = after.empty & ~before.empty
        counted = dut.sequencer.bursts
        m.d.comb += [
            Assert((dut.i.bursts.valid & dut.i.bursts.ready) == (dut.o.bursts.valid & dut.o.bursts.ready)),
            *(Assert(~dut.o.bursts.valid | (after[name] == before[name])) for name in unchanged),
            Assert(~dut.o.bursts.valid | (after.refused == (before.refused | refused))),
            # Without a window everything passes.
            Assert(dut.confine | (after == before)),
            # The sequencer has every burst that is not empty, and whether its words are dropped.
            Assert((counted.valid & counted.ready) == (dut.o.bursts.valid & dut.o.bursts.ready & ~before.empty)),
            Assert(~counted.valid | (counted.payload.tag == refused)),
            Assert(counted.payload.beats_minus_one == before.beats_minus_one),
            Cover(dut.o.bursts.valid & refused),
            Cover(dut.o.bursts.valid & dut.confine & ~after.empty & (after.beats_minus_one != 0)),
        ]

    def _check_words(self, m):
        dut, beat = self.dut, self.dut.sequencer.beats
        accept, forward = dut.i.words.valid & dut.i.words.ready, dut.o.words.valid & dut.o.words.ready
        m.d.comb += [
            Assert(accept == (beat.valid & beat.ready)),
            Assert(forward == (accept & ~beat.payload.tag)),
            Assert(~forward | (dut.o.words.payload == dut.i.words.payload)),
            Cover(accept & ~forward),
        ]


class BusSpec(GuardSpec):
    """The guard followed by the write port: requests at AW."""

    given = made = ""

    def __init__(self, narrower=0):
        super().__init__(narrower)
        self.port = WritePort(addr_width=ADDR_WIDTH, bus_bytes=BUS_BYTES, max_outstanding=4, id_width=2)

    def specify(self, m, dut):
        m.submodules.port = port = self.port
        connect(m, guard=dut.o, port=port.writes)
        waits = dut.i.bursts.valid | port.requests.o.valid
        self.hold_window(m, waits)
        for valid, request in (
            (port.requests.o.valid, port.requests.o.payload),
            (port.requests.skidded, port.requests.skid),
        ):
            with m.If(valid):
                m.d.comb += self.confined(request.word, request.beats_minus_one)
        axi = port.axi
        m.d.comb += Assert(port.requests.o.valid | ~port.requests.skidded)
        with m.If(axi.awvalid):
            m.d.comb += self.confined(axi.awaddr // BUS_BYTES, axi.awlen)
            m.d.comb += Assert(axi.awaddr % BUS_BYTES == 0)
            m.d.comb += Cover(dut.confine & (axi.awlen == 3))


def test_nothing_leaves_the_window():
    prove(GuardSpec(), name="bus-write-guard", depth=2, proves="F7")


def test_nothing_leaves_the_window_at_the_bus():
    prove(BusSpec(), name="bus-write-guard-port", depth=2, proves="F7")


@pytest.mark.parametrize(
    ("name", "spec"), [("guard", GuardSpec), pytest.param("guard-port", BusSpec, marks=pytest.mark.long)]
)
def test_proof_finds_a_burst_outside(name, spec):
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(spec(narrower=1), name=f"bus-write-{name}-narrower", mode="bmc", depth=4)


@pytest.mark.long
def test_every_case_is_reached():
    for name, spec in (("guard", GuardSpec()), ("guard-port", BusSpec())):
        prove(spec, name=f"bus-write-{name}-cover", mode="cover", depth=6)


WRITE_PORT_BUS_BYTES = 16
OUTSTANDING = 4


def legal(burst):
    """A burst that stays in its page."""
    page_words = PAGE_BYTES // WRITE_PORT_BUS_BYTES
    return burst.word % page_words + burst.beats_minus_one < page_words


class WritePortSpec(Spec):
    given, made = "writes.bursts writes.words", "writes.responses"

    def __init__(self, direct=False, prefer_bram=False):
        self.dut = WritePort(
            addr_width=16,
            bus_bytes=WRITE_PORT_BUS_BYTES,
            max_outstanding=OUTSTANDING,
            id_width=2,
            direct=direct,
            prefer_bram=prefer_bram,
        )

    def specify(self, m, dut):
        m.d.comb += Assume(legal(dut.writes.bursts.payload))
        axi = dut.axi
        m.submodules += [channel_rules(axi, "b", assume=True), channel_rules(axi, "aw"), channel_rules(axi, "w")]
        first = Signal(init=1)
        m.d.sync += first.eq(0)
        m.d.comb += Assert(~(first & (axi.awvalid | axi.wvalid)))
        self._check_aw(m)
        self._check_w(m)
        self._check_bookkeeping(m)

    def _check_aw(self, m):
        dut, axi = self.dut, self.dut.axi
        for valid, request in (
            (dut.requests.o.valid, dut.requests.o.payload),
            (dut.requests.skidded, dut.requests.skid),
        ):
            m.d.comb += Assert(~valid | legal(request))
        m.d.comb += Assert(dut.requests.o.valid | ~dut.requests.skidded)
        with m.If(axi.awvalid):
            m.d.comb += Assert(axi.awaddr % PAGE_BYTES + (axi.awlen + 1) * WRITE_PORT_BUS_BYTES <= PAGE_BYTES)
            m.d.comb += Assert(axi.awaddr % WRITE_PORT_BUS_BYTES == 0)

    def _check_w(self, m):
        dut, beat = self.dut, self.dut.sequencer.beats
        i = dut.beats.i if dut.beats else dut.direct
        accept = dut.writes.words.valid & dut.writes.words.ready
        m.d.comb += [
            Assert(accept == (beat.valid & beat.ready)),
            Assert(accept == (i.valid & i.ready)),
            Assert(~accept | ((i.payload.word == dut.writes.words.payload) & (i.payload.last == beat.payload.last))),
            Assert(dut.beats.o.valid | ~dut.beats.skidded) if dut.beats else [],
            # Neither channel waits for the other.
            Cover(dut.axi.wvalid & dut.axi.wlast & ~dut.requests.i.ready),
            Cover(dut.axi.awvalid & ~dut.writes.words.valid),
        ]

    def _check_bookkeeping(self, m):
        dut, axi, queue = self.dut, self.dut.axi, self.dut.in_flight
        accept, wanted = dut.writes.bursts.valid & dut.writes.bursts.ready, ~dut.writes.bursts.payload.empty
        responded = dut.writes.responses.valid & dut.writes.responses.ready
        answered = axi.bvalid & axi.bready
        pending = Signal(8)  # bursts without a response
        m.d.sync += pending.eq(pending + accept - responded)
        requests, counted = dut.requests.i, dut.sequencer.bursts
        m.d.comb += [
            Assert(queue.level == pending),
            Assert(pending <= OUTSTANDING),
            *queue_invariants(queue),
            Assert(accept == (queue.i.valid & queue.i.ready)),
            Assert((accept & wanted) == (requests.valid & requests.ready)),
            Assert((accept & wanted) == (counted.valid & counted.ready)),
            Assert(responded == (queue.o.valid & queue.o.ready)),
            # Empty bursts are answered by the port, the others by the bus.
            Assert(answered == (responded & ~queue.o.payload.empty)),
            Assert(~dut.writes.responses.valid | (dut.writes.responses.payload.address[4:] == queue.o.payload.word)),
            Assert(
                ~responded
                | (
                    dut.writes.responses.payload.error
                    == (queue.o.payload.refused | (answered & axi.bresp.as_value()[1]))
                )
            ),
            Cover(dut.stall_credit),
            Cover(responded & queue.o.payload.empty),
        ]


@pytest.mark.parametrize(("direct", "prefer_bram"), [(0, 0), (1, 0), (1, 1)])
def test_rules_and_counts(direct, prefer_bram):
    prove(WritePortSpec(direct, prefer_bram), name=f"bus-write-port-{direct}-{prefer_bram}", depth=2, proves="F3 F4 F5")


@pytest.mark.long
def test_write_port_every_case_is_reached():
    prove(WritePortSpec(), name="bus-write-port-cover", mode="cover", depth=14)
