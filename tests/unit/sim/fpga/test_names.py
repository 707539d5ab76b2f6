"""Blocks of cells, in a netlist that Yosys has flattened."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.sim.fpga.mapping import map_flat
from tilewright.sim.fpga.names import Names, arrows


class Parity(wiring.Component):
    """Registers its input and says whether its bits are odd, which takes two levels."""

    i: In(8)
    o: Out(1)

    def elaborate(self, platform):
        m = Module()
        seen = Signal(8)
        m.d.sync += seen.eq(self.i)
        m.d.comb += self.o.eq(seen.xor())
        return m


class Count(wiring.Component):
    """Counts as long as it is told to."""

    go: In(1)
    count: Out(4)

    def elaborate(self, platform):
        m = Module()
        with m.If(self.go):
            m.d.sync += self.count.eq(self.count + 1)
        return m


class Both(wiring.Component):
    """Counts odd words."""

    i: In(8)
    count: Out(4)

    def elaborate(self, platform):
        m = Module()
        m.submodules.parity = parity = Parity()
        m.submodules.counter = counter = Count()
        m.d.comb += [parity.i.eq(self.i), counter.go.eq(parity.o), self.count.eq(~counter.count)]
        return m


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    return map_flat(Both(), "ecp5", tmp_path_factory.mktemp("both")).module


def test_registers_are_in_their_blocks(module):
    names = Names(module)
    found = sorted(names.block(name) for name, cell in module["cells"].items() if cell["type"] == "TRELLIS_FF")
    assert found == ["counter"] * 4 + ["parity"] * 8


def test_tables_are_in_the_block_of_the_nearest_wire(module):
    names = Names(module)
    found = {names.block(name) for name, cell in module["cells"].items() if cell["type"] == "LUT4"}
    # All that the parity drives is the counter's clock enable; the top inverts.
    assert found == {"counter", ""}


def test_ports_are_the_top(module):
    assert Names(module).block("nothing_that_is_there") == ""


def test_what_nextpnr_makes_of_a_cell(module):
    name, names = "counter.count", Names(module)
    assert names.block(f"{name}_TRELLIS_FF_Q_DI_CCU2C_S0$CCU2_COMB0") == "counter"
    assert names.wire(f"{name}_TRELLIS_FF_Q_DI_CCU2C_S0$CCU2_COMB0") == "counter.count"


@pytest.mark.parametrize(
    ("blocks", "line"),
    [
        (["a.b.x", "a.b.x", "a.b.y.z", "a.b.x"], "x → y.z → x"),
        (["a.b", "a.c"], "b → c"),
        (["a.b", "a"], "a.b → a"),
        (["", "a.b.x", "a.b.y"], "(top) → x → y"),
        (["a.b.x", "", "a.b.x", "", "a.b.y", ""], "x → y → (top)"),
        (["a.b"], "b"),
        ([], ""),
    ],
)
def test_a_path_as_one_line(blocks, line):
    assert arrows(blocks) == line
