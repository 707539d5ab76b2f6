"""Sizes of netlists whose cells are known."""

from tilewright.sim.fpga.cells import block_table, by_block, cell_counts


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
