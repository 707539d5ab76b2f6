"""Floating-point lanes in Verilator against the golden model: corners, and random operands of all functions mixed."""

from functools import cache

import numpy as np
import pytest

from support.pe_floats import COMPARISONS, FLOATS, operands
from support.pe_lanes import make_lanes_design, run_lanes
from tilewright.golden.pe.floats import compare, compute
from tilewright.hw.pe.arithmetic.floats import FloatRow
from tilewright.sim.hdl.simulation import Simulation
from tilewright.spec.arithmetic import Function
from tilewright.verify.pysim.streams import run_pipeline

SEED = 57
DEPTH = 1 << 16
COUNT = 20_000
MANY = 1_000_000
FUNCTIONS = tuple(each for each in FLOATS + COMPARISONS if each not in (Function.FDIV, Function.FSQRT))


@cache
def design():
    return make_lanes_design(FloatRow(1), FloatRow.LATENCY, DEPTH)


def expected_of(function, a, b, c, part):
    if function in COMPARISONS:
        return compare(function, a, b)
    return compute(function, a, b, c, part)


def check(count):
    """All corners and ``count`` random operands of each function, in any order."""
    rng = np.random.default_rng(SEED)
    columns = []
    for function in FUNCTIONS:
        made = operands(rng, function, count)
        columns.append((np.full(len(made[0]), function, np.uint32), *made, expected_of(function, *made)))
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


def test_threads_compute_the_same_function():
    """Each with operands of its own; functions follow each other without a gap."""
    rng = np.random.default_rng(SEED)
    threads, rows, expected = 3, [], []
    for _ in range(60):
        function = FUNCTIONS[rng.integers(len(FUNCTIONS))]
        a, b, c, part = (column[-threads:] for column in operands(rng, function, threads))
        row = {"a": a.tolist(), "b": b.tolist(), "c": c.tolist(), "part": int(part[0]), "function": function}
        rows.append(row)
        expected.append(expected_of(function, a, b, c, part[0]).tolist())
    latency = FloatRow.LATENCY
    results = run_pipeline(FloatRow(threads), rows, o=latency, holds=latency)
    for row, result, words in zip(rows, results, expected, strict=True):
        holds = [bool(result["holds"] >> thread & 1) for thread in range(threads)]
        assert (holds if row["function"] in COMPARISONS else list(result["o"])) == words, row
