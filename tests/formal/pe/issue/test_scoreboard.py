"""The scoreboard never clears an access that clashes with an mm or load in flight, and counts them correctly."""

from amaranth.hdl import Array, Assert, Assume, Cover, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.pe.issue.scoreboard import LOADS, RangeLayout, Scoreboard
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.verify.formal import prove

PARAMS = PE_PRESETS["unit"].replace(regs=16)


class ScoreboardSpec(Spec):
    """Any one mm and any one load are followed: the solver chooses them when they are issued."""

    def __init__(self):
        self.dut = dut = Scoreboard(PARAMS)
        self.mm_add, self.load_add = (port.valid & port.ready for port in (dut.mm_registers, dut.load_registers))
        self.choose_mm = Signal()
        self.choose_load = Signal()

    def specify(self, m, dut):
        access, compute = dut.access, dut.compute
        mms, untaken, loads = (Signal(range(32), name=name) for name in ("mms", "untaken", "loads"))
        m.d.sync += [
            mms.eq(mms + self.mm_add - compute.mm_done),
            untaken.eq(untaken + self.mm_add - compute.factors_taken),
            loads.eq(loads + self.load_add - dut.load_done),
        ]
        m.d.comb += [
            # What the sides promise.
            Assume(~self.load_add | (access.valid & access.writes & access.clear)),
            Assume(~self.load_add | (dut.load_registers.payload == access.registers)),
            Assume(~compute.factors_taken | compute.factors_ready),
            Assume(~compute.mm_done | (mms > untaken)),
            Assume(~dut.load_done | (loads != 0)),
            # No more than fit are accepted, and all are counted.
            Assert(mms <= PARAMS.mm_in_flight),
            Assert(loads <= LOADS),
            Assert(untaken <= mms),
            Assert(dut.empty == ((mms == 0) & (loads == 0))),
            Assert(~compute.factors_ready | (untaken != 0)),
        ]
        for ranges in (access.registers, dut.mm_registers.payload.accumulators, dut.mm_registers.payload.factors):
            m.d.comb += Assume(ranges.first <= ranges.last)
        self._count(m, mms, untaken, loads)
        self._follow_mm(m, mms, untaken)
        self._follow_load(m, loads)

    def _count(self, m, mms, untaken, loads):
        """Items in flight are in consecutive slots, from the oldest on."""
        dut = self.dut
        for ring, count in ((dut.mms, mms), (dut.loads, loads)):
            m.d.comb += Assert(ring.place == (ring.oldest + count)[: len(ring.place)])
            m.d.comb += Assert(ring.level == count)
            for index, occupied in enumerate(ring.occupied):
                m.d.comb += Assert(occupied == ((index - ring.oldest)[: len(ring.oldest)] < count))
        m.d.comb += Assert(dut.next == (dut.mms.oldest + mms - untaken)[: len(dut.next)])
        for index, bit in enumerate(dut.unread):
            m.d.comb += Assert(bit == ((index - dut.next)[: len(dut.next)] < untaken))
        following = self._following()
        for name in ("accumulators", "factors"):
            m.d.comb += Assert(~dut.following_valid | (dut.following[name].as_value() == following[name].as_value()))
        m.d.comb += Assert(~dut.following_valid | (untaken != 0))

    def _follow_mm(self, m, mms, untaken):
        dut, access, compute = self.dut, self.dut.access, self.dut.compute
        pending, fetches = Signal(), Signal()  # it is under way; its factors are still to be read
        ahead, ahead_untaken = (
            Signal.like(mms),
            Signal.like(mms),
        )  # older ones under way, and of them with factors to read
        accumulators, factors = Signal(RangeLayout(PARAMS)), Signal(RangeLayout(PARAMS))
        with m.If(~pending & self.mm_add & self.choose_mm):
            m.d.sync += [
                pending.eq(1),
                fetches.eq(1),
                ahead.eq(mms - compute.mm_done),
                ahead_untaken.eq(untaken - compute.factors_taken),
                accumulators.eq(dut.mm_registers.payload.accumulators),
                factors.eq(dut.mm_registers.payload.factors),
            ]
        with m.Elif(pending):
            with m.If(compute.mm_done):
                m.d.sync += [pending.eq(ahead != 0), ahead.eq(ahead - 1)]
            with m.If(compute.factors_taken & fetches):
                m.d.sync += [fetches.eq(ahead_untaken != 0), ahead_untaken.eq(ahead_untaken - 1)]

        with m.If(pending):
            m.d.comb += [
                Assert(ahead < mms),
                Assert(fetches == (mms - untaken <= ahead)),
                Assert(~fetches | (ahead_untaken == ahead - (mms - untaken))),
                Assert(~(access.valid & overlap(access.registers, accumulators)) | ~access.clear),
                Assert(~(fetches & access.valid & access.writes & overlap(access.registers, factors)) | ~access.clear),
            ]
            for index, mm in enumerate(dut.mms.items):
                with m.If((dut.mms.oldest + ahead)[: len(dut.mms.oldest)] == index):
                    m.d.comb += Assert((mm.accumulators == accumulators) & (mm.factors == factors))
            # A younger one that may read its factors does not read what this one writes.
            with m.If(compute.factors_ready & ~fetches):
                m.d.comb += Assert(~overlap(self._following().factors, accumulators))
            m.d.comb += Cover(access.clear & compute.factors_ready & ~fetches & access.valid & access.writes)

    def _follow_load(self, m, loads):
        dut, access, compute = self.dut, self.dut.access, self.dut.compute
        pending, ahead, written = Signal(name="loading"), Signal.like(loads), Signal(RangeLayout(PARAMS))
        with m.If(~pending & self.load_add & self.choose_load):
            m.d.sync += [pending.eq(1), ahead.eq(loads - dut.load_done), written.eq(dut.load_registers.payload)]
        with m.Elif(pending & dut.load_done):
            m.d.sync += [pending.eq(ahead != 0), ahead.eq(ahead - 1)]

        with m.If(pending):
            m.d.comb += [
                Assert(ahead < loads),
                Assert(~(access.valid & overlap(access.registers, written)) | ~access.clear),
            ]
            for index, load in enumerate(dut.loads.items):
                with m.If((dut.loads.oldest + ahead)[: len(dut.loads.oldest)] == index):
                    m.d.comb += Assert(load == written)
            following = self._following()
            with m.If(compute.factors_ready):
                m.d.comb += [
                    Assert(~overlap(following.factors, written)),
                    Assert(~overlap(following.accumulators, written)),
                ]
        m.d.comb += Cover((loads == LOADS) & pending & (ahead == 1))

    def _following(self):
        """The oldest mm whose factors are not taken."""
        return Array(self.dut.mms.items)[self.dut.next]


def overlap(one, other):
    return (one.first <= other.last) & (other.first <= one.last)


@proved_and_covered(2, 12)
def test_no_clash_is_cleared_and_nothing_overflows(mode, depth):
    prove(ScoreboardSpec(), name=f"pe-scoreboard-{mode}", mode=mode, depth=depth, proves="F15")
