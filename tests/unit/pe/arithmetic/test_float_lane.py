"""Floating-point lanes in Verilator against the golden model: corners, and random operands of all functions mixed."""

from functools import cache

import numpy as np
import pytest

from support.pe_floats import PIPELINED, golden, operands
from support.pe_lanes import make_lanes_design, run_lanes
from tilewright.hw.pe.arithmetic.floats import FloatRow
from tilewright.sim.hdl.simulation import Simulation
from tilewright.spec.arithmetic import Function

SEED = 57
DEPTH = 1 << 16
COUNT = 20_000
MANY = 1_000_000


@cache
def design():
    return make_lanes_design(FloatRow(1), FloatRow.LATENCY, DEPTH)


def check(count):
    """All corners and ``count`` random operands of each function, in any order."""
    rng = np.random.default_rng(SEED)
    columns = []
    for function in PIPELINED:
        made = operands(rng, function, count)
        columns.append((np.full(len(made[0]), function, np.uint32), *made, golden(function, *made)))
    functions, a, b, c, part, expected = (np.concatenate(column) for column in zip(*columns, strict=True))
    predicates = functions >= Function.FEQ
    order = rng.permutation(len(functions))
    with Simulation(design()) as simulation:
        for begin in range(0, len(order), DEPTH):
            rows = order[begin : begin + DEPTH]
            words, holds = run_lanes(simulation, functions[rows], a[rows], b[rows], c[rows], part[rows])
            wrong = rows[np.where(predicates[rows], holds, words) != expected[rows]]
            for row in wrong[:1]:
                given = ", ".join(f"{each[row]:#x}" for each in (a, b, c, part))
                came = words[rows == row][0], holds[rows == row][0]
                raise AssertionError(f"{Function(functions[row]).name}({given}): {expected[row]:#x}, not {came}")


def test_functions():
    check(COUNT)


@pytest.mark.long
def test_many():
    check(MANY)
