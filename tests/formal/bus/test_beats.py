"""F1 of the beat sequencer: every burst gives as many beats as it says, in its turn, with its tag and the right last.

One burst is tracked: any burst, because the solver chooses when ``track`` is set and what the burst is.
"""

import pytest
from amaranth.hdl import Assert, Cover, Elaboratable, Module, Mux, Signal

from tilewright.hw.bus.beats import BeatSequencer
from tilewright.sim.formal import StreamRules, prove, queue_invariants

DEPTH = 4


class SequencerSpec(Elaboratable):
    def __init__(self):
        self.dut = BeatSequencer(2, DEPTH)
        self.track = Signal()

    @property
    def ports(self):
        return [self.dut.bursts.payload, self.dut.bursts.valid, self.dut.beats.ready, self.track]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.bursts_rules = StreamRules(dut.bursts, assume=True)
        m.submodules.beats_rules = StreamRules(dut.beats)
        taken = dut.bursts.valid & dut.bursts.ready
        beat = dut.beats.valid & dut.beats.ready
        ended = beat & dut.beats.payload.last

        tracking, burst = Signal(), Signal.like(dut.bursts.payload)
        ahead, held = Signal(range(DEPTH + 1)), Signal(range(DEPTH + 1))  # bursts before it; bursts in here
        seen = Signal(8)  # beats of the oldest burst so far
        m.d.sync += held.eq(held + taken - ended)
        with m.If(beat):
            m.d.sync += seen.eq(Mux(ended, 0, seen + 1))
        with m.If(tracking):
            m.d.sync += ahead.eq(ahead - ended)
            with m.If(ended & (ahead == 0)):
                m.d.sync += tracking.eq(0)
        with m.Elif(taken & self.track):
            m.d.sync += [tracking.eq(1), burst.eq(dut.bursts.payload), ahead.eq(held - ended)]

        m.d.comb += Assert(dut.beats.valid == (held != 0))
        with m.If(tracking & (ahead == 0)):
            m.d.comb += [
                Assert(dut.beats.payload.tag == burst.tag),
                Assert(dut.beats.payload.last == (seen == burst.beats_minus_one)),
                Assert(seen <= burst.beats_minus_one),
                Cover(ended & (seen == 2) & (held == DEPTH)),
            ]
        self._invariants(m, tracking, burst, ahead, held, seen)
        return m

    def _invariants(self, m, tracking, burst, ahead, held, seen):
        dut, queue = self.dut, self.dut.queue
        probe = queue.memory.read_port(domain="comb")
        m.d.comb += [
            Assert(queue.level == held),
            *queue_invariants(queue),
            Assert(dut.beat == seen),
            Assert((held != 0) | (seen == 0)),
            probe.addr.eq(queue.head + ahead - 1),
        ]
        with m.If(tracking):
            m.d.comb += Assert(ahead < held)
            with m.If(ahead == 0):
                m.d.comb += Assert(queue.o.payload == burst)
            with m.Else():
                m.d.comb += Assert(probe.data == burst)
            with m.If(ahead == 1):
                m.d.comb += Assert(queue.read.data == burst)


def test_beats():
    spec = SequencerSpec()
    prove(spec, spec.ports, name="bus-beats", depth=2, proves="F1")


@pytest.mark.long
def test_every_case_is_reached():
    spec = SequencerSpec()
    prove(spec, spec.ports, name="bus-beats-cover", mode="cover", depth=12)
