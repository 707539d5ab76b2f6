"""Reports, of paths that are known."""

from tilewright.sim.fpga.nextpnr import Outcome
from tilewright.sim.fpga.words import depth_figures, depth_lines, timing_figures, timing_lines, use_lines

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
        "deepest path: 1 four-input tables", "a → b", "0 a a.x", "1 b b.y", "1 b b.y",
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
