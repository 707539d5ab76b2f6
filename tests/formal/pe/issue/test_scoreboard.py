"""The scoreboard never clears an access that clashes with what is under way, nor loses count of it."""

from amaranth import Array, Module, Signal
from amaranth.hdl import Assert, Assume, Cover, Elaboratable

from tilewright.hw.pe.issue.scoreboard import LOADS, RangeLayout, Scoreboard
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.formal import prove

PARAMS = PE_PRESETS["unit"].replace(regs=16)


class ScoreboardSpec(Elaboratable):
    """Any one mm and any one load are followed: the solver chooses them when they are issued."""

    def __init__(self):
        self.dut = Scoreboard(PARAMS)
        self.choose_mm = Signal()
        self.choose_load = Signal()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        mms, untaken, loads = (Signal(range(32), name=name) for name in ("mms", "untaken", "loads"))
        m.d.sync += [
            mms.eq(mms + dut.mm_add - dut.mm_done),
            untaken.eq(untaken + dut.mm_add - dut.factors_taken),
            loads.eq(loads + dut.load_add - dut.load_done),
        ]
        m.d.comb += [
            # What the sides promise.
            Assume(~dut.mm_add | dut.mm_ready),
            Assume(~dut.load_add | (dut.load_ready & dut.writes_valid & dut.clear & (dut.load == dut.writes))),
            Assume(~dut.factors_taken | dut.factors_ready),
            Assume(~dut.mm_done | (mms > untaken)),
            Assume(~dut.load_done | (loads != 0)),
            # No more than fits is let in, and what is in is counted.
            Assert(mms <= PARAMS.mm_in_flight),
            Assert(loads <= LOADS),
            Assert(untaken <= mms),
            Assert(dut.mms.count == mms),
            Assert(dut.taken == mms - untaken),
            Assert(dut.loads.count == loads),
            Assert(dut.empty == ((mms == 0) & (loads == 0))),
            Assert(~dut.factors_ready | (untaken != 0)),
        ]
        for ranges in (dut.reads, dut.writes, dut.mm_products, dut.mm_factors):
            m.d.comb += Assume(ranges.first <= ranges.last)
        self._follow_mm(m, mms, untaken)
        self._follow_load(m, loads)
        return m

    def _follow_mm(self, m, mms, untaken):
        dut = self.dut
        pending, fetches = Signal(), Signal()  # it is under way; its factors are still to be read
        ahead, ahead_untaken = (
            Signal.like(mms),
            Signal.like(mms),
        )  # older ones under way, and of them with factors to read
        products, factors = Signal(RangeLayout(PARAMS)), Signal(RangeLayout(PARAMS))
        with m.If(~pending & dut.mm_add & self.choose_mm):
            m.d.sync += [
                pending.eq(1),
                fetches.eq(1),
                ahead.eq(mms - dut.mm_done),
                ahead_untaken.eq(untaken - dut.factors_taken),
                products.eq(dut.mm_products),
                factors.eq(dut.mm_factors),
            ]
        with m.Elif(pending):
            with m.If(dut.mm_done):
                m.d.sync += [pending.eq(ahead != 0), ahead.eq(ahead - 1)]
            with m.If(dut.factors_taken & fetches):
                m.d.sync += [fetches.eq(ahead_untaken != 0), ahead_untaken.eq(ahead_untaken - 1)]

        with m.If(pending):
            m.d.comb += [
                Assert(ahead < mms),
                Assert(fetches == (dut.taken <= ahead)),
                Assert(~fetches | (ahead_untaken == ahead - dut.taken)),
                Assert(~(dut.reads_valid & overlap(dut.reads, products)) | ~dut.clear),
                Assert(~(dut.writes_valid & overlap(dut.writes, products)) | ~dut.clear),
                Assert(~(fetches & dut.writes_valid & overlap(dut.writes, factors)) | ~dut.clear),
            ]
            for index, mm in enumerate(dut.mms.items):
                with m.If(ahead == index):
                    m.d.comb += Assert((mm.products == products) & (mm.factors == factors))
            # A younger one that may read its factors does not read what this one writes.
            with m.If(dut.factors_ready & ~fetches):
                m.d.comb += Assert(~overlap(self._following().factors, products))
            m.d.comb += Cover(dut.clear & dut.factors_ready & ~fetches & dut.reads_valid & dut.writes_valid)

    def _follow_load(self, m, loads):
        dut = self.dut
        pending, ahead, written = Signal(name="loading"), Signal.like(loads), Signal(RangeLayout(PARAMS))
        with m.If(~pending & dut.load_add & self.choose_load):
            m.d.sync += [pending.eq(1), ahead.eq(loads - dut.load_done), written.eq(dut.load)]
        with m.Elif(pending & dut.load_done):
            m.d.sync += [pending.eq(ahead != 0), ahead.eq(ahead - 1)]

        with m.If(pending):
            m.d.comb += [
                Assert(ahead < loads),
                Assert(~(dut.reads_valid & overlap(dut.reads, written)) | ~dut.clear),
                Assert(~(dut.writes_valid & overlap(dut.writes, written)) | ~dut.clear),
            ]
            for index, load in enumerate(dut.loads.items):
                with m.If(ahead == index):
                    m.d.comb += Assert(load == written)
            following = self._following()
            with m.If(dut.factors_ready):
                m.d.comb += [
                    Assert(~overlap(following.factors, written)),
                    Assert(~overlap(following.products, written)),
                ]
        m.d.comb += Cover((loads == LOADS) & pending & (ahead == 1))

    def _following(self):
        """The oldest mm whose factors are not taken."""
        return Array(self.dut.mms.items)[self.dut.taken]

    def ports(self):
        dut = self.dut
        return [
            *(dut.reads_valid, dut.reads, dut.writes_valid, dut.writes),
            *(dut.mm_add, dut.mm_products, dut.mm_factors, dut.load_add, dut.load),
            *(dut.factors_taken, dut.mm_done, dut.load_done, self.choose_mm, self.choose_load),
        ]


def overlap(one, other):
    return (one.first <= other.last) & (other.first <= one.last)


def test_no_clash_is_cleared_and_nothing_overflows():
    spec = ScoreboardSpec()
    prove(spec, spec.ports(), name="pe-scoreboard", depth=2)


def test_scoreboard_spec_reaches_what_it_is_about():
    spec = ScoreboardSpec()
    prove(spec, spec.ports(), name="pe-scoreboard-cover", mode="cover", depth=12)
