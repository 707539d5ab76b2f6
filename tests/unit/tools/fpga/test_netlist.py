"""Blocks of cells, in a netlist that Yosys has flattened."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.tools.fpga.flow import Outcome, map_flat
from tilewright.tools.fpga.netlist import (
    Names,
    arrows,
    block_table,
    by_block,
    cell_counts,
    depth_figures,
    depth_lines,
    longest_path,
    timing_figures,
    timing_lines,
    use_lines,
)


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


def cell(kind, outputs, **ports):
    """A cell with one-bit ports; ``outputs`` names those that it drives."""
    return {
        "type": kind,
        "parameters": {},
        "connections": {port: [bit] for port, bit in ports.items()},
        "port_directions": {port: "output" if port in outputs else "input" for port in ports},
    }


def lut(a, z):
    return cell("LUT4", "Z", A=a, Z=z)


def carry(a, cin, cout, s):
    return cell("CCU2C", ("COUT", "S0"), A0=a, CIN=cin, COUT=cout, S0=s)


def register(d, q):
    return cell("TRELLIS_FF", "Q", DI=d, Q=q)


CASES = {
    "nothing": ({}, 0),
    "a chain of three": ({"x": lut(1, 2), "y": lut(2, 3), "z": lut(3, 4)}, 3),
    "two side by side": ({"x": lut(1, 2), "y": lut(1, 3)}, 1),
    "a register between": ({"x": lut(1, 2), "f": register(2, 3), "y": lut(3, 4)}, 1),
    "constants do not count": ({"x": lut("0", 2)}, 1),
    "a multiplexer after a LUT is free": ({"x": lut(1, 2), "m": cell("PFUMX", "Z", ALUT=2, Z=3)}, 1),
    "a carry chain is one level": ({"a": carry(1, "0", 2, 3), "b": carry(1, 2, 4, 5), "c": carry(1, 4, 6, 7)}, 1),
    "a LUT before the chain and one after": (
        {"x": lut(1, 2), "a": carry(2, "0", 3, 4), "b": carry(1, 3, 5, 6), "y": lut(6, 7)}, 3
    ),
    "a multiplier is three": ({"x": lut(1, 2), "m": cell("MULT18X18D", "P0", A0=2, P0=3), "y": lut(3, 4)}, 5),
    "distributed memory is read at once": (
        {"x": lut(1, 2), "m": cell("TRELLIS_DPR16X4", "DO", RAD=2, DI=5, DO=3), "y": lut(3, 4)}, 3
    ),
    "and written with the clock": (
        {"x": lut(1, 2), "m": cell("TRELLIS_DPR16X4", "DO", RAD=5, DI=2, DO=3), "y": lut(3, 4)}, 2
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_levels(name):
    cells, levels = CASES[name]
    assert longest_path({"cells": cells})[0] == levels


@pytest.mark.parametrize(
    ("cells", "ports", "steps"),
    [
        ({"from": register(9, 1), "x": lut(1, 2), "y": lut(2, 3), "side": lut(1, 4), "to": register(3, 5)}, {},
         [("from", 0), ("x", 1), ("y", 2), ("to", 2)]),
        ({"x": lut(1, 2), "y": lut(2, 3)}, {"i": {"bits": [1]}, "o": {"bits": [3]}},
         [("i", 0), ("x", 1), ("y", 2), ("o", 2)]),
        ({"f": register(9, 1), "x": lut(1, 2), "m": cell("TRELLIS_DPR16X4", "DO", RAD=7, DI=2, DO=8)}, {},
         [("f", 0), ("x", 1), ("m", 1)]),
        ({"f": register(1, 2)}, {}, []),
    ],
    ids=["from register to register", "from port to port", "to the write port of a memory", "nothing"],
)  # fmt: skip
def test_steps(cells, ports, steps):
    assert longest_path({"cells": cells, "ports": ports})[1] == steps


def netlist(*kinds, scopes=()):
    """A netlist of cells ``(name, type)`` without wires, in which the blocks ``scopes`` were."""
    kinds = [*kinds, *((name, "$scopeinfo") for name in scopes)]
    cells = {name: {"type": kind, "connections": {}, "port_directions": {}} for name, kind in kinds}
    return {"cells": cells, "netnames": {}}


def test_cells_of_an_ecp5():
    kinds = ("LUT4", "LUT4", "PFUMX", "CCU2C", "TRELLIS_FF", "TRELLIS_DPR16X4", "MULT18X18D", "DP16KD")
    assert cell_counts(netlist(*enumerate_names(kinds)), "ecp5") == {
        "lut4": 2, "carry": 1, "comb": 2 + 2 + 6, "ff": 1, "dpr16x4": 1, "dp16kd": 1, "mult18x18d": 1,
    }  # fmt: skip


def test_cells_of_a_series_7():
    kinds = ("LUT6", "LUT2", "INV", "MUXF7", "CARRY4", "FDRE", "FDSE", "RAM32M", "RAMB18E1", "RAMB36E1", "DSP48E1")
    assert cell_counts(netlist(*enumerate_names(kinds)), "xc7") == {
        "lut": 3 + 4, "carry": 1, "ff": 2, "bram": 1.5, "dsp": 1,
    }  # fmt: skip


def enumerate_names(kinds):
    return [(f"x{i}", kind) for i, kind in enumerate(kinds)]


def test_blocks_include_what_is_in_them():
    module = netlist(("a.b.x_LUT4_Z", "LUT4"), ("a.y_TRELLIS_FF_Q", "TRELLIS_FF"), ("z_LUT4_Z", "LUT4"),
                     scopes=["a", "a.b"])  # fmt: skip
    assert by_block(module) == {"": (2, 1), "a": (1, 1), "a.b": (1, 0)}


def test_large_blocks_are_shown_by_their_parts_and_small_ones_together():
    blocks = {"": (1000, 90), "a": (900, 70), "a.b": (500, 30), "a.c": (395, 30), "a.d": (5, 5), "e": (60, 5),
              "e.f": (60, 5)}  # fmt: skip
    rows = [line.split() for line in block_table(blocks)[1:]]
    assert rows == [
        ["a.b", "500", "30"],
        ["a.c", "395", "30"],
        ["e", "60", "5"],
        ["(top),", "the", "rest", "40", "15"],
        ["a,", "the", "rest", "5", "10"],
    ]


NETLIST = {
    "cells": {
        "a": {"type": "$scopeinfo", "connections": {}, "port_directions": {}},
        "b": {"type": "$scopeinfo", "connections": {}, "port_directions": {}},
        "a.x_TRELLIS_FF_Q": {"type": "TRELLIS_FF", "connections": {"Q": [1]}, "port_directions": {"Q": "output"}},
        "b.y_TRELLIS_FF_Q_DI_LUT4_Z": {
            "type": "LUT4",
            "connections": {"A": [1], "Z": [2]},
            "port_directions": {"A": "input", "Z": "output"},
        },
        "b.y_TRELLIS_FF_Q": {
            "type": "TRELLIS_FF",
            "connections": {"DI": [2], "Q": [3]},
            "port_directions": {"DI": "input", "Q": "output"},
        },
    },
    "netnames": {"a.x": {"bits": [1], "attributes": {}}, "b.y": {"bits": [3], "attributes": {}}},
}
OUTCOME = Outcome(
    clock=200.04,
    used={"TRELLIS_COMB": (41820, 83640), "TRELLIS_IO": (3, 365), "DP16KD": (2, 208)},
    path=(("a.x_TRELLIS_FF_Q", 0.0, 0.4), ("b.y_LUT4_Z", 3.0, 0.3), ("b.y_TRELLIS_FF_Q", 1.3, 0.0)),
    arrivals={"a.x_TRELLIS_FF_Q": 4.2, "b.y_TRELLIS_FF_Q": 5.0, "b.y_TRELLIS_FF_Q_1": 4.6, "b.y_TRELLIS_FF_Q_2": 4.0},
)


def test_depth():
    figures = depth_figures(NETLIST)
    assert figures == {
        "levels": 1,
        "path": [
            {"level": 0, "block": "a", "wire": "a.x"},
            {"level": 1, "block": "b", "wire": "b.y"},
            {"level": 1, "block": "b", "wire": "b.y"},
        ],
    }
    assert [" ".join(line.split()) for line in depth_lines(figures)] == [
        "deepest path: 1 LUT4s", "a → b", "0 a a.x", "1 b b.y", "1 b b.y",
    ]  # fmt: skip


def test_timing():
    figures = timing_figures(OUTCOME, NETLIST, 100)
    assert figures["clock_mhz"] == 200.0
    assert [(step["ns"], step["block"]) for step in figures["path"]] == [(0.4, "a"), (3.7, "b"), (5.0, "b")]
    assert [" ".join(line.split()) for line in timing_lines(figures, 100, routed=True)] == [
        "clock: 200 MHz at most, routed (target 100 MHz: met)",
        "critical path: 5.0 ns, 4.3 of them in wires, through 2 blocks",
        "a → b",
        "0.40 ns a a.x",
        "5.00 ns b b.y",
    ]


def test_blocks_that_are_too_slow():
    figures = timing_figures(OUTCOME, NETLIST, 250)
    assert figures["late"] == [
        {"block": "b", "count": 2, "ns": 5.0, "wire": "b.y"}, {"block": "a", "count": 1, "ns": 4.2, "wire": "a.x"},
    ]  # fmt: skip
    assert [" ".join(line.split()) for line in timing_lines(figures, 250, routed=True)[-3:]] == [
        "3 registers and memories are later than 4 ns, in", "2 up to 5.00 ns b b.y", "1 up to 4.20 ns a a.x",
    ]  # fmt: skip
    figures["late"] *= 20
    assert timing_lines(figures, 250, routed=True)[-1].split() == ["and", "20", "more", "blocks"]


def test_timing_without_a_path():
    lines = timing_lines({"clock_mhz": 27.4, "path": [], "late": []}, 100, routed=False)
    assert lines == ["clock: 27.4 MHz at most, placed (target 100 MHz: not met)"]


def test_use():
    assert [" ".join(line.split()) for line in use_lines(OUTCOME.used)] == [
        "TRELLIS_COMB 41,820 of 83,640 50.0%", "DP16KD 2 of 208 1.0%",
    ]  # fmt: skip
