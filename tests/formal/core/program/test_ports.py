"""Operations on barriers: a wait passes only with an answer that says so, and each answer belongs to a request."""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal

from tilewright.hw.core.program.ports import BarrierCaller
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BarrierOp
from tilewright.verify.formal import StreamRules, prove


class CallerSpec(Elaboratable):
    def __init__(self):
        self.dut = BarrierCaller(SmemParams(1024))

    @property
    def ports(self):
        dut = self.dut
        return [dut.i.payload, dut.i.valid, dut.give_up, dut.flip.valid, dut.flip.address, dut.requests.ready,
                dut.results.payload, dut.results.valid]  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        m.submodules.request_rules = StreamRules(dut.requests)
        m.submodules.result_rules = StreamRules(dut.results, assume=True)
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
        return m


def test_rules():
    spec = CallerSpec()
    prove(spec, spec.ports, name="core-program-barriers", mode="bmc", depth=20)


def test_every_case_is_reached():
    spec = CallerSpec()
    prove(spec, spec.ports, name="core-program-barriers-cover", mode="cover", depth=12)
