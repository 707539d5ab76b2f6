"""Operations on barriers: a wait passes only with an answer that says so, and each answer belongs to a request."""

from amaranth.hdl import Assert, Assume, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.core.program.ports import BarrierCaller
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BarrierOp
from tilewright.verify.formal import prove


class CallerSpec(Spec):
    given, made = "i results", "requests"

    def specify(self, m, dut):
        asked = Signal()  # and not answered
        went, came = dut.requests.valid & dut.requests.ready, dut.results.valid & dut.results.ready
        m.d.sync += asked.eq(Mux(went, 1, asked & ~came))
        waits = dut.i.payload.op == BarrierOp.TRY_WAIT
        m.d.comb += [
            Assume(~dut.results.valid | asked),
            Assert(~(went & asked)),
            Assert(~came | asked),
            Assert(dut.results.ready == asked),
            Assert(~(dut.passed | dut.failed) | (dut.i.valid & dut.i.ready & came)),
            Assert(~dut.failed | dut.results.payload.error),
            Assert(~(dut.passed & waits) | (dut.results.payload.done & ~dut.results.payload.error)),
            Assert(~(dut.i.ready & ~dut.passed & ~dut.failed) | (dut.give_up & dut.i.valid & waits)),
            # Invariant: nothing is asked, or waited for, without a call.
            Assert(~asked | dut.i.valid),
            Cover(dut.passed & waits),
            Cover(dut.i.ready & ~dut.passed & ~dut.failed),
        ]
        # Invariant: only a wait is asked again.
        pausing = Signal()
        m.d.sync += pausing.eq(Mux(came & ~dut.i.ready, 1, pausing & ~went & ~dut.i.ready))
        m.d.comb += Assert(~pausing | (dut.i.valid & waits))


def test_rules():
    prove(CallerSpec(BarrierCaller(SmemParams(1024))), name="core-program-barriers", mode="bmc", depth=20)


def test_every_case_is_reached():
    prove(CallerSpec(BarrierCaller(SmemParams(1024))), name="core-program-barriers-cover", mode="cover", depth=12)
