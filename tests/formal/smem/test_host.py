"""Each access has one answer, a write of ``operation`` after the operation, whose answer is in ``result``."""

from amaranth.hdl import Assert, Assume, Cover, Signal

from support.formal import Spec
from tilewright.hw.smem.host import BarrierWindow
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.tmau_registers import BARRIER_WINDOW_REGISTERS
from tilewright.verify.formal import prove

_, OPERATION, RESULT = (register.offset >> 2 for register in BARRIER_WINDOW_REGISTERS)


class BarrierWindowSpec(Spec):
    """A port that answers each operation once, after any time."""

    given, made = "accesses.requests", "accesses.answers barriers"

    def __init__(self):
        self.dut = BarrierWindow(SmemParams(1024))

    def specify(self, m, dut):
        requests, answers, barriers, results = (
            dut.accesses.requests,
            dut.accesses.answers,
            dut.barriers,
            dut.barrier_results,
        )
        access = requests.payload
        accepted, answered = requests.valid & requests.ready, answers.valid & answers.ready
        sent, returned = barriers.valid & barriers.ready, results.valid & results.ready
        owed, offered, waited = (
            Signal(),
            Signal(),
            Signal(),
        )  # an answer; an operation that the port has not; one it has
        operates = accepted & access.write & (access.address[2:4] == OPERATION)
        m.d.sync += [
            owed.eq((owed | accepted) & ~answered),
            offered.eq((offered | operates) & ~sent),
            waited.eq((waited | sent) & ~returned),
        ]
        m.d.comb += [
            Assume(~results.valid | waited),
            Assert(results.ready),
            Assert(~(accepted & owed)),
            Assert(barriers.valid == offered),
            Assert(~(offered & waited)),
            Assert(dut.busy == (offered | waited)),
            Assert(owed == (answers.valid | dut.busy)),
            Assert(~(answers.valid & dut.busy)),
            Cover(answered & answers.payload.data[0] & ~answers.payload.error),
        ]
        last, shown = Signal(2), Signal(2)
        with m.If(returned):
            m.d.sync += last.eq(results.payload.as_value())
        with m.If(accepted):
            m.d.sync += shown.eq(last)
        reads = Signal()
        with m.If(accepted):
            m.d.sync += reads.eq(~access.write & (access.address[2:4] == RESULT))
        m.d.comb += [
            Assert(dut.result.as_value()[:2] == last),
            Assert(~(dut.busy & reads)),
            Assert(~(answers.valid & reads) | ((answers.payload.data[:2] == shown) & ~answers.payload.error)),
        ]


def test_barrier_window():
    prove(BarrierWindowSpec(), name="barrier-window", depth=2)
    prove(BarrierWindowSpec(), name="barrier-window-cover", mode="cover", depth=10)
