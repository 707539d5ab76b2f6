"""Loops inside each other: each goes back as often as it says, whatever the loops in it do."""

import pytest
from amaranth.hdl import Array, Assert, Assume, Const, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.core.program.loops import LoopStack
from tilewright.spec.core import LOOPS
from tilewright.verify.formal import prove

#: Ends of loops in the program that is proved, by the index of their word; the first one is the innermost.
ENDS = LOOPS + 1
ROUNDS = 3


class LoopSpec(Spec):
    """A stack without a trick: what is left of every loop, by its number; a loop begins with all it has."""

    def specify(self, m, dut):
        # Rounds are constant from word to word: free at the beginning, and then held.
        rounds = Array(Signal(range(1, ROUNDS + 1), name=f"rounds{i}") for i in range(ENDS))
        left = Array(Signal(range(ROUNDS + 1), name=f"left{i}") for i in range(ENDS))
        begun = Signal()
        m.d.sync += begun.eq(1)
        at, held = Signal(range(ENDS)), Signal()
        m.d.comb += [at.eq(dut.index), Assume(dut.index < ENDS)]
        with m.If(~begun):
            for loop in range(ENDS):
                chosen = dut.count[2 * loop : 2 * loop + 2]
                m.d.sync += [rounds[loop].eq(Mux(chosen == 0, 1, chosen)), left[loop].eq(0)]
            m.d.comb += [Assume(~dut.ends), Assume(~dut.clear)]
        with m.Else():
            m.d.comb += Assume(dut.count == rounds[at])
        # The word at hand has been there for a cycle.
        index = Signal.like(dut.index)
        m.d.sync += [index.eq(dut.index), held.eq(begun & ~dut.ends & ~dut.clear)]
        m.d.comb += Assume(~dut.ends | (held & (index == dut.index)))

        under_way = sum(part != 0 for part in left)
        goes_back = Mux(left[at] != 0, left[at] != 1, rounds[at] != 1)
        is_full = (left[at] == 0) & (rounds[at] != 1) & (under_way == LOOPS)
        # A loop is not left but through its end, and the ends of those around it are behind that: the word at hand is
        # the end of the innermost loop that is under way, or of one inside of it.
        for loop in range(ENDS):
            m.d.comb += Assume((left[loop] == 0) | (at <= loop))
        with m.If(held & (index == dut.index)):
            m.d.comb += [Assert(dut.full == is_full), Assert(is_full | (dut.again == goes_back))]
        m.d.comb += [Assume(~(dut.ends & is_full)), Assert(dut.depth == under_way)]
        with m.If(dut.clear):
            m.d.sync += [part.eq(0) for part in left]
        with m.Elif(dut.ends):
            m.d.sync += left[at].eq(Mux(left[at] != 0, left[at] - 1, rounds[at] - 1))
        m.d.comb += [
            Cover(dut.full & held & (index == dut.index)),
            Cover(dut.ends & ~dut.again & (dut.depth == LOOPS)),
            Cover(dut.clear & (dut.depth == Const(2))),
        ]


@pytest.mark.parametrize("depth", [13, pytest.param(16, marks=pytest.mark.long)])
def test_rounds(depth):
    prove(LoopSpec(LoopStack()), name="core-program-loops", mode="bmc", depth=depth)


@pytest.mark.long
def test_every_case_is_reached():
    prove(LoopSpec(LoopStack()), name="core-program-loops-cover", mode="cover", depth=20)
