"""Words of a program: in order from where it went last, none outside of it, none from before a jump."""

import pytest
from amaranth.hdl import Array, Assert, Assume, Cover, Signal

from support.formal import Spec
from tilewright.hw.core.program.fetch import ProgramFetcher
from tilewright.spec.core import ProgramError
from tilewright.verify.formal import prove

DEPTH = 2
ADDR_WIDTH = 10


class FetchSpec(Spec):
    """The memory answers in order, whenever it likes; the line of a word holds its own number."""

    made = "requests"

    def specify(self, m, dut):
        asked, answered = dut.requests.valid & dut.requests.ready, dut.lines.valid
        # Lines under way, the oldest first.
        lines, level = Array(Signal.like(dut.base, name=f"line{i}") for i in range(DEPTH)), Signal(range(DEPTH + 1))
        m.d.sync += level.eq(level + asked - answered)
        with m.If(answered):
            m.d.sync += [lines[i].eq(lines[i + 1]) for i in range(DEPTH - 1)]
        with m.If(asked):
            m.d.sync += lines[level - answered].eq(dut.requests.payload)

        base, count, begun = Signal.like(dut.base), Signal.like(dut.count), Signal()
        m.d.sync += [base.eq(dut.base), count.eq(dut.count), begun.eq(1)]
        m.d.comb += [
            Assume(~begun | ((base == dut.base) & (count == dut.count))),
            Assume(dut.base + dut.count < 1 << len(dut.base)),
            Assume(dut.target <= dut.count),
            Assume(~answered | ((level != 0) & (dut.lines.payload.data == lines[0]))),
            Assert(~asked | (level < DEPTH)),
            Assert(~asked | ((dut.requests.payload >= dut.base) & (dut.requests.payload < dut.base + dut.count))),
            Assert(dut.used >= level),
            Assert(dut.stale <= dut.used),
            Assert(dut.busy | (level == 0)),
        ]

        # The word that comes next, where the program goes on at all.
        follows, active = Signal(range((1 << len(dut.base)) + 1)), Signal()
        taken, code = dut.o.valid & dut.o.ready, dut.o.payload.code
        with m.If(dut.halt):
            m.d.sync += active.eq(0)
        with m.Elif(dut.jump):
            m.d.sync += [active.eq(1), follows.eq(dut.target)]
        with m.Elif(taken & (code != ProgramError.NO_END)):
            m.d.sync += follows.eq(follows + 1)
        with m.If(dut.o.valid):
            m.d.comb += Assert(active)
            with m.If(code == ProgramError.NO_END):
                m.d.comb += Assert(follows == dut.count)
            with m.Else():
                m.d.comb += [Assert(follows < dut.count), Assert(dut.o.payload.word == dut.base + follows)]

        jumps = Signal(2)
        m.d.sync += jumps.eq(jumps + (dut.jump & (jumps != 3)))
        m.d.comb += [
            Cover(dut.o.valid & (code == ProgramError.BUS)),
            Cover(taken & (code == ProgramError.NO_END) & (dut.count > 2) & (jumps == 1)),
            Cover(taken & (jumps == 2) & (dut.stale == 0) & (follows == 2)),
            Cover(dut.jump & (dut.stale != 0) & (level != 0)),
        ]


@pytest.mark.parametrize("depth", [8, pytest.param(11, marks=pytest.mark.long)])
def test_words_in_order(depth):
    prove(FetchSpec(ProgramFetcher(ADDR_WIDTH, DEPTH)), name="core-program-fetch", mode="bmc", depth=depth)


@pytest.mark.long
def test_every_case_is_reached():
    prove(FetchSpec(ProgramFetcher(ADDR_WIDTH, DEPTH)), name="core-program-fetch-cover", mode="cover", depth=14)
