"""F6: runs obey the stream rules; each takes one run of the queue, dropped ones too, and the last one the transfer."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.steps import StoreTracker, WordStepGenerator
from tilewright.verify.formal import prove, queue_invariants


class StoreTrackerSpec(Spec):
    """Counts runs and transfers that wait."""

    made = "o"

    def specify(self, m, dut):
        run = dut.run_queue.o
        goes = dut.o.valid & dut.o.ready
        taken, ended = run.valid & run.ready, dut.transfer_queue.o.valid & dut.transfer_queue.o.ready

        runs, transfers = Signal(8), Signal(8)
        m.d.sync += runs.eq(runs + (dut.runs.valid & dut.runs.ready) - taken)
        m.d.sync += transfers.eq(transfers + (dut.transfers.valid & dut.transfers.ready) - ended)
        m.d.comb += [
            *queue_invariants(dut.run_queue),
            *queue_invariants(dut.transfer_queue),
            Assert((runs == dut.run_queue.level) & (transfers == dut.transfer_queue.level)),
            Assert(~taken | (transfers != 0)),
            Assert(goes == (taken & (run.payload.inside | run.payload.last))),
            Assert(ended == (taken & run.payload.last)),
            Assert(~goes | ((dut.o.payload.last == run.payload.last) & (dut.o.payload.empty == ~run.payload.inside))),
            Assert(~goes | ~dut.o.payload.empty | dut.o.payload.last),
        ]
        m.d.comb += Cover(goes & dut.o.payload.empty & (transfers == 2))


@proved_and_covered(2, 8)
def test_one_run_of_the_queue_a_run(mode, depth):
    prove(
        StoreTrackerSpec(StoreTracker(TMAU_PRESETS["unit"])),
        name=f"store-tracker-{mode}",
        mode=mode,
        depth=depth,
        proves="F6",
    )


class WordStepsSpec(Spec):
    """Follows the run that is being cut, and judges each step by it."""

    given, made = "i", "steps"

    def __init__(self, bus_bytes):
        self.params = TMAU_PRESETS["unit"].replace(addr_width=16, bus_bytes=bus_bytes, smem=SmemParams(1024))
        self.dut = WordStepGenerator(self.params)

    def specify(self, m, dut):
        bus_bytes, bus_log2 = self.params.bus_bytes, self.params.bus_log2
        m.d.comb += Assume(~dut.i.valid | well_formed(dut.i.payload))

        # A run is taken with its last word; what is judged is the word before, and so the run that it is of.
        run = Signal(dut.i.payload.shape())
        with m.If(dut.free):
            m.d.sync += run.eq(dut.i.payload)
        # Bytes and words of the run in the steps before the one at the output, which is judged; the segment that was
        # taken last in the transfer, if one was.
        covered, words = Signal.like(run.bytes), Signal.like(run.bytes)
        had, had_segment = Signal(), Signal.like(dut.segment)

        step, cut = dut.steps.payload, dut.steps.payload.cut
        count = Signal.like(cut.end)
        final = Signal()  # the run's last step
        goes = dut.steps.valid & dut.steps.ready
        m.d.comb += [
            count.eq(cut.end - cut.first),
            final.eq(run.empty | (cut.word & (words + 1 == self.total(m, run)))),
        ]
        address, source = Signal.like(run.address), Signal.like(run.source)
        segment, taken = source[bus_log2:], Signal.like(had_segment)
        m.d.comb += [address.eq(run.address + covered), source.eq(run.source + covered)]
        across = source[:bus_log2] + count > bus_bytes
        here = had & (had_segment == segment)
        m.d.comb += taken.eq(segment + (cut.word & cut.straddle))
        with m.If(goes):
            m.d.sync += [covered.eq(covered + Mux(cut.word, count, 0)), words.eq(words + cut.word)]
            m.d.sync += had.eq((had | cut.fetch) & ~cut.last)
            with m.If(cut.fetch):
                m.d.sync += had_segment.eq(taken)
            with m.If(final):
                m.d.sync += [covered.eq(0), words.eq(0)]

        with m.If(dut.steps.valid):
            # The next word comes when the last step of this one goes.
            m.d.comb += Assert(dut.free == (goes & (cut.word | run.empty)))
            m.d.comb += [
                *(Assert(cut[name] == run.context[name]) for name in ("tag", "quiet", "bytes", "loop")),
                *(Assert(step[name] == run.context[name]) for name in ("stage", "immediate", "fill")),
                Assert(cut.last == (final & run.last)),
            ]
            with m.If(cut.word):
                m.d.comb += [
                    Assert(~run.empty),
                    Assert(cut.first == address[:bus_log2]),
                    Assert((cut.end > cut.first) & (cut.end <= bus_bytes)),
                    Assert(covered + count <= run.bytes),
                    Assert(final == (covered + count == run.bytes)),
                    Assert(final | (cut.end == bus_bytes)),
                    Assert(cut.turn == (source - cut.first)[:bus_log2]),
                    Assert(cut.straddle == across),
                    # Both segments are there when they are used; what is there is not taken again.
                    Assert(here | ~cut.straddle),
                    Assert(cut.fetch == (~here | cut.straddle)),
                ]
            with m.Elif(run.empty):
                m.d.comb += [Assert(final), Assert(~cut.fetch)]
            with m.Else():
                m.d.comb += [Assert(~final), Assert(cut.fetch & ~here & cut.straddle)]
            with m.If(cut.fetch):
                self.check_place(m, step, taken, run.context.swizzle)
                line, had_line = (one >> (7 - bus_log2) for one in (taken, had_segment))
                m.d.comb += Assert(step.again == (had & (line == had_line)))
        self.tie(m, run, covered, words, had, had_segment)

        seen = Signal(3)
        with m.If(goes):
            m.d.sync += seen.eq(seen | Cat(cut.word & cut.straddle, ~cut.word & cut.fetch, final & run.empty))
        m.d.comb += Cover(seen.all())
        return m

    def total(self, m, run):
        """Bus words of the run."""
        total = Signal.like(run.bytes)
        offset, bus_log2 = run.address[: self.params.bus_log2], self.params.bus_log2
        m.d.comb += total.eq((offset + run.bytes + self.params.bus_bytes - 1) >> bus_log2)
        return total

    def check_place(self, m, step, taken, swizzle):
        """Every 16 bytes of the segment lie where the swizzle puts them: docs/tmau.md, "Swizzle"."""
        for number in range(self.params.bus_bytes // 16):
            chunk = Signal(len(taken) + 3, name=f"chunk{number}")  # byte address >> 4
            m.d.comb += chunk.eq((taken << (self.params.bus_log2 - 4)) + number)
            place = Signal(3, name=f"place{number}")
            with m.Switch(swizzle):
                for bits in range(4):
                    with m.Case(bits):
                        m.d.comb += place.eq(chunk[:3] ^ chunk[3 : 3 + bits])
            m.d.comb += [Assert(step.row == chunk[3:]), Assert(step.bank ^ number == place)]

    def tie(self, m, run, covered, words, had, had_segment):
        """What the registers of the device hold in terms of the steps so far: makes the induction close."""
        dut, word, bus_bytes, bus_log2 = self.dut, self.dut.word, self.params.bus_bytes, self.params.bus_log2
        reached, end = Signal(len(run.bytes) + 1), Signal(len(run.bytes) + 1)
        beyond, final = Signal.like(covered), Signal()  # what is left behind the word: nothing
        m.d.comb += [
            reached.eq(run.address[:bus_log2] + covered),
            end.eq(word.first + run.bytes - covered),
            beyond.eq(covered + word.end - word.first),
            final.eq(run.empty | (beyond == run.bytes)),
            Assert(had == dut.has_segment),
            Assert(~had | (had_segment == dut.segment)),
            Assert((words == 0) == (covered == 0)),
            Assert(dut.begun == (dut.steps.valid & ~final)),
            Assert(~dut.begun | (dut.ending == (dut.bytes <= bus_bytes))),
        ]
        with m.If(dut.steps.valid):
            m.d.comb += [
                Assert(well_formed(run)),
                Assert(word.context == run.context),
                Assert(word.empty == run.empty),
                Assert(word.last == (run.last & final)),
                Assert(~run.empty | (covered == 0)),
            ]
        with m.Else():
            m.d.comb += Assert(covered == 0)
        with m.If(dut.steps.valid & ~run.empty):
            m.d.comb += [
                Assert(covered < run.bytes),
                Assert((covered == 0) | (reached[:bus_log2] == 0)),
                Assert(words == reached >> bus_log2),
                Assert(word.first == reached[:bus_log2]),
                Assert(word.end == Mux(end > bus_bytes, bus_bytes, end)),
                Assert(word.segment == (run.source + covered)[bus_log2 : len(run.source)]),
                Assert(word.turn == (run.source + covered - word.first)[:bus_log2]),
                Assert(word.straddle == ((run.source + covered)[:bus_log2] + word.end - word.first > bus_bytes)),
            ]
        with m.If(dut.begun):
            m.d.comb += [
                Assert(dut.i.valid & (dut.i.payload == run)),
                Assert(dut.source == (run.source + beyond)[: len(run.source)]),
                Assert(dut.bytes == run.bytes - beyond),
            ]


def well_formed(run):
    """What StoredRunLayout promises."""
    return (run.empty & run.last) | (~run.empty & (run.bytes != 0) & (run.bytes <= 1024))


@pytest.mark.long
@pytest.mark.parametrize("bus_bytes", [16, 64])
def test_steps_cover_the_run(bus_bytes):
    prove(WordStepsSpec(bus_bytes), name=f"word_steps_{bus_bytes}", depth=3, proves="F8")


@pytest.mark.long
def test_word_steps_spec_reaches_every_kind_of_step():
    prove(WordStepsSpec(64), name="word_steps_cover", mode="cover", depth=12)
