"""Choices of four and eight on an ECP5: no more tables than their multiplexers need, and the right output."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.lib.choice import chosen
from tilewright.sim.fpga.mapping import map_flat

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


def outputs(module, inputs):
    """Bits of the port ``o``, by the netlist's cells."""
    known = {"0": 0, "1": 1}
    for name, value in inputs.items():
        known |= {bit: value >> i & 1 for i, bit in enumerate(module["ports"][name]["bits"])}
    waiting = [cell for cell in module["cells"].values() if cell["type"] in ("LUT4", "PFUMX", "L6MUX21")]
    while waiting:
        cell = waiting.pop(0)
        wires = {port: bits[0] for port, bits in cell["connections"].items()}
        sources = {port: bit for port, bit in wires.items() if port != "Z"}
        if any(bit not in known for bit in sources.values()):
            waiting.append(cell)
            continue
        at = {port: known[bit] for port, bit in sources.items()}
        if cell["type"] == "LUT4":
            row = at["A"] | at["B"] << 1 | at["C"] << 2 | at["D"] << 3
            known[wires["Z"]] = int(cell["parameters"]["INIT"], 2) >> row & 1
        elif cell["type"] == "PFUMX":
            known[wires["Z"]] = at["ALUT"] if at["C0"] else at["BLUT"]
        else:
            known[wires["Z"]] = at["D1"] if at["SD"] else at["D0"]
    return sum(known[bit] << i for i, bit in enumerate(module["ports"]["o"]["bits"]))


@pytest.mark.parametrize(("count", "tables"), [(4, 2), (8, 4), (16, 9)])
def test_choices(tmp_path, count, tables):
    module = map_flat(Choice(count), "ecp5", tmp_path).module
    assert sum(cell["type"] == "LUT4" for cell in module["cells"].values()) == tables * BITS
    rng = random.Random(SEED)
    (values,) = (name for name in module["ports"] if name.startswith("values"))
    for code in range(count):
        given = rng.getrandbits(BITS * count)
        assert outputs(module, {values: given, "code": code}) == given >> BITS * code & (1 << BITS) - 1
