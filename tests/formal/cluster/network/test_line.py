"""F2: two cores that multicast to each other never block each other, whatever their memories do in between.

Every line reaches every core that it names, once, and no other, within a number of cycles; so does every end of a
transfer, and its acknowledgement comes back.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Signal

from support.formal import Spec
from tilewright.hw.cluster.network.line import LineNetwork
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.formal import StreamRules, prove

CORES = 2
#: Cycles from a line at the network to the last memory that it names, and from an end to its acceptance: each memory
#: stalls every other cycle, and the other core sends as well.
LINE_BOUND, END_BOUND = 12, 16


class NetworkSpec(Spec):
    """One line of core 0 is marked by the lowest bit of its data: the solver chooses which, and whom it names."""

    def __init__(self):
        self.dut = LineNetwork(SmemParams(1024), CORES, reduces=False)
        self.receivers = [Signal(CORES, name=f"receivers{k}") for k in range(2 * CORES)]  # of lines, then of ends
        self.signal = Signal(CORES)  # whether an end is for a barrier
        self.mark = Signal()

    @property
    def ports(self):
        """Handshakes, and who receives: no rule depends on data."""
        free = [port.valid for mover in self.dut.movers for port in (mover.writes, mover.landed)]
        free += [*self.receivers, self.signal, self.mark]
        return free + [port.ready for memory in self.dut.memories for port in (memory.writes, memory.landed)]

    def specify(self, m, dut):
        for number, mover in enumerate(dut.movers):
            m.submodules += [StreamRules(mover.writes, assume=True), StreamRules(mover.landed, assume=True)]
            m.d.comb += [
                mover.acceptance.cores.eq(~0),
                mover.writes.p.receivers.eq(self.receivers[number]),
                mover.landed.p.receivers.eq(self.receivers[CORES + number]),
                mover.landed.p.signal.eq(self.signal[number]),
            ]
        m.d.comb += dut.movers[0].writes.p.data.eq(self.mark)
        for memory in dut.memories:
            self._stall(m, memory.writes.valid, memory.writes.ready)
            self._stall(m, memory.landed.valid, memory.landed.ready)
        self._follow_line(m)
        for mover in dut.movers:
            self._bound(m, mover.landed.valid & ~mover.landed.ready, END_BOUND)

    def _stall(self, m, valid, ready):
        """A memory stalls for one cycle at most."""
        stalled = Signal()
        m.d.sync += stalled.eq(valid & ~ready)
        m.d.comb += Assume(~(stalled & valid & ~ready))

    def _follow_line(self, m):
        sent, named = Signal(), Signal(CORES)
        line = self.dut.movers[0].writes
        marked = line.valid & line.p.data[0]
        with m.If(marked & line.ready):
            m.d.sync += [sent.eq(1), named.eq(line.p.receivers | (line.p.receivers == 0))]
        m.d.comb += Assume(~(marked & sent))
        written = Signal(CORES)
        for core, memory in enumerate(self.dut.memories):
            arrives = memory.writes.valid & memory.writes.ready & memory.writes.p.data[0]
            with m.If(arrives):
                m.d.sync += written[core].eq(1)
            m.d.comb += Assert(~arrives | (sent & named[core] & ~written[core]))
        self._bound(m, (marked & ~line.ready) | (sent & (written != named)), LINE_BOUND)
        m.d.comb += Cover(Cat(written, self.dut.movers[1].landed.valid).all())

    def _bound(self, m, waits, most):
        waited = Signal(range(most + 2))
        with m.If(waits):
            m.d.sync += waited.eq(waited + (waited <= most))
            m.d.comb += Assert(waited <= most)
        with m.Else():
            m.d.sync += waited.eq(0)


@pytest.mark.parametrize("depth", [18, pytest.param(20, marks=pytest.mark.long)])
def test_no_line_is_lost_or_waits_for_ever(depth):
    prove(NetworkSpec(), name="line-network", mode="bmc", depth=depth)


@pytest.mark.long
def test_network_spec_reaches_a_multicast():
    prove(NetworkSpec(), name="line-network-cover", mode="cover", depth=14)
