"""F2: no core is given a line that it may not have, and every request is answered within a number of cycles."""

import pytest
from amaranth.hdl import Assert, Assume, Cat, Cover, Signal

from support.formal import Spec
from tilewright.hw.cluster.network.outbox import Lender
from tilewright.hw.smem.params import SmemParams
from tilewright.verify.formal import prove

CORES = 2
#: Cycles from a request to its answer: the memory stalls every other cycle, and so does whoever records refusals; the
#: other core asks as well.
BOUND = 12


class LenderSpec(Spec):
    """Memory is all ones; masks and window are free, and stay."""

    given, made = "requests", "fetch.rows"

    def __init__(self):
        self.dut = Lender(SmemParams(1024), CORES)
        self.acceptance = Signal(self.dut.acceptance.shape())

    def specify(self, m, dut):
        stays = Signal.like(self.acceptance)
        begun = Signal()
        m.d.sync += [stays.eq(self.acceptance), begun.eq(1)]
        m.d.comb += [
            Assume(~begun | (stays.as_value() == self.acceptance.as_value())),
            dut.acceptance.eq(self.acceptance),
            dut.fetch.line.eq(~0),
        ]
        accepted, rows = self.acceptance, dut.fetch.rows
        inside = ~accepted.confine | ((accepted.first <= rows.p) & (rows.p <= accepted.last))
        m.d.comb += Assert(~rows.valid | inside)
        self._stall(m, rows.valid & ~rows.ready)
        self._stall(m, dut.refusal.valid & ~dut.recorded)
        for number, (port, answer) in enumerate(zip(dut.requests, dut.answers, strict=True)):
            m.d.comb += [
                Assume(~port.valid | port.p.asks | (port.p.row == port.p.last)),
                Assert(~(answer.lends & answer.line.any()) | accepted.cores[number]),
                Assert(~(answer.answers & answer.granted) | accepted.cores[number]),
                Assert(~(answer.answers & answer.lends)),
            ]
            self._answered(m, number, port.valid & port.ready, answer.answers | answer.lends)
        m.d.comb += Cover(Cat(answer.lends & answer.line.all() for answer in dut.answers).any())

    def _stall(self, m, stalls):
        """For one cycle at most."""
        stalled = Signal()
        m.d.sync += stalled.eq(stalls)
        m.d.comb += Assume(~(stalled & stalls))

    def _answered(self, m, number, taken, answered):
        """No answer without a request, and none too late."""
        open_, waited = Signal(4, name=f"open{number}"), Signal(range(BOUND + 2), name=f"waited{number}")
        m.d.sync += open_.eq(open_ + taken - answered)
        m.d.comb += Assert(~answered | (open_ != 0))
        with m.If((open_ == 0) | answered):
            m.d.sync += waited.eq(0)
        with m.Else():
            m.d.sync += waited.eq(waited + 1)
        m.d.comb += Assert(waited < BOUND)


def test_nothing_leaves_that_was_not_opened():
    prove(LenderSpec(), name="lender", mode="bmc", depth=16)


@pytest.mark.long
def test_lender_spec_reaches_a_line():
    prove(LenderSpec(), name="lender-cover", mode="cover", depth=8)
