"""F17: no two cores have reductions open in one page, and none waits for its page longer than is promised.

The memory has two places, both of which are watched. How many reductions each core has open in each is counted beside
the gate; in which of the two one ends is up to the solver. Answers and failures are strobes of open reductions, as
docs/cluster.md says of a core.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.cluster.memory.reductions import ReductionGate
from tilewright.verify.formal import prove

CORES, PLACES, TURN = 3, 2, 16


class GateSpec(Spec):
    """The gate; with ``early`` it is told of the last open reduction before that has ended, and the proof must fail."""

    given = "pages"

    def __init__(self, early=False):
        self.dut = ReductionGate(2, CORES, PLACES)
        self.ends = [Signal(2, name=f"ends{core}") for core in range(CORES)]  # of its open reductions: answered, failed
        self.where = [Signal(2, name=f"where{core}") for core in range(CORES)]  # in which place
        self.early = early

    def specify(self, m, dut):
        takes = [source.valid & source.ready for source in self.dut.pages]
        for core, source in enumerate(dut.pages):
            # The next page comes after the grant.
            m.d.comb += Assume(~(source.valid & dut.waiting & dut.asker[core]))
            m.d.comb += Assert(~dut.granted[core] | (dut.waiting & dut.asker[core]))
        m.d.comb += [
            Assert(dut.asker & (dut.asker - 1) == 0),
            Assert(~(dut.waiting | dut.turn) | dut.asker.any()),
            Assert(~dut.blocked | dut.waiting),
            Assert(~Cat(takes).any() | ~dut.waiting),
        ]
        noted = [dut.memory.read_port(domain="comb") for _ in range(PLACES + 1)]
        for place, port in enumerate(noted[:PLACES]):
            m.d.comb += port.addr.eq(place)
        m.d.comb += noted[PLACES].addr.eq(dut.place)
        # Memory is not reset, and what was read shows only while a page waits.
        m.d.comb += Assert(~dut.waiting | (dut.note == noted[PLACES].data))

        inside = [self._follow(m, core, noted) for core in range(CORES)]
        for place in range(PLACES):
            here = Cat(bits[place] for bits in inside)
            m.d.comb += [Assert(here & (here - 1) == 0), Cover(here[1] & dut.blocked)]
        for one in range(CORES):
            for other in range(CORES):
                if one != other:
                    self._wait(m, one, other)

    def _follow(self, m, core, noted):
        """What a core has open in each place; returns whether anything."""
        dut = self.dut
        ends, where = Signal(2, name=f"ended{core}"), Signal(2, name=f"was{core}")  # the gate takes a cycle to see them
        m.d.sync += [ends.eq(self.ends[core]), where.eq(self.where[core])]
        live = [Signal(8, name=f"live{core}_{place}") for place in range(PLACES)]
        gone = [sum((ends[n] & (where[n] == place) for n in range(2)), 0) for place in range(PLACES)]
        there = dut.granted[core]
        for place in range(PLACES):
            m.d.comb += Assume(gone[place] <= live[place])
            m.d.sync += live[place].eq(live[place] - gone[place] + (there & (dut.place == place)))
            with m.If(live[place] != 0):
                m.d.comb += Assert((noted[place].data.core == core) & (noted[place].data.stretch == dut.stretch[core]))
        last = (dut.open[core] == 1) & self.early & ~ends.any() & ~self.ends[core].any()
        m.d.comb += [
            dut.answered[core].eq(self.ends[core][0] | last),
            dut.failed[core].eq(self.ends[core][1]),
            Assert(dut.open[core] == live[0] + live[1]),
            Assert(dut.open[core] <= 64),
        ]
        return [count != 0 for count in live]

    def _wait(self, m, one, other):
        """While ``one`` asks for a page, ``other`` gets 17 at most: those of a turn, and the one before it."""
        dut, source = self.dut, self.dut.pages[one]
        passed = Signal(6, name=f"passed{one}{other}")
        asks, theirs = source.valid & ~source.ready, dut.asker[other]
        m.d.sync += passed.eq(Mux(asks, passed + dut.granted[other], 0))
        mask, before = dut.arbiter.arbiter.mask, Signal(name=f"before{one}{other}")
        for position in range(CORES + 1):
            with m.If(mask == (1 << CORES) - (1 << position)):
                m.d.comb += before.eq((one - position) % CORES < (other - position) % CORES)
        m.d.comb += [
            Assert(~mask & (~mask + 1)[:CORES] == 0),
            # Who was taken last comes last, and so does whoever has passed.
            Assert(~theirs | before),
            Assert((passed == 0) | before),
            Assert(~(theirs & dut.waiting & ~dut.turn) | (passed == 0)),
            Assert(~(theirs & dut.turn) | (passed + dut.rest <= TURN)),
            Assert(passed <= TURN + 1),
            Cover(passed == TURN + 1),
        ]
        # While a page is held back nobody else gets one.
        m.d.comb += Assert(~(dut.waiting & theirs) | (Cat(dut.granted) & ~dut.asker == 0))


@proved_and_covered(2, 45)
def test_no_two_cores_are_in_one_page(mode, depth):
    prove(GateSpec(), name=f"cluster-reductions-{mode}", mode=mode, depth=depth, proves="F2 F17")


def test_proof_finds_cores_that_leave_too_early():
    with pytest.raises(AssertionError, match="Assert failed"):
        prove(GateSpec(early=True), name="cluster-reductions-early", mode="bmc", depth=8)
