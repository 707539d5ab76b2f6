"""F8: steps cover each byte of a run once, in order, each from the line that holds it, and take each line once."""

import pytest
from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.hdl import Assert, Assume, Cover, Elaboratable

from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.layouts import StoredRunLayout
from tilewright.hw.tmau.store.word_steps import WordStepGenerator
from tilewright.sim.formal import StreamRules, prove


class WordStepsSpec(Elaboratable):
    """Follows the run that is being cut, and judges the step at the output by it."""

    def __init__(self, bus_bytes):
        self.params = TMAU_PRESETS["unit"].replace(addr_width=16, bus_bytes=bus_bytes, smem=SmemParams(1024))
        self.dut = WordStepGenerator(self.params)

    def ports(self):
        return [self.dut.i.valid, self.dut.i.payload, self.dut.steps.ready]

    def elaborate(self, platform):
        m = Module()
        dut, bus_bytes, bus_log2 = self.dut, self.params.bus_bytes, self.params.bus_log2
        m.submodules.dut = dut
        m.submodules.runs_rules = StreamRules(dut.i, assume=True)
        m.submodules.steps_rules = StreamRules(dut.steps)
        m.d.comb += Assume(~dut.i.valid | well_formed(dut.i.payload))

        # The run that steps are cut from, and whether one was.
        run = Signal(StoredRunLayout(self.params))
        busy, begun = Signal(), Signal()
        # The step at the output: its run, bytes and words of that before it, the line that was there; it is the last.
        its_run, its_covered, its_words = Signal.like(run), Signal.like(run.bytes), Signal.like(run.bytes)
        had, had_row = Signal(), Signal.like(dut.held_row)
        final = Signal()

        step = dut.steps.payload
        count = Signal.like(step.end)
        # Bytes and words of the run before the next step.
        covered, words = Signal.like(its_covered), Signal.like(its_words)
        m.d.comb += [
            count.eq(step.end - step.first),
            covered.eq(Mux(begun, its_covered + Mux(step.word, count, 0), 0)),
            words.eq(Mux(begun, its_words + step.word, 0)),
        ]
        with m.If(busy & (~dut.steps.valid | dut.steps.ready)):
            m.d.sync += [
                *(its_run.eq(run), its_covered.eq(covered), its_words.eq(words), final.eq(dut.i.ready), begun.eq(1)),
                *(had.eq(dut.held), had_row.eq(dut.held_row)),
            ]
        with m.If(dut.i.ready):
            m.d.sync += [busy.eq(dut.i.valid), run.eq(dut.i.payload), begun.eq(0)]

        address, source = Signal.like(run.address), Signal.like(run.source)
        row, next_row = source[7:], (source[7:] + 1)[: len(had_row)]
        total = Signal.like(words)
        offset = its_run.address[:bus_log2]
        m.d.comb += [
            address.eq(its_run.address + its_covered),
            source.eq(its_run.source + its_covered),
            total.eq((offset + its_run.bytes + bus_bytes - 1) >> bus_log2),
        ]
        across = source[:7] + count > 128
        here = had & (had_row == row)
        with m.If(dut.steps.valid):
            m.d.comb += [
                Assert(Value.cast(step.context) == Value.cast(its_run.context)),
                Assert(step.last == (final & its_run.last)),
            ]
            with m.If(step.word):
                m.d.comb += [
                    Assert(~its_run.empty),
                    Assert(step.first == address[:bus_log2]),
                    Assert((step.end > step.first) & (step.end <= bus_bytes)),
                    Assert(its_covered + count <= its_run.bytes),
                    Assert(final == (its_covered + count == its_run.bytes)),
                    Assert(final | (step.end == bus_bytes)),
                    Assert(final == (its_words + 1 == total)),
                    Assert(step.source == source[:7]),
                    Assert(step.straddle == across),
                    # Both lines are there when they are used; what is there is not taken again.
                    Assert(here | ~step.straddle),
                    Assert(step.fetch == (~here | step.straddle)),
                    Assert(~step.fetch | (step.row == Mux(step.straddle, next_row, row))),
                ]
            with m.Elif(its_run.empty):
                m.d.comb += [Assert(final), Assert(~step.fetch)]
            with m.Else():
                m.d.comb += [Assert(~final), Assert(step.fetch & (step.row == row) & ~here & step.straddle)]
        self.tie(m, run, busy, begun, covered, words, its_run, final)
        with m.If(dut.steps.valid):
            m.d.comb += [
                Assert(well_formed(its_run)),
                Assert(dut.held == ((had | step.fetch) & ~step.last)),
                Assert(~dut.held | (dut.held_row == Mux(step.fetch, step.row, had_row))),
            ]

        seen = Signal(3)
        with m.If(dut.steps.valid & dut.steps.ready):
            m.d.sync += seen.eq(seen | Cat(step.word & step.straddle, ~step.word & step.fetch, final & its_run.empty))
        m.d.comb += Cover(seen.all())
        return m

    def tie(self, m, run, busy, begun, covered, words, its_run, final):
        """What the registers of the device hold in terms of the steps so far: makes the induction close."""
        dut, bus_log2 = self.dut, self.params.bus_log2
        reached = Signal(len(run.bytes) + 1)
        m.d.comb += [reached.eq(run.address[:bus_log2] + covered), Assert(busy == dut.busy), Assert(busy | ~begun)]
        with m.If(begun):
            m.d.comb += [Assert(dut.steps.valid & ~final), Assert(Value.cast(run) == Value.cast(its_run))]
        with m.If(busy):
            m.d.comb += [
                Assert(well_formed(run)),
                Assert(Value.cast(run.context) == Value.cast(dut.run.context)),
                Assert((run.empty == dut.run.empty) & (run.last == dut.run.last)),
                Assert(dut.run.source == (run.source + covered)[: len(run.source)]),
                Assert(dut.run.address == (run.address + covered)[: len(run.address)]),
                Assert(run.empty | ((covered < run.bytes) & (dut.run.bytes == run.bytes - covered))),
                Assert((covered == 0) | (reached[:bus_log2] == 0)),
                Assert(words == Mux(covered == 0, 0, reached >> bus_log2)),
            ]


def well_formed(run):
    """What StoredRunLayout promises."""
    return (run.empty & run.last) | (~run.empty & (run.bytes != 0) & (run.bytes <= 1024))


@pytest.mark.parametrize("bus_bytes", [16, 64])
def test_steps_cover_the_run(bus_bytes):
    spec = WordStepsSpec(bus_bytes)
    prove(spec, spec.ports(), name=f"word_steps_{bus_bytes}", depth=3, proves="F8")


def test_word_steps_spec_reaches_every_kind_of_step():
    spec = WordStepsSpec(64)
    prove(spec, spec.ports(), name="word_steps_cover", mode="cover", depth=12)
