"""Delays: any number of cycles, none included, and signs are kept."""

import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.lib.delay import delay
from tilewright.sim.pysim.pipelines import run_pipeline


class Delayed(wiring.Component):
    i: In(signed(4))
    o: Out(signed(8))

    def __init__(self, cycles):
        super().__init__()
        self.LATENCY = cycles

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(delay(m, self.i, self.LATENCY, name="i"))
        return m


@pytest.mark.parametrize("cycles", [0, 1, 5])
def test_delay(cycles):
    values = [3, -8, 7, 0, -1, 5]
    results = run_pipeline(Delayed(cycles), [{"i": value} for value in values])
    assert [result["o"] for result in results] == values
