"""F17: reductions lose no write: an old word is requested only when no earlier plain burst can change it any more.

Earlier reductions are excluded by the gate, which has a proof of its own, if it receives the response of each of them.
One burst is tracked from its handshake until its response; the solver chooses when ``track`` is set, so it stands for
any burst. The neighbours are free: they keep the stream rules, and answer only requests. The lanes are left out,
because no rule depends on their results.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.reduce.unit import Reducer
from tilewright.sim.harness.axi_monitor import OutstandingBursts
from tilewright.spec import PAGE_BYTES, Reduction
from tilewright.verify.formal import prove, queue_invariants

ADDR_WIDTH = 14
BUS_BYTES = 16
PAGE_WORDS = PAGE_BYTES // BUS_BYTES
MAX_BURST = 2
WORDS = 4


def bursts_inside(gate):
    """The number of bursts in the gate."""
    return gate.active + (gate.read.valid & gate.read.last) + (gate.known.valid & gate.known.last)


def is_reducing(burst):
    return (burst.reduction != Reduction.NONE) & ~burst.empty


class ReducerSpec(Spec):
    """The reducer with a tracked burst."""

    given, made = "i.bursts i.words o.responses", "o.bursts o.words i.responses reader.requests.o"

    def __init__(self):
        self.dut = Reducer(ADDR_WIDTH, BUS_BYTES, MAX_BURST, WORDS)
        self.dut.combiner.lanes = []
        # As if all entries had been cleared: memory is zero at the start of a proof.
        gate = self.dut.reader.gate
        gate.cleared = Signal.like(gate.cleared, init=1 << len(gate.cleared) - 1)
        self.track = Signal()

    def specify(self, m, dut):
        burst = dut.i.bursts.payload
        m.d.comb += Assume(burst.beats_minus_one < MAX_BURST)
        m.d.comb += Assume(burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS)

        # Below, a burst is accepted when it leaves the registers at the input.
        arriving, gate = dut.arriving, dut.reader.gate
        m.d.comb += Assert(arriving.o.valid | ~arriving.skidded)
        m.d.comb += [Assert(gate.cleared[-1]), Assert(~gate.active | (gate.beat <= gate.burst.beats_minus_one))]
        for valid, burst_at in (
            (arriving.o.valid, arriving.o.payload),
            (arriving.skidded, arriving.skid),
            (gate.active, gate.burst),
            (gate.read.valid, gate.read.burst),
            (gate.known.valid, gate.known.burst),
        ):
            m.d.comb += Assert(~valid | (burst_at.beats_minus_one < MAX_BURST))
            m.d.comb += Assert(~valid | (burst_at.word % PAGE_WORDS + burst_at.beats_minus_one < PAGE_WORDS))

        accepted = arriving.o.valid & arriving.o.ready
        sent = dut.o.bursts.valid & dut.o.bursts.ready
        responded = dut.o.responses.valid & dut.o.responses.ready
        total, behind = Signal(12), Signal(12)  # bursts without response: accepted, sent
        m.d.sync += [total.eq(total + accepted - responded), behind.eq(behind + sent - responded)]
        m.d.comb += Assume(~dut.o.responses.valid | (behind != 0))
        # The counter of plain bursts does not overflow: no port has as many in flight.
        m.d.comb += Assume(total < 1024)

        self._check_hazards(m, accepted, responded, total)
        self._check_reads(m, accepted)
        self._check_words(m, sent)
        self._counts(m, total, behind)

    def _check_hazards(self, m, accepted, responded, total):
        dut, incoming, gate = self.dut, self.dut.arriving.o.payload, self.dut.reader.gate
        tracking, burst, ahead = Signal(), Signal.like(incoming), Signal(12)
        with m.If(tracking):
            m.d.sync += ahead.eq(ahead - responded)
            with m.If(responded & (ahead == 0)):
                m.d.sync += tracking.eq(0)
        with m.Elif(accepted & self.track):
            m.d.sync += [tracking.eq(1), burst.eq(incoming), ahead.eq(total - responded)]

        with m.If(tracking & accepted & is_reducing(incoming)):
            m.d.comb += [Assert(is_reducing(burst)), Cover(ahead == 1)]

        # Where the tracked burst is, and when the gate hears of its response.
        reductions = gate.passed + bursts_inside(gate)
        with m.If(tracking & is_reducing(burst)):
            m.d.comb += [
                Assert(ahead < reductions),
                Assert(~(responded & (ahead == 0)) | (gate.written & (gate.passed != 0))),
                Assert(~gate.written | responded),
            ]
        with m.If(tracking & ~is_reducing(burst)):
            m.d.comb += Assert((ahead >= reductions) & (ahead - reductions < dut.plain))
        with m.If(tracking):
            m.d.comb += Assert(burst.word % PAGE_WORDS + burst.beats_minus_one < PAGE_WORDS)

    def _check_reads(self, m, accepted):
        """Every reducing burst goes through the gate, and its words are requested once, when it passes."""
        dut, reader, axi = self.dut, self.dut.reader, self.dut.axi
        incoming, gate, requested = dut.arriving.o.payload, reader.gate, reader.requests.i
        passes = gate.o.valid & gate.o.ready
        m.d.comb += [
            Assert((accepted & is_reducing(incoming)) == (gate.i.valid & gate.i.ready)),
            Assert(~gate.i.valid | (gate.i.payload == incoming)),
            Assert(passes == (requested.valid & requested.ready)),
            Assert(passes == (reader.pending.i.valid & reader.pending.i.ready)),
            Assert(~passes | (requested.payload.word == gate.o.payload.word)),
            Assert(~passes | (requested.payload.beats_minus_one == gate.o.payload.beats_minus_one)),
            Assert(~axi.arvalid | (axi.arid == 2)),
        ]
        accepted, ended = axi.arvalid & axi.arready, axi.rvalid & axi.rready & axi.rlast
        reads = Signal(8)  # bursts that the bus has accepted and not answered in full
        m.d.sync += reads.eq(reads + accepted - ended)
        m.d.comb += Assume(~axi.rvalid | (reads != 0))
        shown = reader.requests.o.valid + reader.requests.skidded
        m.d.comb += [
            Assert(reader.requests.o.valid | ~reader.requests.skidded),
            Assert(reader.pending.level == reader.outcomes.level + reads + shown),
        ]

    def _check_words(self, m, sent):
        """Each word is a beat of its burst, and a reducing one meets an old word."""
        dut, beat, old = self.dut, self.dut.sequencer.beats, self.dut.reader.words
        source = dut.sources.o
        incoming, outgoing = source.valid & source.ready, dut.o.words.valid & dut.o.words.ready
        reduces = beat.payload.tag.reduces
        combines = dut.combiner.i.valid & dut.combiner.i.ready
        noted, burst = dut.sequencer.bursts, dut.o.bursts.payload
        m.d.comb += [
            Assert(incoming == (beat.valid & beat.ready)),
            Assert((incoming & reduces) == combines),
            Assert(combines == (old.valid & old.ready)),
            # A plain word overtakes no other, and passes as it is.
            Assert(~(incoming & ~reduces) | (outgoing & ~dut.combiner.busy & (dut.o.words.payload == source.payload))),
            Assert(~outgoing | dut.combiner.busy | (incoming & ~reduces)),
            # Bursts that are sent are plain; the words of a refused burst are counted, and dropped.
            Assert(~sent | (burst.reduction == Reduction.NONE)),
            Assert((noted.valid & noted.ready) == (sent & (~burst.empty | dut.reader.waiting))),
            Assert(noted.payload.tag.reduces == (noted.payload.tag.reduction != Reduction.NONE)),
            Cover(outgoing & dut.combiner.busy),
            Cover(incoming & ~reduces),
            Cover(incoming & beat.payload.tag.failed),
        ]

    def _counts(self, m, total, behind):
        dut, reader, gate = self.dut, self.dut.reader, self.dut.reader.gate
        m.d.comb += [
            Assert(total == dut.plain + gate.passed + bursts_inside(gate)),
            Assert(total == behind + reader.pending.level + bursts_inside(gate)),
            Assert(reader.pending.level <= gate.passed),
            Assert(~reader.waiting | (dut.plain == 0)),
            Assert(gate.passed <= 2 * WORDS),
        ]
        for queue in (reader.pending, reader.outcomes, reader.old_words, dut.sequencer.queue):
            m.d.comb += queue_invariants(queue)


class RoomSpec(ReducerSpec):
    """The bus ends bursts correctly. Then there is always space for its words, and they are there when needed.

    The data are left constant: no rule is about them.
    """

    constant = "dut.i.words.payload dut.axi.rdata"

    def specify(self, m, dut):
        super().specify(m, dut)
        axi = dut.axi
        m.submodules.outstanding = outstanding = OutstandingBursts(8)
        m.d.comb += [
            outstanding.push.eq(axi.arvalid & axi.arready),
            outstanding.length.eq(axi.arlen),
            outstanding.beat.eq(axi.rvalid & axi.rready),
            Assume(~axi.rvalid | (axi.rlast == outstanding.last)),
            Assert(~axi.rvalid | axi.rready),
        ]
        beat = dut.sequencer.beats
        with m.If(beat.valid & (beat.payload.tag.reduction != Reduction.NONE)):
            m.d.comb += Assert(dut.reader.words.valid)


@proved_and_covered(2, 18)
def test_no_old_word_is_read_too_early(mode, depth):
    prove(ReducerSpec(), name=f"reduce-unit-{mode}", mode=mode, depth=depth, proves="F17")


@pytest.mark.parametrize("depth", [7, pytest.param(12, marks=pytest.mark.long)])
def test_room_for_old_words(depth):
    prove(RoomSpec(), name="reduce-unit-room", mode="bmc", depth=depth)
