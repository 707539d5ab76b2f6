"""What stands in front of a carry chain of an ECP5 goes into it: the same results, with fewer tables."""

import random
from copy import deepcopy

import pytest
from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.tools.fpga.mapping import map_flat
from tilewright.tools.fpga.operands import absorb_operands

SEED = 20261128
WIDTH = 8
OPERATIONS = {
    "masked": lambda a, b, c, s: a + Mux(s, b, 0),
    "chosen": lambda a, b, c, s: a + Mux(s, b, c),
    "subtracted": lambda a, b, c, s: a - Mux(s, b, 0),
    "joined": lambda a, b, c, s: a + (b | c),
    "from a choice": lambda a, b, c, s: Mux(s, b, c) - a,
    "less": lambda a, b, c, s: a < (b & c),
}


class Operation(wiring.Component):
    def __init__(self, function):
        self.function = function
        super().__init__({"a": In(WIDTH), "b": In(WIDTH), "c": In(WIDTH), "s": In(1), "o": Out(WIDTH)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(self.function(self.a, self.b, self.c, self.s))
        return m


def tables(module):
    return [cell for cell in module["cells"].values() if cell["type"] == "LUT4"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operand_costs_no_table(tmp_path, name):
    """But that of the lowest bit, and in a comparison two of the highest, which are read outside of the chain too."""
    assert len(tables(map_flat(Operation(OPERATIONS[name]), "ecp5", tmp_path).module)) <= (3 if name == "less" else 2)


def chain(add_cell, rng, pairs):
    """A chain of carries whose every operand comes from a table of any one to four of six wires, or from two tables."""
    cells, wires = {}, iter(range(10, 1000))

    def table(sources):
        read = [*rng.sample(sources, rng.randint(1, min(4, len(sources)))), "0", "1", "0"][:4]
        wire = next(wires)
        add_cell(
            cells, "LUT4", {"INIT": f"{rng.getrandbits(16):016b}"}, dict(zip("ABCD", read, strict=True)), {"Z": wire}
        )
        return wire

    given = list(range(2, 8))
    carry, results = "0", []
    for _ in range(pairs):
        pins = {"CIN": carry}
        for half in "01":
            sources = [*given, table(given)]
            operands = [table(sources), table(sources)]
            if rng.random() < 0.2:
                results.append(operands[0])  # somebody else reads it
            if rng.random() < 0.2:
                operands[1] = operands[0]
            pins |= {f"A{half}": operands[0], f"B{half}": operands[1], f"C{half}": rng.choice("01"), f"D{half}": "1"}
        carry, sums = next(wires), [next(wires), next(wires)]
        parameters = {"INIT0": f"{0x96AA:016b}", "INIT1": f"{0x96AA:016b}", "INJECT1_0": "NO", "INJECT1_1": "NO"}
        add_cell(cells, "CCU2C", parameters, pins, {"S0": sums[0], "S1": sums[1], "COUT": carry})
        results += sums
    ports = {"i": {"direction": "input", "bits": given}, "o": {"direction": "output", "bits": [*results, carry]}}
    return {"ports": ports, "cells": cells}


def test_any_tables(evaluate, add_cell):
    """Chains do what they did, for all values of what the tables read; more than a fifth of the tables goes."""
    rng = random.Random(SEED)
    before = after = 0
    for _ in range(40):
        module = chain(add_cell, rng, 3)
        made = deepcopy(module)
        absorb_operands(made)
        before, after = before + len(tables(module)), after + len(tables(made))
        for value in range(64):
            assert evaluate(made, {"i": value}) == evaluate(module, {"i": value}), value
    assert after < 0.8 * before
