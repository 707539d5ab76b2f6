"""Dividers in Verilator: corners and random operands of each function, mixed."""

from functools import cache

import numpy as np
import pytest

from support.pe_division import INTEGERS, divide, integer_operands
from support.pe_floats import operands
from support.pe_lanes import make_lanes_design, run_lanes
from tilewright.golden.pe.floats import compute
from tilewright.hw.pe.arithmetic.divider import Divider
from tilewright.hw.pe.arithmetic.division import DivideRow
from tilewright.sim.hdl.simulation import Simulation
from tilewright.spec.arithmetic import Function

SEED = 58
DEPTH = 1 << 16
COUNT = 20_000
MANY = 1_000_000
FLOATS = (Function.FDIV, Function.FSQRT)


@cache
def design(integers, floats):
    return make_lanes_design(DivideRow(1, integers=integers, floats=floats), None, DEPTH)


def check(functions, count, *, integers, floats):
    rng = np.random.default_rng(SEED)
    columns = []
    for function in functions:
        if function in FLOATS:
            a, b, _, _ = operands(rng, function, count)
            expected = compute(function, a, b)
        else:
            a, b = integer_operands(rng, count)
            expected = divide(function, a, b)
        columns.append((np.full(len(a), function, np.uint32), a, b, expected))
    codes, a, b, expected = (np.concatenate(column) for column in zip(*columns, strict=True))
    order, zero = rng.permutation(len(codes)), np.zeros(len(codes), np.uint32)
    with Simulation(design(integers, floats)) as simulation:
        for begin in range(0, len(order), DEPTH):
            rows = order[begin : begin + DEPTH]
            came, _ = run_lanes(simulation, codes[rows], a[rows], b[rows], zero[rows], zero[rows], cycles=24)
            for row, result in zip(rows, came, strict=True):
                name = f"{Function(codes[row]).name}[{a[row]:#x}, {b[row]:#x}]"
                assert result == expected[row], f"{name}: {expected[row]:#x}, not {result:#x}"


def test_all_functions():
    check((*INTEGERS, *FLOATS), COUNT, integers=True, floats=True)


@pytest.mark.long
def test_many():
    check((*INTEGERS, *FLOATS), MANY, integers=True, floats=True)


def test_integers():
    check(INTEGERS, COUNT, integers=True, floats=False)


def test_floats():
    check(FLOATS, COUNT, integers=False, floats=True)


def test_neither():
    with pytest.raises(ValueError, match=r"^a divider must be of integers, of floats, or of both$"):
        Divider(integers=False, floats=False)
