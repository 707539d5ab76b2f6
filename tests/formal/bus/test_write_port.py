"""F7: no write leaves the window while there is one, at the guard and at the bus behind the write port.

The streams are free: nothing is assumed of the blocks before the guard but that they keep the stream rules. That words
go with their bursts follows from the proof of the beat sequencer, and from each word that comes being one of its beats.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Signal

from tilewright.hw.bus.write_port import WriteGuard, WritePort
from tilewright.hw.lib.component import join
from tilewright.spec import PAGE_BYTES
from tilewright.verify.formal import StreamRules, prove, queue_invariants

ADDR_WIDTH = 64
BUS_BYTES = 64
PAGE_WORDS = PAGE_BYTES // BUS_BYTES


class GuardSpec(Elaboratable):
    """The guard and what leaves it. If ``narrower`` pages less are allowed than the window has, the proof must fail."""

    def __init__(self, narrower=0):
        self.dut = WriteGuard(ADDR_WIDTH, BUS_BYTES)
        self.narrower = narrower

    @property
    def window(self):
        return [self.dut.confine, self.dut.first, self.dut.last]

    @property
    def inputs(self):
        dut = self.dut
        streams = [dut.i.bursts.payload, dut.i.bursts.valid, dut.i.words.payload, dut.i.words.valid]
        return [*streams, dut.i.responses.ready, *self.window]

    @property
    def ports(self):
        dut = self.dut
        return [*self.inputs, dut.o.bursts.ready, dut.o.words.ready, dut.o.responses.payload, dut.o.responses.valid]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_bursts_rules = StreamRules(dut.i.bursts, assume=True)
        m.submodules.i_words_rules = StreamRules(dut.i.words, assume=True)
        m.submodules.bursts_rules = StreamRules(dut.o.bursts)
        m.submodules.words_rules = StreamRules(dut.o.words)
        self.hold_window(m, dut.i.bursts.valid)
        burst = dut.o.bursts.payload
        with m.If(dut.o.bursts.valid & ~burst.empty):
            m.d.comb += self.confined(burst.word, burst.beats_minus_one)
        m.d.comb += queue_invariants(dut.sequencer.queue)
        self._check_bursts(m)
        self._check_words(m)
        return m

    def hold_window(self, m, busy):
        """The window does not change while ``busy``."""
        before, was_busy = Signal(sum(len(part) for part in self.window)), Signal()
        m.d.sync += [before.eq(Cat(self.window)), was_busy.eq(busy)]
        m.d.comb += Assume(~was_busy | (Cat(self.window) == before))

    def confined(self, word, beats_minus_one):
        """Asserts that a burst lies in the window from its first to its last byte."""
        end = (word + beats_minus_one)[: len(word)]
        page, last_page = word // PAGE_WORDS, (word + beats_minus_one) // PAGE_WORDS
        inside = (page >= self.dut.first) & (last_page + self.narrower <= self.dut.last) & (end >= word)
        return Assert(~self.dut.confine | inside)

    def _check_bursts(self, m):
        dut = self.dut
        came, went = dut.i.bursts.payload, dut.o.bursts.payload
        kept = ("word", "beats_minus_one", "last", "reduction", "element")
        refused = went.empty & ~came.empty
        noted = dut.sequencer.bursts
        m.d.comb += [
            Assert((dut.i.bursts.valid & dut.i.bursts.ready) == (dut.o.bursts.valid & dut.o.bursts.ready)),
            *(Assert(~dut.o.bursts.valid | (went[name] == came[name])) for name in kept),
            Assert(~dut.o.bursts.valid | (went.refused == (came.refused | refused))),
            # Without a window everything passes.
            Assert(dut.confine | (went == came)),
            # The words of a burst are noted with it, and swallowed exactly if it is refused.
            Assert((noted.valid & noted.ready) == (dut.o.bursts.valid & dut.o.bursts.ready & ~came.empty)),
            Assert(~noted.valid | (noted.payload.tag == refused)),
            Assert(noted.payload.beats_minus_one == came.beats_minus_one),
            Cover(dut.o.bursts.valid & refused),
            Cover(dut.o.bursts.valid & dut.confine & ~went.empty & (went.beats_minus_one != 0)),
        ]

    def _check_words(self, m):
        dut, due = self.dut, self.dut.sequencer.beats
        came, went = dut.i.words.valid & dut.i.words.ready, dut.o.words.valid & dut.o.words.ready
        m.d.comb += [
            Assert(came == (due.valid & due.ready)),
            Assert(went == (came & ~due.payload.tag)),
            Assert(~went | (dut.o.words.payload == dut.i.words.payload)),
            Cover(came & ~went),
        ]


class BusSpec(GuardSpec):
    """The guard with the write port behind it: what leaves at AW."""

    def __init__(self, narrower=0):
        super().__init__(narrower)
        self.port = WritePort(addr_width=ADDR_WIDTH, bus_bytes=BUS_BYTES, max_outstanding=4, id_width=2)

    @property
    def ports(self):
        axi = self.port.axi
        return [*self.inputs, axi.awready, axi.wready, axi.bid, axi.bresp, axi.bvalid]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.port = port = self.port
        join(m, guard=dut.o, port=port.writes)
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
        return m


def test_nothing_leaves_the_window():
    spec = GuardSpec()
    prove(spec, spec.ports, name="bus-write-guard", depth=2, proves="F7")


def test_nothing_leaves_the_window_at_the_bus():
    spec = BusSpec()
    prove(spec, spec.ports, name="bus-write-guard-port", depth=2, proves="F7")


@pytest.mark.parametrize(
    ("name", "spec"), [("guard", GuardSpec), pytest.param("guard-port", BusSpec, marks=pytest.mark.long)]
)
def test_proof_finds_a_burst_outside(name, spec):
    spec = spec(narrower=1)
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(spec, spec.ports, name=f"bus-write-{name}-narrower", mode="bmc", depth=4)


@pytest.mark.long
def test_every_case_is_reached():
    for name, spec in (("guard", GuardSpec()), ("guard-port", BusSpec())):
        prove(spec, spec.ports, name=f"bus-write-{name}-cover", mode="cover", depth=6)


WRITE_PORT_BUS_BYTES = 16
OUTSTANDING = 4


def legal(burst):
    """A burst that stays in its page."""
    return burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS


class WritePortSpec(Elaboratable):
    def __init__(self, direct=False, block=False):
        self.dut = WritePort(
            addr_width=16,
            bus_bytes=WRITE_PORT_BUS_BYTES,
            max_outstanding=OUTSTANDING,
            id_width=2,
            direct=direct,
            block=block,
        )

    @property
    def ports(self):
        dut, axi = self.dut, self.dut.axi
        bursts, words = dut.writes.bursts, dut.writes.words
        streams = [bursts.payload, bursts.valid, words.payload, words.valid, dut.writes.responses.ready]
        return [*streams, axi.awready, axi.wready, axi.bid, axi.bresp, axi.bvalid]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.bursts_rules = StreamRules(dut.writes.bursts, assume=True)
        m.submodules.words_rules = StreamRules(dut.writes.words, assume=True)
        m.submodules.responses_rules = StreamRules(dut.writes.responses)
        m.d.comb += Assume(legal(dut.writes.bursts.payload))
        axi = dut.axi
        self._hold(m, axi.bvalid, axi.bready, Cat(axi.bid, axi.bresp), Assume)
        self._hold(
            m,
            axi.awvalid,
            axi.awready,
            Cat(axi.awid, axi.awaddr, axi.awlen, axi.awsize, axi.awburst, axi.awprot, axi.awcache),
            Assert,
        )
        self._hold(m, axi.wvalid, axi.wready, Cat(axi.wdata, axi.wstrb, axi.wlast), Assert)
        first = Signal(init=1)
        m.d.sync += first.eq(0)
        m.d.comb += Assert(~(first & (axi.awvalid | axi.wvalid)))
        self._check_aw(m)
        self._check_w(m)
        self._check_bookkeeping(m)
        return m

    def _hold(self, m, valid, ready, payload, check):
        waiting, held = Signal(), Signal(len(payload))
        m.d.sync += [waiting.eq(valid & ~ready), held.eq(payload)]
        with m.If(waiting):
            m.d.comb += check(valid & (payload == held))

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
        dut, due = self.dut, self.dut.sequencer.beats
        i = dut.beats.i if dut.beats else dut.direct
        came = dut.writes.words.valid & dut.writes.words.ready
        m.d.comb += [
            Assert(came == (due.valid & due.ready)),
            Assert(came == (i.valid & i.ready)),
            Assert(~came | ((i.payload.word == dut.writes.words.payload) & (i.payload.last == due.payload.last))),
            Assert(dut.beats.o.valid | ~dut.beats.skidded) if dut.beats else [],
            # Neither channel waits for the other.
            Cover(dut.axi.wvalid & dut.axi.wlast & ~dut.requests.i.ready),
            Cover(dut.axi.awvalid & ~dut.writes.words.valid),
        ]

    def _check_bookkeeping(self, m):
        dut, axi, queue = self.dut, self.dut.axi, self.dut.in_flight
        came, wanted = dut.writes.bursts.valid & dut.writes.bursts.ready, ~dut.writes.bursts.payload.empty
        responded = dut.writes.responses.valid & dut.writes.responses.ready
        answered = axi.bvalid & axi.bready
        under_way = Signal(8)  # bursts without a response
        m.d.sync += under_way.eq(under_way + came - responded)
        requests, noted = dut.requests.i, dut.sequencer.bursts
        m.d.comb += [
            Assert(queue.level == under_way),
            Assert(under_way <= OUTSTANDING),
            *queue_invariants(queue),
            Assert(came == (queue.i.valid & queue.i.ready)),
            Assert((came & wanted) == (requests.valid & requests.ready)),
            Assert((came & wanted) == (noted.valid & noted.ready)),
            Assert(responded == (queue.o.valid & queue.o.ready)),
            # Empty bursts have their response from here, the others from the bus.
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


@pytest.mark.parametrize(("direct", "block"), [(0, 0), (1, 0), (1, 1)])
def test_rules_and_counts(direct, block):
    spec = WritePortSpec(direct, block)
    prove(spec, spec.ports, name=f"bus-write-port-{direct}-{block}", depth=2, proves="F3 F4 F5")


@pytest.mark.long
def test_write_port_every_case_is_reached():
    spec = WritePortSpec()
    prove(spec, spec.ports, name="bus-write-port-cover", mode="cover", depth=14)
