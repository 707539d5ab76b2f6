"""F14: what a counter tells is what has been added since the last clear."""

from amaranth.hdl import Assert, Assume, Elaboratable, Module, Mux, Signal

from tilewright.hw.bus.counters import Counters
from tilewright.sim.formal import prove

WIDTHS = {"one": 1, "some": 2, "more": 3}


class CounterSpec(Elaboratable):
    def __init__(self):
        self.dut = Counters(WIDTHS)

    @property
    def ports(self):
        dut = self.dut
        return [dut.more, dut.clear, dut.asked, dut.which]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        count = len(WIDTHS)
        m.d.comb += [Assume(dut.which < count), Assert(dut.turn < count), Assert(dut.zeros <= count)]
        sums = []
        for number, name in enumerate(WIDTHS):
            # What is added counts a cycle later.
            last = Signal.like(dut.more[name], name=f"last_{name}")
            total, before, number_kept = (Signal(32, name=f"{what}_{name}") for what in ("total", "before", "kept"))
            m.d.sync += [last.eq(dut.more[name]), total.eq(Mux(dut.clear, 0, total + last)), before.eq(total)]
            sums.append(before)
            # The number that the memory holds, or is being written; zero until its next turn after a clear.
            written = dut.turn == (number + 1) % count
            with m.If(written):
                m.d.sync += number_kept.eq(dut.value)
            distance = Mux(dut.turn <= number, number - dut.turn, number + count - dut.turn)
            known = Mux(distance < dut.zeros, 0, Mux(written, dut.value, number_kept))
            m.d.comb += Assert(total == (known + dut.waiting[name])[:32])
        asked_for = Signal.like(dut.which)
        m.d.sync += asked_for.eq(dut.which)
        with m.If(dut.told):
            m.d.comb += Assert(dut.value == sum(Mux(asked_for == n, total, 0) for n, total in enumerate(sums)))
        return m


def test_counters():
    spec = CounterSpec()
    prove(spec, spec.ports, name="bus-counters", depth=8, proves="F14")
