"""A mapped netlist as objects and nets."""

import pytest

from tilewright.tools.fpga.places.objects import read_objects


@pytest.fixture
def netlist(add_cell):
    """Two tables that a multiplexer joins, a register behind it, another table, a memory, all on one clock."""
    cells = {}
    add_cell(cells, "LUT4", {}, {"A": 1, "B": 2}, {"Z": 10})
    add_cell(cells, "LUT4", {}, {"A": 2}, {"Z": 11})
    add_cell(cells, "PFUMX", {}, {"ALUT": 10, "BLUT": 11, "C0": 2}, {"Z": 12})
    add_cell(cells, "TRELLIS_FF", {}, {"DI": 12, "CLK": 20}, {"Q": 13})
    add_cell(cells, "LUT4", {}, {"A": 13, "B": "1"}, {"Z": 14})
    add_cell(cells, "DP16KD", {}, {"ADA0": 13, "CLKA": 20}, {"DOA0": "x"})
    add_cell(cells, "LUT4", {}, {"A": "0"}, {"Z": 20})  # the clock
    return cells


def nets(objects):
    return [tuple(net) for net in (objects.pins[objects.nets == i] for i in range(len(objects.starts)))]


def test_what_lies_together_is_one_object(netlist):
    objects = read_objects({"cells": netlist})
    assert objects.areas.T.tolist() == [[2, 1], [1, 0], [0, 0], [1, 0]]
    assert objects.cells == {"DP16KD": {"DP16KD5": 2}, "MULT18X18D": {}}
    assert nets(objects) == [(0, 1, 2)]  # the register's: all others are inside, or of the clock, or come from outside


def test_a_table_that_others_read_too_lies_by_itself(netlist, add_cell):
    add_cell(netlist, "LUT4", {}, {"A": 12}, {"Z": 15})
    objects = read_objects({"cells": netlist})
    assert objects.areas.T.tolist()[:2] == [[2, 0], [0, 1]]
    assert (0, 1, 5) in nets(objects)


def test_a_net_with_very_many_ends_pulls_nothing(netlist, add_cell):
    for wire in range(1500):
        add_cell(netlist, "LUT4", {}, {"A": 13}, {"Z": 100 + wire})
    assert nets(read_objects({"cells": netlist})) == []
