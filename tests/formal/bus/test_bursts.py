"""F4: bursts never cross a page, are never too long, and cover each word of their range once.

F1: a beat sequencer makes of each burst its beats, in order.
"""

import pytest
from amaranth.hdl import Assert, Cover, Mux, Signal, Value

from support.formal import Spec, proved_and_covered
from tilewright.hw.bus.bursts import BeatSequencer, BurstSplitter
from tilewright.spec import PAGE_BYTES
from tilewright.verify.formal import prove, queue_invariants


class BurstSpec(Spec):
    """Keeps the current range and the next one."""

    given, made = "i", "o"

    def __init__(self, *, word_width, count_width, bus_bytes, max_burst):
        self.page = PAGE_BYTES // bus_bytes
        self.max_burst = max_burst
        self.dut = BurstSplitter(
            word_width=word_width, count_width=count_width, bus_bytes=bus_bytes, max_burst=max_burst, tag=1
        )

    def specify(self, m, dut):
        burst = dut.o.payload
        accept, send = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready

        whole, following = Signal.like(dut.todo), Signal.like(dut.todo)
        ranges = Signal(range(3))
        words = whole.beyond + 1
        beats = burst.beats_minus_one + 1
        sent = Signal(len(whole.beyond) + 1)  # words of the current range in earlier bursts
        word = Signal.like(whole.word)
        final = sent + beats == words
        done = send & final
        m.d.comb += word.eq(whole.word + sent)
        m.d.sync += ranges.eq(ranges + accept - done)
        with m.If(send):
            m.d.sync += sent.eq(Mux(final, 0, sent + beats))
        with m.If(done):
            m.d.sync += whole.eq(following)
        with m.If(accept):
            with m.If(ranges == done):
                m.d.sync += whole.eq(dut.i.payload)
            with m.Else():
                m.d.sync += following.eq(dut.i.payload)

        end = burst.word % self.page + beats
        with m.If(dut.o.valid):
            m.d.comb += [
                Assert(end <= self.page),
                Assert(beats <= self.max_burst),
                # As few bursts as possible: each ends for one of three reasons.
                Assert((beats == self.max_burst) | (end == self.page) | final),
                Assert(burst.word == word),
                Assert(burst.tag == whole.tag),
                Assert(sent + beats <= words),
                Assert(dut.last == final),
            ]
        m.d.comb += [
            Assert(ranges <= 2),
            Assert(dut.o.valid == (ranges != 0), "no range idles"),
            Assert(dut.i.ready == (ranges != 2)),
            # Contents of the registers.
            Assert(dut.pending == (ranges == 2)),
            Assert((ranges != 0) | (sent == 0)),
            Assert((ranges != 2) | (Value.cast(dut.following) == Value.cast(following))),
        ]
        with m.If(ranges != 0):
            m.d.comb += [
                Assert(sent <= whole.beyond),
                Assert(dut.todo.word == word),
                Assert(dut.todo.beyond == whole.beyond - sent),
                Assert(dut.todo.tag == whole.tag),
            ]

        m.d.comb += Cover(dut.o.valid & (sent != 0) & (burst.word % self.page == 0))
        m.d.comb += Cover(done & (sent == 2 * self.max_burst))
        m.d.comb += Cover(done & (ranges == 2))


SIZES = {
    "unit": {"word_width": 28, "count_width": 10, "bus_bytes": 16, "max_burst": 4},
    "default": {"word_width": 42, "count_width": 13, "bus_bytes": 64, "max_burst": 16},
    "full": {"word_width": 58, "count_width": 14, "bus_bytes": 64, "max_burst": 16},
    "single words": {"word_width": 28, "count_width": 10, "bus_bytes": 16, "max_burst": 1},
    "whole pages": {"word_width": 28, "count_width": 10, "bus_bytes": 16, "max_burst": 256},
}


@pytest.mark.parametrize(
    "size",
    [
        "unit",
        "default",
        *(pytest.param(size, marks=pytest.mark.long) for size in SIZES if size not in ("unit", "default")),
    ],
)
def test_bursts(size):
    prove(BurstSpec(**SIZES[size]), name=f"bus-burst-{size.replace(' ', '-')}", depth=2, proves="F4")


@pytest.mark.long
def test_splits_are_reached():
    prove(BurstSpec(**SIZES["unit"]), name="bus-burst-cover", mode="cover", depth=8)


DEPTH = 4


class SequencerSpec(Spec):
    given, made = "bursts", "beats"

    def __init__(self):
        self.dut = BeatSequencer(2, DEPTH)
        self.track = Signal()

    def specify(self, m, dut):
        accept = dut.bursts.valid & dut.bursts.ready
        beat = dut.beats.valid & dut.beats.ready
        ended = beat & dut.beats.payload.last

        tracking, burst = Signal(), Signal.like(dut.bursts.payload)
        ahead, bursts = Signal(range(DEPTH + 1)), Signal(range(DEPTH + 1))  # before the tracked one; in the sequencer
        beats = Signal(8)  # beats of the oldest burst so far
        m.d.sync += bursts.eq(bursts + accept - ended)
        with m.If(beat):
            m.d.sync += beats.eq(Mux(ended, 0, beats + 1))
        with m.If(tracking):
            m.d.sync += ahead.eq(ahead - ended)
            with m.If(ended & (ahead == 0)):
                m.d.sync += tracking.eq(0)
        with m.Elif(accept & self.track):
            m.d.sync += [tracking.eq(1), burst.eq(dut.bursts.payload), ahead.eq(bursts - ended)]

        m.d.comb += Assert(dut.beats.valid == (bursts != 0))
        with m.If(tracking & (ahead == 0)):
            m.d.comb += [
                Assert(dut.beats.payload.tag == burst.tag),
                Assert(dut.beats.payload.last == (beats == burst.beats_minus_one)),
                Assert(beats <= burst.beats_minus_one),
                Cover(ended & (beats == 2) & (bursts == DEPTH)),
            ]
        self._invariants(m, tracking, burst, ahead, bursts, beats)

    def _invariants(self, m, tracking, burst, ahead, bursts, beats):
        dut, queue = self.dut, self.dut.queue
        probe = queue.memory.read_port(domain="comb")
        m.d.comb += [
            Assert(queue.level == bursts),
            *queue_invariants(queue),
            Assert(dut.beat == beats),
            Assert((bursts != 0) | (beats == 0)),
            probe.addr.eq(queue.head + ahead - 1),
        ]
        with m.If(tracking):
            m.d.comb += Assert(ahead < bursts)
            with m.If(ahead == 0):
                m.d.comb += Assert(queue.o.payload == burst)
            with m.Else():
                m.d.comb += Assert(probe.data == burst)
            with m.If(ahead == 1):
                m.d.comb += Assert(queue.read.data == burst)


@proved_and_covered(2, 12)
def test_beats(mode, depth):
    prove(SequencerSpec(), name=f"bus-beats-{mode}", mode=mode, depth=depth, proves="F1")
