"""F8: a loop nest goes from the first combination to the final one, each step to the next in lexicographic order.

A level that is cut goes to its first index, as from its last one.

Every combination comes once then: the successor, said here as an odometer digit by digit, is a strict order.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.lib.loop_nest import LoopNest
from tilewright.verify.formal import prove


class LoopSpec(Spec):
    def __init__(self, widths, *, pairs=False):
        self.widths, self.pairs = widths, pairs
        self.dut = LoopNest(widths, pairs=pairs)

    def specify(self, m, dut):
        levels = range(len(self.widths))
        lasts = [Signal(width, name=f"last{level}") for level, width in enumerate(self.widths)]
        expected = [Signal(width, name=f"expected{level}") for level, width in enumerate(self.widths)]

        wraps = [(expected[level] == lasts[level]) | dut.cut[level] for level in levels]
        pair = 0
        if self.pairs:
            # Two indices are taken: what follows the second one is what the nest goes to.
            pair = dut.pair
            m.d.comb += [Assume(~pair | (expected[0] != lasts[0])), Assert(dut.near == (expected[0] + 1 == lasts[0]))]
            wraps[0] = wraps[0] | (pair & (expected[0] + 1 == lasts[0]))
        with m.If(dut.start):
            for level in levels:
                m.d.sync += [lasts[level].eq(dut.lasts[level]), expected[level].eq(0)]
        with m.Elif(dut.step):
            carry = 1
            for level in levels:
                following = Mux(wraps[level], 0, expected[level] + 1 + (0 if level else pair))
                m.d.sync += expected[level].eq(Mux(carry, following, expected[level]))
                carry = carry & wraps[level]

        final, carry = 1, 1
        for level in levels:
            m.d.comb += [
                Assert(dut.indices[level] == expected[level]),
                Assert(dut.bounds[level] == lasts[level]),
                Assert(dut.ends[level] == (expected[level] == lasts[level])),
                Assert(expected[level] <= lasts[level]),
                Assert(dut.at_last[level] == wraps[level]),
                Assert(dut.advance[level] == (carry & ~wraps[level])),
            ]
            carry = carry & wraps[level]
            final = final & wraps[level]
        m.d.comb += Assert(dut.final == final)

        gapless = Signal()
        m.d.sync += gapless.eq(dut.final & dut.step & dut.start & (lasts[0] != 0))
        m.d.comb += Cover(gapless & ~dut.final)
        m.d.comb += Cover(dut.final & (lasts[-1] == 1) & (lasts[0] == 2))


@pytest.mark.parametrize("widths", [[4], [3, 1, 2], [8, 8, 8, 8]])
def test_sequence(widths):
    prove(LoopSpec(widths), name=f"lib-loop-{len(widths)}", depth=1, proves="F8")


def test_sequence_of_pairs():
    prove(LoopSpec([4, 3, 2], pairs=True), name="lib-loop-pairs", depth=1, proves="F8")


@pytest.mark.long
def test_nests_follow_without_a_gap():
    prove(LoopSpec([2, 1]), name="lib-loop-cover", mode="cover", depth=12)
