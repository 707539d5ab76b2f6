"""F3, F4, F5 of the write port: AW and W hold, bursts are legal and counted, and every burst has one response.

The subordinate is free to accept either channel first and to delay; it only answers bursts that it has accepted. That
WLAST is right follows from the proof of the beat sequencer: each word takes one of its beats along.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Signal

from tilewright.golden.spec import PAGE_BYTES
from tilewright.hw.bus.write_port import WritePort
from tilewright.sim.formal import StreamRules, prove, queue_invariants

BUS_BYTES = 16
OUTSTANDING = 4
PAGE_WORDS = PAGE_BYTES // BUS_BYTES


def legal(burst):
    """A burst that stays in its page."""
    return burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS


class WritePortSpec(Elaboratable):
    def __init__(self, direct=False, block=False):
        self.dut = WritePort(
            addr_width=16, bus_bytes=BUS_BYTES, max_outstanding=OUTSTANDING, id_width=2, direct=direct, block=block
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
            m.d.comb += Assert(axi.awaddr % PAGE_BYTES + (axi.awlen + 1) * BUS_BYTES <= PAGE_BYTES)
            m.d.comb += Assert(axi.awaddr % BUS_BYTES == 0)

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
def test_every_case_is_reached():
    spec = WritePortSpec()
    prove(spec, spec.ports, name="bus-write-port-cover", mode="cover", depth=14)
