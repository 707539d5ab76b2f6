"""Levels of logic in small netlists as Yosys would write them."""

import pytest

from tilewright.sim.fpga.depth import longest_path


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


def multiplier(a, p, *registers):
    return cell("MULT18X18D", "P0", A0=a, P0=p) | {"parameters": {f"REG_{name}_CLK": "CLK0" for name in registers}}


CASES = {
    "nothing": ({}, 0),
    "a chain of three": ({"x": lut(1, 2), "y": lut(2, 3), "z": lut(3, 4)}, 3),
    "two side by side": ({"x": lut(1, 2), "y": lut(1, 3)}, 1),
    "a register between": ({"x": lut(1, 2), "f": register(2, 3), "y": lut(3, 4)}, 1),
    "constants do not count": ({"x": lut("0", 2)}, 1),
    "a multiplexer behind a table is free": ({"x": lut(1, 2), "m": cell("PFUMX", "Z", ALUT=2, Z=3)}, 1),
    "a carry chain is one level": ({"a": carry(1, "0", 2, 3), "b": carry(1, 2, 4, 5), "c": carry(1, 4, 6, 7)}, 1),
    "a table before the chain and one behind": (
        {"x": lut(1, 2), "a": carry(2, "0", 3, 4), "b": carry(1, 3, 5, 6), "y": lut(6, 7)}, 3
    ),
    "a multiplier is three": ({"x": lut(1, 2), "m": multiplier(2, 3), "y": lut(3, 4)}, 5),
    "before its product's register": (
        {"x": lut(1, 2), "m": multiplier(2, 3, "OUTPUT"), "y": lut(3, 4), "z": lut(4, 5)}, 4
    ),
    "or behind those of its operands": (
        {"w": lut(1, 2), "x": lut(2, 3), "m": multiplier(3, 4, "INPUTA", "INPUTB"), "y": lut(4, 5)}, 4
    ),
    "and nothing between both": (
        {"x": lut(1, 2), "m": multiplier(2, 3, "INPUTA", "INPUTB", "OUTPUT"), "y": lut(3, 4)}, 1
    ),
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
    assert longest_path({"cells": cells}).levels == levels


def test_steps_from_register_to_register():
    cells = {"from": register(9, 1), "x": lut(1, 2), "y": lut(2, 3), "side": lut(1, 4), "to": register(3, 5)}
    assert longest_path({"cells": cells}).steps == (("from", 0), ("x", 1), ("y", 2), ("to", 2))


def test_steps_from_port_to_port():
    ports = {"i": {"bits": [1]}, "o": {"bits": [3]}}
    assert longest_path({"cells": {"x": lut(1, 2), "y": lut(2, 3)}, "ports": ports}).steps == (
        ("i", 0), ("x", 1), ("y", 2), ("o", 2)
    )  # fmt: skip


def test_steps_that_end_where_a_memory_is_written():
    memory = cell("TRELLIS_DPR16X4", "DO", RAD=7, DI=2, DO=8)
    assert longest_path({"cells": {"f": register(9, 1), "x": lut(1, 2), "m": memory}}).steps[-2:] == (
        ("x", 1), ("m", 1)
    )  # fmt: skip


def test_nothing_has_no_steps():
    assert longest_path({"cells": {"f": register(1, 2)}}).steps == ()
