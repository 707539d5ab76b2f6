"""Mutants against a proof: a strong one notices what a weak one does not, and a missing one is named."""

import pytest
from amaranth.hdl import Assert, Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.sim.dev.mutate import Block
from tilewright.sim.dev.mutate_properties import survivors_of_properties
from tilewright.sim.formal import FOLDER, prove
from tilewright.sim.usage import UsageError


class Counter(wiring.Component):
    enable: In(1)
    count: Out(3)

    def elaborate(self, platform):
        m = Module()
        with m.If(self.enable):
            m.d.sync += self.count.eq(self.count + 1)
        return m


class CounterSpec(Elaboratable):
    """All bits of the counter, or its highest one alone."""

    def __init__(self, bits):
        self.dut = Counter()
        self._bits = bits

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = self.dut
        count = Signal(3)
        m.d.sync += count.eq(count + self.dut.enable)
        m.d.comb += Assert((self.dut.count ^ count)[-self._bits :] == 0)
        return m


def test_a_strong_property_notices_more():
    survivors = {}
    for bits in (3, 1):
        spec, name = CounterSpec(bits), f"sim-mutants-{bits}"
        prove(spec, [spec.dut.enable], name=name, mode="bmc", depth=4)
        count, survivors[bits] = survivors_of_properties(Block((), name, ("dut",), 4), 16, 1, FOLDER)
        assert count > 10
    assert not survivors[3]
    assert survivors[1]


def test_a_proof_that_never_ran(tmp_path):
    with pytest.raises(UsageError, match=r"^the proof none must have been run once, and left in "):
        survivors_of_properties(Block((), "none", ("dut",), 4), 40, 1, tmp_path)
