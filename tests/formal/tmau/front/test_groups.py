"""Groups: none is let go before its jobs are done or read, and one a cycle leaves when all are."""

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Assume, Cover, Elaboratable

from tilewright.hw.tmau.front.groups import GroupTracker
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import prove

IN_FLIGHT = 3  # jobs in the store path that the proof allows


class GroupSpec(Elaboratable):
    """Any one group is followed: the solver chooses the commit that makes it."""

    def __init__(self):
        self.dut = GroupTracker(TMAU_PRESETS["unit"])
        self.choose = Signal()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        unread = self._follow(m, dut.read_stb, dut.unread, "unread")
        undone = self._follow(m, dut.done_stb, dut.unfinished, "undone")
        m.d.comb += [
            Assume(~dut.commit | ~dut.full),
            Assume(unread <= undone),  # a job is read before it is done
            Cover((dut.unread == 0) & (dut.unfinished == 2)),
        ]
        return m

    def _follow(self, m, strobe, counted, name):
        """What holds of one of the counts; returns the jobs that wait for the strobe."""
        dut = self.dut
        waiting = Signal(range(IN_FLIGHT + 1), name=f"{name}_waiting")
        chosen = Signal(name=f"{name}_chosen")
        left = Signal(range(IN_FLIGHT + 1), name=f"{name}_left")  # of the group and of those before it
        still = Signal(name=f"{name}_still")  # no job waited in the cycle before: all groups may go, one a cycle
        expected = Signal.like(counted, name=f"{name}_expected")
        m.d.sync += waiting.eq(waiting + dut.issued - strobe)
        m.d.comb += [
            Assume(~strobe | (waiting != 0)),
            Assume(~dut.issued | (waiting != IN_FLIGHT)),
            Assert(~chosen | (left == 0) | (counted != 0)),
            Assert(~still | (counted == expected)),
        ]
        with m.If(~chosen & dut.commit & self.choose):
            m.d.sync += [chosen.eq(1), left.eq(waiting - strobe)]
        with m.Elif(chosen & strobe & (left != 0)):
            m.d.sync += left.eq(left - 1)
        m.d.sync += [still.eq(waiting == 0), expected.eq(counted - (counted != 0) + dut.commit)]
        return waiting

    def ports(self):
        dut = self.dut
        return [dut.issued, dut.read_stb, dut.done_stb, dut.commit, self.choose]


@pytest.mark.parametrize("depth", [7, pytest.param(10, marks=pytest.mark.long)])
def test_a_group_is_counted_until_its_jobs_are_done(depth):
    """From reset, for as many cycles as it takes to commit, end and let go of a few groups."""
    spec = GroupSpec()
    prove(spec, spec.ports(), name="groups", mode="bmc", depth=depth)


@pytest.mark.long
def test_groups_that_are_read_and_not_done_are_reached():
    spec = GroupSpec()
    prove(spec, spec.ports(), name="groups-cover", mode="cover", depth=8)
