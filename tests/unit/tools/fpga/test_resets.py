"""The reset on the clock network of an ECP5: what gets a buffer, and what hangs on it."""

from collections import Counter

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.tools.fpga.mapping import map_flat


class Registers(wiring.Component):
    """A chain of registers, and another one beside it that is reset by a bit of the first one too."""

    def __init__(self, count, late):
        self.count, self.late = count, late
        super().__init__({"clock": In(1), "i": In(2), "o": Out(2)})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.start = ClockDomain(reset_less=True)
        reset, first, second = Signal(), Signal(self.count), Signal(10)
        m.d.start += reset.eq(self.i[0])
        m.d.comb += [
            ClockSignal("sync").eq(self.clock),
            ClockSignal("start").eq(self.clock),
            ResetSignal("sync").eq(reset ^ self.i[1] if self.late else reset),
            self.o.eq(first[-1] ^ second[-1]),
        ]
        m.d.sync += [first.eq((first << 1) | self.i[1]), second.eq((second << 1) | first[3])]
        with m.If(first[4]):
            m.d.sync += second.eq(0)
        return m


def mapped(tmp_path, count, late=False):
    """Cells of :class:`Registers`, and the buffers among them."""
    cells = map_flat(Registers(count, late), "ecp5", tmp_path).module["cells"]
    return cells, {name: cell["connections"] for name, cell in cells.items() if cell["type"] == "DCCA"}


def ends(cells, wire):
    """How many inputs hang on a wire, by kinds of cells and ports."""
    return Counter((cell["type"], port) for cell in cells.values() for port, bits in cell["connections"].items()
                   if wire in bits and cell["port_directions"][port] == "input")  # fmt: skip


def test_registers_hang_on_the_buffer_and_a_table_on_a_copy_of_the_register(tmp_path):
    cells, buffers = mapped(tmp_path, 1200)
    [(name, buffer)] = buffers.items()
    assert buffer["CE"] == ["1"]
    assert ends(cells, buffer["CLKO"][0]) == {("TRELLIS_FF", "LSR"): 1200}
    assert ends(cells, buffer["CLKI"][0]) == {("DCCA", "CLKI"): 1}

    own = name.removesuffix("_DCCA")
    register = cells[own]
    assert register["connections"]["Q"] == buffer["CLKI"]
    [copy] = [cell for other, cell in cells.items() if other.startswith(f"{own}_") and other != name]
    assert copy | {"connections": copy["connections"] | {"Q": buffer["CLKI"]}} == register
    [(kind, _)] = ends(cells, copy["connections"]["Q"][0]).elements()
    assert kind == "LUT4"


@pytest.mark.parametrize(("count", "late"), [(900, False), (1200, True)])
def test_no_buffer_for_few_or_behind_a_table(tmp_path, count, late):
    _, buffers = mapped(tmp_path, count, late)
    assert buffers == {}
