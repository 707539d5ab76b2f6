"""A compute unit: sums of products in every fold, and products of elements, against plain sums."""

import random

import pytest

from tilewright.hw.conv.array.unit import ComputeUnit
from tilewright.hw.conv.params import FOLDS
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 42


def some_factors(rng, pairs, wide, ends):
    """Factors of a row: all of them, one after the other."""

    def one(bits):
        least, most = -(1 << bits - 1) + 1, (1 << bits - 1) - 1
        return rng.choice([least, most]) if ends else rng.randint(least, most)

    return [(one(17), 0) if wide else (one(9), one(9)) for _ in range(pairs)]


def wrapped(number):
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def expected(a, b, split, lanes, wide, row_bytes, number):
    """What is at places that mean something, by place."""
    products = [x * y for ones, others in zip(a, b, strict=True) for x, y in zip(ones, others, strict=True)]
    if lanes:
        elements = products[::2] if wide else products
        return {place: wrapped(each) for place, each in enumerate(elements[FOLDS * number :][:FOLDS])}
    size = row_bytes // FOLDS << split
    sums = [wrapped(sum(products[first : first + size])) for first in range(0, row_bytes, size)]
    return {each << split: total for each, total in enumerate(sums)}


@pytest.mark.parametrize(
    ("row_bytes", "number", "built_wide"), [(16, 0, False), (32, 1, True), (64, 3, True), (16, 1, True)]
)
def test_sums(row_bytes, number, built_wide):
    """A row a cycle in any fold; the result comes ``LATENCY`` cycles later, in which the mode stays."""
    dut, rng = elaborated(ComputeUnit, row_bytes, number, wide=built_wide), random.Random(SEED)

    async def bench(ctx):
        for turn in range(12):
            lanes, wide = turn % 2, int(built_wide and rng.random() < 0.5)
            ctx.set(dut.lanes, lanes)
            ctx.set(dut.wide, wide)
            wanted = []
            for cycle in range(20 + dut.LATENCY):
                if cycle >= dut.LATENCY:
                    seen = ctx.get(dut.o)
                    for place, total in wanted[cycle - dut.LATENCY].items():
                        assert seen[place] == total, f"seed {SEED}, turn {turn}, cycle {cycle}, place {place}"
                a, b = (some_factors(rng, row_bytes // 2, wide, ends=turn < 4) for _ in range(2))
                least = 1 if wide and row_bytes == FOLDS else 0  # a point has at least one element
                split = rng.randint(least, 4)
                wanted.append(expected(a, b, split, lanes, wide, row_bytes, number))
                for port, factors in ((dut.a, a), (dut.b, b)):
                    ctx.set(port, [{"lower": lower, "upper": upper} for lower, upper in factors])
                ctx.set(dut.split, split)
                await ctx.tick()

    simulate(dut, bench)
