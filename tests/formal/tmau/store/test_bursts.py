"""F6: the bursts of a run hold exactly its bus words, and one burst of a transfer is its last; F11: none idles."""

from amaranth.hdl import Assert, Assume, Cover, Mux, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.bursts import StoreFinisher, WriteGenerator
from tilewright.hw.tmau.store.layouts import StoredRunLayout
from tilewright.verify.formal import prove

PARAMS = TMAU_PRESETS["unit"].replace(processors=3)


class BurstsSpec(Spec):
    """Keeps the runs whose bursts have not all left, two at most, and counts the beats of the older one."""

    given, made = "i", "bursts"

    def specify(self, m, dut):
        given, burst = dut.i.payload, dut.bursts.payload
        m.d.comb += [
            Assume((given.bytes != 0) & (given.bytes <= PARAMS.smem.size_bytes)),
            Assume(given.last | ~given.empty),
        ]

        run, behind = Signal(StoredRunLayout(PARAMS)), Signal(StoredRunLayout(PARAMS))
        held = Signal(range(3))
        asked = Signal(len(run.bytes))  # words of the run in bursts before the one that is offered
        words = self.words(run)
        beats = burst.beats_minus_one + 1
        final = Mux(run.empty, 1, asked + beats == words)
        comes = dut.i.valid & dut.i.ready & ~given.context.loop
        goes = dut.bursts.valid & dut.bursts.ready
        leaves = goes & final
        m.d.sync += held.eq(held + comes - leaves)
        with m.If(goes):
            m.d.sync += asked.eq(Mux(final, 0, asked + beats))
        with m.If(leaves):
            m.d.sync += run.eq(behind)
        with m.If(comes):
            with m.If(held == leaves):
                m.d.sync += run.eq(given)
            with m.Else():
                m.d.sync += behind.eq(given)

        m.d.comb += [Assert(held <= 2), Assert(dut.bursts.valid == (held != 0)), Assert(dut.i.ready == (held != 2))]
        with m.If(held != 0):
            m.d.comb += [
                Assert(burst.empty == run.empty),
                Assert(burst.last == (run.last & final)),
                Assert(burst.reduction == run.context.reduction),
                Assert(burst.element == run.context.element),
                Assert(burst.processor == run.context.tag[14:]),
            ]
            with m.If(~run.empty):
                m.d.comb += [
                    Assert(burst.word == (run.address[PARAMS.bus_log2 :] + asked)[: PARAMS.word_width]),
                    Assert(asked + beats <= words),
                    Assert(beats <= PARAMS.max_burst),
                ]
        self.tie(m, held, run, behind, asked)
        m.d.comb += Cover(goes & final & run.last & (asked == 2 * PARAMS.max_burst))
        m.d.comb += Cover(goes & run.empty)

    @staticmethod
    def words(run):
        offset = run.address[: PARAMS.bus_log2]
        return (((offset + run.bytes - 1) >> PARAMS.bus_log2) + 1)[: len(run.bytes)]

    def tie(self, m, held, run, behind, asked):
        """What the registers of the device hold: makes the induction close."""
        splitter = self.dut.splitter
        m.d.comb += [Assert(splitter.pending == (held == 2)), Assert((held != 0) | (asked == 0))]
        for there, range_, of, done in (
            (held != 0, splitter.todo, run, asked),
            (held == 2, splitter.following, behind, 0),
        ):
            with m.If(there):
                m.d.comb += [
                    Assert((of.bytes != 0) & (of.bytes <= PARAMS.smem.size_bytes) & (of.last | ~of.empty)),
                    Assert((range_.tag.empty == of.empty) & (range_.tag.last == of.last)),
                    Assert(range_.tag.reduction == of.context.reduction),
                    Assert(range_.tag.element == of.context.element),
                    Assert(range_.tag.processor == of.context.tag[14:]),
                ]
                with m.If(of.empty):
                    m.d.comb += [Assert(range_.beyond == 0), Assert(done == 0)]
                with m.Else():
                    m.d.comb += [
                        Assert(done < self.words(of)),
                        Assert(range_.word == (of.address[PARAMS.bus_log2 :] + done)[: PARAMS.word_width]),
                        Assert(range_.beyond == self.words(of) - done - 1),
                    ]


@proved_and_covered(2, 8)
def test_bursts_hold_the_words_of_the_run(mode, depth):
    prove(BurstsSpec(WriteGenerator(PARAMS)), name=f"store-bursts-{mode}", mode=mode, depth=depth, proves="F6 F11")


class StoreFinishSpec(Spec):
    """Counts, modulo 16, what has come and what has ended."""

    given, made = "responses", "completions"

    def specify(self, m, dut):
        end, response = dut.queue.o.payload, dut.responses.payload
        came = dut.ends.valid & dut.ends.ready
        final = dut.responses.valid & dut.responses.ready & response.last
        completes = dut.completions.valid & dut.completions.ready

        waiting, queue = Signal(8), dut.queue
        m.d.sync += waiting.eq(waiting + came - dut.done_stb)
        read = queue.o.valid + queue.fetched  # of the queue's items those that have left its memory
        m.d.comb += [
            Assert(waiting == queue.level),
            Assert(waiting <= PARAMS.commands_in_flight),
            Assert(read <= waiting),
            Assert((waiting != PARAMS.commands_in_flight) | (read != 0)),
            Assert(queue.tail == (queue.head + waiting - read)[: len(queue.tail)]),
            # Each last response ends one transfer, and each transfer for the bus takes one.
            Assert(~final | (dut.done_stb & ~end.loop)),
            Assert(~dut.done_stb | (final != end.loop)),
            Assert(completes == (final & ~end.quiet)),
            Assert(
                ~completes | ((dut.completions.payload.tag == end.tag) & (dut.completions.payload.bytes == end.bytes))
            ),
            # A response that found an error is told of with this completion or a later one.
            Assert(~(completes & (response.error | end.error)) | dut.completions.payload.error),
        ]
        m.d.comb += Cover(completes & dut.completions.payload.error & ~response.error & ~end.error & (waiting == 2))


@proved_and_covered(3, 8)
def test_one_end_a_transfer(mode, depth):
    prove(
        StoreFinishSpec(StoreFinisher(TMAU_PRESETS["unit"])),
        name=f"store-finish-{mode}",
        mode=mode,
        depth=depth,
        proves="F6",
    )
