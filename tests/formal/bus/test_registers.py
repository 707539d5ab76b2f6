"""F14: a counter is the sum of its increments since the last clear; registers keep what was written to them."""

from amaranth.hdl import Assert, Assume, Cover, Mux, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.bus.registers import Counters, RegisterFile
from tilewright.spec.fields import Field
from tilewright.spec.registers import Access, Register
from tilewright.verify.formal import prove

WIDTHS = {"one": 1, "some": 2, "more": 3}


class CounterSpec(Spec):
    def specify(self, m, dut):
        count = len(WIDTHS)
        m.d.comb += [Assume(dut.index < count), Assert(dut.turn < count), Assert(dut.zeros <= count)]
        sums = []
        for number, name in enumerate(WIDTHS):
            # Increments count a cycle later.
            last = Signal.like(dut.increments[name], name=f"last_{name}")
            total, before, stored = (Signal(32, name=f"{prefix}_{name}") for prefix in ("total", "before", "stored"))
            m.d.sync += [last.eq(dut.increments[name]), total.eq(Mux(dut.clear, 0, total + last)), before.eq(total)]
            sums.append(before)
            # The number in the memory or at its write port; zero until its next turn after a clear.
            written = dut.turn == (number + 1) % count
            with m.If(written):
                m.d.sync += stored.eq(dut.value)
            distance = Mux(dut.turn <= number, number - dut.turn, number + count - dut.turn)
            known = Mux(distance < dut.zeros, 0, Mux(written, dut.value, stored))
            m.d.comb += Assert(total == (known + dut.waiting[name])[:32])
        index = Signal.like(dut.index)
        m.d.sync += index.eq(dut.index)
        with m.If(dut.done):
            m.d.comb += Assert(dut.value == sum(Mux(index == n, total, 0) for n, total in enumerate(sums)))


def test_counters():
    prove(CounterSpec(Counters(WIDTHS)), name="bus-counters", depth=8, proves="F14")


MASK = 0x00FF_000F
BITS = (Field("low", 0, 4, "Four bits."), Field("high", 16, 8, "A byte."))
RO, RW, W1C, WO = 0x04, 0x10, 0x14, 0x18
TABLE = (
    Register("shown", RO, Access.RO, "From the hardware.", BITS),
    Register("kept", RW, Access.RW, "For the hardware.", BITS, reset=0x0001_0002),
    Register("sticky", W1C, Access.W1C, "Set by the hardware.", BITS),
    Register("pulse", WO, Access.WO, "Strobes.", BITS),
)


class RegisterSpec(Spec):
    made = "accesses.answers"

    def specify(self, m, dut):
        requests, answers = dut.accesses.requests, dut.accesses.answers
        access = requests.payload
        accept = requests.valid & requests.ready
        address = access.address & ~3

        # The model is made of bits and byte lanes, not of words.
        written = [Signal(init=TABLE[1].reset >> b & 1, name=f"kept{b}") for b in range(32)]
        sticky = [Signal(name=f"sticky{b}") for b in range(32)]
        pulse = [Signal(name=f"pulse{b}") for b in range(32)]
        for b in (b for b in range(32) if MASK >> b & 1):
            bit, lane = access.data[b], access.strobe[b // 8]
            writes = accept & access.write & lane
            with m.If(writes & (address == RW)):
                m.d.sync += written[b].eq(bit)
            with m.If(dut.sticky_set.as_value()[b]):
                m.d.sync += sticky[b].eq(1)
            with m.Elif(writes & (address == W1C) & bit):
                m.d.sync += sticky[b].eq(0)
            m.d.sync += pulse[b].eq(writes & (address == WO) & bit)
        for b in range(32):
            m.d.comb += [
                Assert(dut.kept.as_value()[b] == written[b]),
                Assert(dut.sticky.as_value()[b] == sticky[b]),
                Assert(dut.pulse.as_value()[b] == pulse[b]),
            ]

        # One answer for each access, in the next cycle, with the values of its own cycle.
        expected_valid, expected_error = Signal(), Signal()
        expected = Signal(32)
        with m.If(accept):
            m.d.sync += expected_valid.eq(1)
            m.d.sync += expected_error.eq(
                ((address != RO) & (address != RW) & (address != W1C) & (address != WO))
                | (access.write & (address == RO))
            )
            with m.Switch(address):
                with m.Case(RO):
                    m.d.sync += expected.eq(dut.shown.as_value() & MASK)
                with m.Case(RW):
                    m.d.sync += expected.eq(sum(bit << b for b, bit in enumerate(written)))
                with m.Case(W1C):
                    m.d.sync += expected.eq(sum(bit << b for b, bit in enumerate(sticky)))
                with m.Default():
                    m.d.sync += expected.eq(0)
        with m.Elif(answers.ready):
            m.d.sync += expected_valid.eq(0)
        m.d.comb += Assert(answers.valid == expected_valid)
        with m.If(expected_valid):
            m.d.comb += Assert(answers.payload.error == expected_error)
            m.d.comb += Assert(answers.payload.data == expected)
        m.d.comb += Assert(requests.ready == Mux(answers.valid, answers.ready, 1))

        m.d.comb += Cover(expected_valid & (expected == MASK))
        m.d.comb += Cover(expected_valid & expected_error)


@proved_and_covered(2, 6)
def test_registers(mode, depth):
    prove(RegisterSpec(RegisterFile(TABLE)), name=f"bus-csr-{mode}", mode=mode, depth=depth, proves="F14")
