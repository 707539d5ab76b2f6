"""Levels of logic in small netlists as Yosys would write them."""

import pytest

from tilewright.sim.dev.depth import longest_path


def cell(kind, outputs, **ports):
    """A cell with one-bit ports; ``outputs`` names those that it drives."""
    return {
        "type": kind,
        "connections": {port: [bit] for port, bit in ports.items()},
        "port_directions": {port: "output" if port in outputs else "input" for port in ports},
    }


def lut(a, z):
    return cell("LUT4", "Z", A=a, Z=z)


def carry(a, cin, cout, s):
    return cell("CCU2C", ("COUT", "S0"), A0=a, CIN=cin, COUT=cout, S0=s)


CASES = {
    "nothing": ({}, 0),
    "a chain of three": ({"x": lut(1, 2), "y": lut(2, 3), "z": lut(3, 4)}, 3),
    "two side by side": ({"x": lut(1, 2), "y": lut(1, 3)}, 1),
    "a register between": ({"x": lut(1, 2), "f": cell("TRELLIS_FF", "Q", DI=2, Q=3), "y": lut(3, 4)}, 1),
    "constants do not count": ({"x": lut("0", 2)}, 1),
    "a multiplexer behind a table is free": ({"x": lut(1, 2), "m": cell("PFUMX", "Z", ALUT=2, Z=3)}, 1),
    "a carry chain is one level": ({"a": carry(1, "0", 2, 3), "b": carry(1, 2, 4, 5), "c": carry(1, 4, 6, 7)}, 1),
    "a table before the chain and one behind": (
        {"x": lut(1, 2), "a": carry(2, "0", 3, 4), "b": carry(1, 3, 5, 6), "y": lut(6, 7)}, 3
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_levels(name):
    cells, levels = CASES[name]
    assert longest_path({"cells": cells}) == levels
