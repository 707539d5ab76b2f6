"""F11: divisions are done a fixed number of cycles after any start, also an early one; results hold until the next."""

import pytest
from amaranth.hdl import Assert, Cover, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.pe.arithmetic.division import DivideRow
from tilewright.verify.formal import prove


class DivisionSpec(Spec):
    def __init__(self, threads):
        self.dut = DivideRow(threads, integers=True, floats=False)

    def specify(self, m, dut):
        # Cycles since the last start, as far as they matter.
        since = Signal(range(dut.cycles + 1), init=dut.cycles)
        with m.If(dut.start):
            m.d.sync += since.eq(1)
        with m.Elif(since != dut.cycles):
            m.d.sync += since.eq(since + 1)
        m.d.comb += [Assert(dut.done == (since == dut.cycles)), Assert((since != 0) & (since <= dut.cycles))]
        was_done, words = Signal(), Signal(32 * len(dut.o))
        m.d.sync += [was_done.eq(dut.done), words.eq(dut.o.as_value())]
        with m.If(was_done):
            m.d.comb += Assert(dut.o.as_value() == words)
        m.d.comb += Cover(was_done & ~dut.done)
        # Invariant: the row counts the same cycles.
        m.d.comb += Assert(dut.cycle == since - 1)


@pytest.mark.parametrize("threads", [1, 3])
@proved_and_covered(1, 24)
def test_control(threads, mode, depth):
    prove(DivisionSpec(threads), name=f"pe-division-{threads}-{mode}", mode=mode, depth=depth, proves="F11")
