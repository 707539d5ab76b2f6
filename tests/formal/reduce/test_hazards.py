"""F17: no burst passes the gate while one that passed before has still to write one of its words.

One burst is tracked from the cycle in which it is taken until its response, and one word of it: any burst and any word,
because the solver chooses when ``track`` is set, and ``beat``.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal

from tilewright.golden.spec import PAGE_BYTES
from tilewright.hw.reduce.hazards import HazardGate
from tilewright.sim.formal import StreamRules, prove

ADDR_WIDTH = 14
BUS_BYTES = 16
PAGE_WORDS = PAGE_BYTES // BUS_BYTES
MAX_BURST = 2


class GateSpec(Elaboratable):
    """The gate with a tracked burst. With ``clearance`` words more behind each burst the proof must fail."""

    def __init__(self, clearance=0):
        self.dut = HazardGate(ADDR_WIDTH, BUS_BYTES, entries=4, bursts=4, number_bits=4)
        # As if all places had been cleared: memory is zero at the start of a proof.
        self.dut.cleared = Signal(3, init=4)
        self.clearance = clearance
        self.track, self.beat = Signal(), Signal()

    @property
    def ports(self):
        dut = self.dut
        return [dut.i.payload, dut.i.valid, dut.o.ready, dut.space, dut.written, self.track, self.beat]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.given_rules = StreamRules(dut.i, assume=True)
        m.submodules.made_rules = StreamRules(dut.o)
        for burst, check in ((dut.i.payload, Assume), (dut.burst, Assert)):
            m.d.comb += [
                check(burst.beats_minus_one < MAX_BURST),
                check(burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS),
            ]
        promised = Signal()  # there was space, and it has not been taken
        m.d.sync += promised.eq(dut.space & ~dut.word_stb)
        m.d.comb += [
            Assume(~dut.written | ~dut.empty),
            Assume(~promised | dut.space),
            Assert(dut.cleared == 4),
            Assert(dut.passed <= 4),
            Assert(~dut.busy | (dut.beat <= dut.burst.beats_minus_one)),
        ]
        self._follow(m)
        return m

    def _follow(self, m):
        dut, now, word = self.dut, Signal(), Signal.like(self.dut.burst.word)
        inside, passed = Signal(), Signal()  # where the tracked burst is
        burst, number, ahead = Signal.like(dut.burst), Signal.like(dut.last), Signal(3)
        place = dut.place(word)
        taken, passes = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        last = Signal.like(burst.beats_minus_one)  # its chosen word
        with m.If(~inside & ~passed & taken & self.track):
            m.d.sync += [inside.eq(1), burst.eq(dut.i.payload), last.eq(self.beat & dut.i.payload.beats_minus_one[0])]
        with m.If(inside & passes):
            m.d.sync += [inside.eq(0), passed.eq(1), number.eq(dut.last + 1), ahead.eq(dut.passed - dut.written)]
        with m.If(passed & dut.written):
            m.d.sync += ahead.eq(ahead - 1)
            with m.If(ahead == 0):
                m.d.sync += passed.eq(0)
        m.d.comb += [word.eq(burst.word + last), now.eq(dut.busy & dut.looked)]

        noted, current = dut.memory.read_port(domain="comb"), dut.memory.read_port(domain="comb")
        looked_at = Signal.like(word)
        m.d.comb += [
            noted.addr.eq(place),
            looked_at.eq(dut.burst.word + dut.beat),
            current.addr.eq(dut.place(looked_at)),
            Assert(~now | (dut.found == current.data)),
            Assert(~inside | ~passed),
            Assert(~inside | (dut.busy & (dut.burst == burst))),
            Assert(~(inside | passed) | (last <= burst.beats_minus_one)),
            Assert(~(inside & (last < dut.beat)) | (noted.data == (dut.last + 1)[: len(number)])),
        ]
        with m.If(inside | passed):
            m.d.comb += Assert(burst.beats_minus_one < MAX_BURST)
            m.d.comb += Assert(burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS)
        with m.If(passed):
            came = dut.burst
            beyond = came.word + came.beats_minus_one + self.clearance
            contains = (came.word <= word) & (word <= beyond)
            m.d.comb += [
                Assert(noted.data == number),
                Assert(ahead < dut.passed),
                Assert((dut.last - number)[: len(number)] == dut.passed - 1 - ahead),
                Assert(~(dut.busy & contains) | (dut.beat <= Mux(word > came.word, 1, 0))),
                Assert(~(passes & contains & ~(dut.written & (ahead == 0)))),
                Cover(dut.busy & contains & dut.looked & dut.space),
                Cover(dut.written & (ahead == 2)),
            ]


def test_no_burst_passes_too_early():
    spec = GateSpec()
    prove(spec, spec.ports, name="reduce-hazards", depth=3, proves="F17")


def test_proof_finds_bursts_that_are_too_close():
    spec = GateSpec(clearance=1)
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(spec, spec.ports, name="reduce-hazards-clearance", mode="bmc", depth=8)


def test_every_case_is_reached():
    spec = GateSpec()
    prove(spec, spec.ports, name="reduce-hazards-cover", mode="cover", depth=14)
