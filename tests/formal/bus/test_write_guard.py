"""F7: no write leaves the window while there is one, at the guard and at the bus behind the write port.

The streams are free: nothing is assumed of the blocks before the guard but that they keep the stream rules. That words
go with their bursts follows from the proof of the beat sequencer, and from each word that comes being one of its beats.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Signal

from tilewright.golden.spec import PAGE_BYTES
from tilewright.hw.bus.write_guard import WriteGuard
from tilewright.hw.bus.write_port import WritePort
from tilewright.hw.lib.join import join
from tilewright.sim.formal import StreamRules, prove, queue_invariants

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
