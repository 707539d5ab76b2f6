"""F17: no burst passes the gate while an earlier burst still has to write one of its words.

One burst is tracked from its handshake until its response, and one word of it. They stand for any burst and any word,
because the solver chooses when ``track`` is set, and ``beat``.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.reduce.old_words import HazardGate
from tilewright.spec import PAGE_BYTES
from tilewright.verify.formal import prove

ADDR_WIDTH = 14
BUS_BYTES = 16
PAGE_WORDS = PAGE_BYTES // BUS_BYTES
MAX_BURST = 2


class GateSpec(Spec):
    """The gate with a tracked burst. If ``clearance`` more words after each burst are required, the proof must fail."""

    given, made = "i", "o"

    def __init__(self, clearance=0):
        self.dut = HazardGate(ADDR_WIDTH, BUS_BYTES, entries=4, bursts=4, number_bits=4)
        # As if all places had been cleared: memory is zero at the start of a proof.
        self.dut.cleared = Signal(3, init=4)
        self.clearance = clearance
        self.track, self.beat = Signal(), Signal()

    def specify(self, m, dut):
        for condition, burst, check in (
            (1, dut.i.payload, Assume),
            (dut.active, dut.burst, Assert),
            (dut.read.valid, dut.read.burst, Assert),
            (dut.known.valid, dut.known.burst, Assert),
        ):
            with m.If(condition):
                m.d.comb += check(burst.beats_minus_one < MAX_BURST)
                m.d.comb += check(burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS)
        promised = Signal()  # there was space, and it has not been accepted
        m.d.sync += promised.eq(dut.space & ~dut.word_stb)
        m.d.comb += [
            Assume(~dut.written | ~dut.empty),
            Assume(~promised | dut.space),
            Assert(dut.cleared == 4),
            Assert(dut.passed <= 4),
            Assert(~dut.safe | dut.known.valid),
            Assert(dut.number == (dut.first + dut.late + dut.passed)[: len(dut.number)]),
        ]
        self._check_words(m)
        self._follow(m)

    def _word(self, register):
        """The word that is in ``register``: bursts are of one word or of two, so that its last flag tells which."""
        return (register.burst.word + (register.last & register.burst.beats_minus_one[0]))[: len(self.dut.burst.word)]

    def _noted(self, m, place):
        port = self.dut.memory.read_port(domain="comb")
        m.d.comb += port.addr.eq(place)
        return port.data

    def _check_words(self, m):
        """The words of a burst follow one another, and what is known of them is what memory holds."""
        dut, read, known = self.dut, self.dut.read, self.dut.known
        two = read.burst.beats_minus_one == 1
        m.d.comb += [
            Assert(~dut.active | (dut.beat <= dut.burst.beats_minus_one)),
            Assert((dut.active & (dut.beat == 1)) == (read.valid & ~read.last)),
            Assert(~(read.valid & ~read.last) | (two & (dut.burst == read.burst))),
            Assert((known.valid & ~known.last) == (read.valid & read.last & two)),
            Assert(~(known.valid & ~known.last) | (known.burst == read.burst)),
        ]
        known_number = (known.behind + dut.first)[: len(dut.first)]
        for register, number in ((read, dut.stored), (known, known_number)):
            with m.If(register.valid):
                m.d.comb += Assert(register.entry == dut.entry(self._word(register)))
                m.d.comb += Assert(register.rewritten | (number == self._noted(m, register.entry)))

    def _follow(self, m):
        dut = self.dut
        # Where the tracked burst is: in which registers, or among those that have passed and have no response.
        accepted, read, known, passed = (Signal(name=name) for name in ("taken", "read", "known", "passed"))
        burst, number, ahead = Signal.like(dut.burst), Signal.like(dut.number), Signal(3)
        last, word = Signal(), Signal.like(dut.burst.word)  # of its words the chosen one
        takes, passes = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        begins = takes & self.track & ~(accepted | read | known | passed)
        with m.If(begins):
            m.d.sync += [burst.eq(dut.i.payload), last.eq(self.beat & dut.i.payload.beats_minus_one[0])]
        with m.If(dut.i.ready):
            m.d.sync += accepted.eq(begins)
        with m.If(~dut.known.valid | dut.word_stb):
            m.d.sync += [read.eq(accepted), known.eq(read)]
        with m.If(known & passes):
            m.d.sync += [passed.eq(1), number.eq(dut.number), ahead.eq(dut.passed - dut.written)]
        with m.If(passed & dut.written):
            m.d.sync += ahead.eq(ahead - 1)
            with m.If(ahead == 0):
                m.d.sync += passed.eq(0)

        m.d.comb += word.eq(burst.word + last)
        noted = self._noted(m, dut.entry(word))
        m.d.comb += [
            Assert(~accepted | (dut.active & (dut.burst == burst) & ~passed)),
            Assert(~read | (dut.read.valid & (dut.read.burst == burst) & ~passed)),
            Assert(~known | (dut.known.valid & (dut.known.burst == burst) & ~passed)),
            Assert(~(read & ~dut.read.last) | accepted),
            Assert(~(known & ~dut.known.last) | read),
            Assert(~(read & dut.read.last) | ~accepted),
            Assert(~(known & dut.known.last) | ~(read | accepted)),
        ]
        with m.If(accepted | read | known | passed):
            m.d.comb += Assert(burst.beats_minus_one < MAX_BURST)
            m.d.comb += Assert(burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS)
            m.d.comb += Assert(last <= burst.beats_minus_one)
        with m.If(known & dut.known.last & burst.beats_minus_one[0] & ~last):
            m.d.comb += Assert(noted == dut.number)
        with m.If(passed):
            passing = dut.known.burst
            beyond = passing.word + passing.beats_minus_one + self.clearance
            contains = dut.known.valid & (passing.word <= word) & (word <= beyond)
            m.d.comb += [
                Assert(noted == number),
                Assert(ahead < dut.passed),
                Assert((number - dut.first - dut.late)[: len(number)] == ahead),
                Assert(~dut.safe | (dut.known.entry != dut.entry(word))),
                Assert(~contains | (self._word(dut.known) <= word)),
                Assert(~(passes & contains & ~(dut.written & (ahead == 0)))),
                Cover(contains & dut.space),
                Cover(dut.written & (ahead == 2)),
            ]


@proved_and_covered(3, 14)
def test_no_burst_passes_too_early(mode, depth):
    prove(GateSpec(), name=f"reduce-hazards-{mode}", mode=mode, depth=depth, proves="F17")


def test_proof_finds_bursts_that_are_too_close():
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(GateSpec(clearance=1), name="reduce-hazards-clearance", mode="bmc", depth=8)
