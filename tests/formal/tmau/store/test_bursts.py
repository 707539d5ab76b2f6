"""F6: the bursts of a run hold exactly its bus words, and one burst of a transfer is its last; F11: none idles."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover, Elaboratable

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.bursts import WriteGenerator
from tilewright.hw.tmau.store.layouts import StoredRunLayout
from tilewright.sim.formal import StreamRules, prove

PARAMS = TMAU_PRESETS["unit"]


class BurstsSpec(Elaboratable):
    """Counts the beats of the run that is being asked for."""

    def __init__(self):
        self.dut = WriteGenerator(PARAMS)

    def ports(self):
        return [self.dut.i.valid, self.dut.i.payload, self.dut.bursts.ready]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.runs_rules = StreamRules(dut.i, assume=True)
        m.submodules.bursts_rules = StreamRules(dut.bursts)
        given, burst = dut.i.payload, dut.bursts.payload
        m.d.comb += [
            Assume((given.bytes != 0) & (given.bytes <= PARAMS.smem.size_bytes)),
            Assume(given.last | ~given.empty),
        ]

        run, busy = Signal(StoredRunLayout(PARAMS)), Signal()
        asked = Signal(len(run.bytes))  # words of the run in bursts before the one that is offered
        words = Signal(len(run.bytes))
        beats = burst.beats_minus_one + 1
        offset = run.address[: PARAMS.bus_log2]
        final = Mux(run.empty, 1, asked + beats == words)
        goes = dut.bursts.valid & dut.bursts.ready
        m.d.comb += words.eq(((offset + run.bytes - 1) >> PARAMS.bus_log2) + 1)
        with m.If(dut.i.ready):
            m.d.sync += [busy.eq(dut.i.valid & ~given.context.loop), run.eq(given), asked.eq(0)]
        with m.Elif(goes):
            m.d.sync += asked.eq(asked + beats)

        m.d.comb += [Assert(dut.bursts.valid == busy), Assert(dut.i.ready == (~busy | (goes & final)))]
        with m.If(busy):
            m.d.comb += [
                Assert(burst.empty == run.empty),
                Assert(burst.last == (run.last & final)),
                Assert(burst.reduction == run.context.reduction),
                Assert(burst.element == run.context.element),
            ]
            with m.If(~run.empty):
                m.d.comb += [
                    Assert(burst.word == (run.address[PARAMS.bus_log2 :] + asked)[: PARAMS.word_width]),
                    Assert(asked + beats <= words),
                    Assert(beats <= PARAMS.max_burst),
                ]
        self.tie(m, run, busy, asked, words)
        m.d.comb += Cover(goes & final & run.last & (asked == 2 * PARAMS.max_burst))
        m.d.comb += Cover(goes & run.empty)
        return m

    def tie(self, m, run, busy, asked, words):
        """What the registers of the device hold: makes the induction close."""
        dut = self.dut
        splitter, asks = dut.splitter, dut.asked
        with m.If(busy):
            m.d.comb += [
                Assert((run.bytes != 0) & (run.bytes <= PARAMS.smem.size_bytes) & (run.last | ~run.empty)),
                Assert((asks.empty == run.empty) & (asks.last == run.last)),
                Assert(asks.reduction == run.context.reduction),
                Assert(asks.element == run.context.element),
                Assert(asks.range.word == run.address[PARAMS.bus_log2 :]),
                Assert(asks.range.count == words),
                Assert(splitter.left == (asked != 0)),
                Assert(~run.empty | (asked == 0)),
                Assert(run.empty | (asked < words)),
            ]
            with m.If(splitter.left):
                m.d.comb += Assert(splitter.rest.word == (run.address[PARAMS.bus_log2 :] + asked)[: PARAMS.word_width])
                m.d.comb += Assert(splitter.rest.count == words - asked)
        with m.Else():
            m.d.comb += Assert(~splitter.left)


def test_bursts_hold_the_words_of_the_run():
    spec = BurstsSpec()
    prove(spec, spec.ports(), name="store-bursts", depth=2, proves="F6 F11")


def test_all_bursts_are_reached():
    spec = BurstsSpec()
    prove(spec, spec.ports(), name="store-bursts-cover", mode="cover", depth=8)
