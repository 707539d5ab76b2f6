"""Integer functions in Verilator against the golden model: corners, and random operands of all functions mixed."""

from itertools import product

import numpy as np
import pytest

from support.pe_lanes import make_lanes_design, run_lanes
from tilewright.golden.pe.arithmetic import combine, compare, compute, lookup_index, replace_byte
from tilewright.hw.pe.arithmetic.integers import IntegerRow
from tilewright.sim.hdl.simulation import Simulation
from tilewright.spec.arithmetic import FUNCTIONS, Function
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import set_together

SEED = 58
DEPTH = 1 << 15
COUNT = 1500
MANY = 100_000
CORNERS = [0, 1, 2, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7F7F7F7F, 0x80808080, 0x7FFFFFFF,
           0x80000000, 0x80000001, 0xFFFF8000, 0xFFFFFF80, 0xFFFFFFFF]  # fmt: skip
KINDS = [(function, part) for function, info in FUNCTIONS.items() if info.unit == "alu" for part in range(info.parts)]


def operands(rng, count):
    """All pairs of corners, and random numbers of all sizes; a third operand with them."""
    pairs = np.array(list(product(CORNERS, repeat=2)), np.uint32).T
    some = rng.integers(0, 1 << 32, (3, count), np.uint32) >> rng.integers(0, 32, (3, count)).astype(np.uint32)
    some = np.where(rng.integers(0, 2, (3, count)) == 1, some, ~some)
    c = rng.choice(np.array(CORNERS, np.uint32), pairs.shape[1])
    return tuple(np.concatenate([corners, numbers]) for corners, numbers in zip((*pairs, c), some, strict=True))


def expected_of(function, part, a, b, c, first, second):
    """Words and values of comparisons of which one is the result."""
    if FUNCTIONS[function].predicate and FUNCTIONS[function].selects:
        return combine(function, first, second)
    if FUNCTIONS[function].predicate:
        return compare(function, a, b)
    if function == Function.SEL:
        return np.where(first, a, b)
    if function == Function.SHFL:
        return a  # of one thread
    return compute(function, a, b, c, part)


def check(count):
    rng, columns = np.random.default_rng(SEED), []
    for function, part in KINDS:
        a, b, c = operands(rng, count)
        info = FUNCTIONS[function]
        # What a function does not read is 0.
        a, b, c = (words if name in info.operands else words & 0 for name, words in zip("abc", (a, b, c), strict=True))
        first, second = rng.integers(0, 2, (2, len(a))).astype(bool)
        result = expected_of(function, part, a, b, c, first, second)
        numbers = (np.full(len(a), number, np.uint32) for number in (function, part, info.predicate))
        columns.append((*numbers, a, b, c, first, second, result))
    functions, parts, predicates, a, b, c, first, second, expected = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    order = rng.permutation(len(functions))
    with Simulation(make_lanes_design(IntegerRow(1), IntegerRow.LATENCY, DEPTH, early=True)) as simulation:
        for begin in range(0, len(order), DEPTH):
            rows = order[begin : begin + DEPTH]
            words, holds = run_lanes(
                simulation, functions[rows], a[rows], b[rows], c[rows], parts[rows],
                first=first[rows], second=second[rows],
            )  # fmt: skip
            wrong = rows[np.where(predicates[rows], holds, words) != expected[rows]]
            for row in wrong[:1]:
                given = ", ".join(f"{each[row]:#x}" for each in (a, b, c, parts))
                came = words[rows == row][0], holds[rows == row][0]
                raise AssertionError(f"{Function(functions[row]).name}({given}): {expected[row]:#x}, not {came}")


def test_functions():
    check(COUNT)


@pytest.mark.long
def test_many():
    check(MANY)


def test_threads_and_their_lookup_memories():
    """SHFL of five threads, of which some have no partner; entries that are written, and looked up."""
    threads, entries = 5, 256
    rng, dut = np.random.default_rng(SEED), IntegerRow(threads, entries)
    memory = rng.integers(0, 1 << 32, entries, np.uint32)
    kinds = [(Function.SHFL, part) for part in range(8)] + [
        (function, part) for function in (Function.LOOKUP, Function.LOOKB) for part in range(4)
    ]
    wanted, came = [], []

    async def testbench(ctx):
        for entry, word in enumerate(memory.tolist()):
            set_together(ctx, (dut.entry_write, 1), (dut.entry, entry), (dut.entry_data, word))
            await ctx.tick()
        ctx.set(dut.entry_write, 0)
        for cycle in range(1 + len(kinds) + dut.LATENCY):
            if cycle < len(kinds):
                set_together(ctx, (dut.function, kinds[cycle][0]), (dut.part, kinds[cycle][1]))
            if 0 < cycle <= len(kinds):  # the operands come a cycle later
                function, part = kinds[cycle - 1]
                a, b, c = rng.integers(0, 1 << 32, (3, threads), np.uint32)
                b = b * (function != Function.SHFL)
                ports = zip((dut.a, dut.b, dut.c), (a, b, c), strict=True)
                set_together(ctx, *((port, row.tolist()) for port, row in ports))
                if function == Function.SHFL:
                    partners = [thread ^ 1 << part for thread in range(threads)]
                    wanted.append([a[other if other < threads else n] for n, other in enumerate(partners)])
                else:
                    found = memory[lookup_index(a, b, part, entries)]
                    wanted.append(found if function == Function.LOOKUP else replace_byte(c, found, part))
            if cycle > dut.LATENCY:
                came.append(list(ctx.get(dut.o)))
            await ctx.tick()

    simulate(dut, testbench)
    assert came == [list(map(int, row)) for row in wanted]
