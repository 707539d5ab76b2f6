"""Choices of four and eight on an ECP5: no more tables than their multiplexers need, and the right output."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.lib.logic import chosen
from tilewright.tools.fpga.mapping import map_flat

SEED = 20261125
BITS = 3


class Choice(wiring.Component):
    def __init__(self, count):
        self.count = count
        code = (count - 1).bit_length()
        super().__init__({"values": In(data.ArrayLayout(BITS, count)), "code": In(code), "o": Out(BITS)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(chosen(self.code, dict(enumerate(self.values))))
        return m


@pytest.mark.parametrize(("count", "tables"), [(4, 2), (8, 4), (16, 9)])
def test_choices(tmp_path, evaluate, count, tables):
    module = map_flat(Choice(count), "ecp5", tmp_path).module
    assert sum(cell["type"] == "LUT4" for cell in module["cells"].values()) == tables * BITS
    rng = random.Random(SEED)
    (values,) = (name for name in module["ports"] if name.startswith("values"))
    for code in range(count):
        given = rng.getrandbits(BITS * count)
        assert evaluate(module, {values: given, "code": code}) == given >> BITS * code & (1 << BITS) - 1
