"""Compute units: sums of products in every fold, and single products, of integers and floats."""

import random

import numpy as np
import pytest

from support.pe_operands import dot_rows
from support.selection import cases
from tilewright.golden.dot_product import dot
from tilewright.hw.conv.array.units import ComputeUnit, FloatUnit
from tilewright.hw.conv.params import FOLDS
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.simulate import elaborated, simulate

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


FLOATS_SEED = 52


def floats_expected(a, b, accumulators, split, lanes, kind, row_bytes, number):
    """What is at places that mean something, by place."""
    if lanes:
        own = slice(FOLDS * number, FOLDS * (number + 1))
        sums = dot(accumulators[: len(a[own])], a[own, None], b[own, None], kind)
        return dict(enumerate(sums.tolist()))
    many = (row_bytes // FOLDS << split) // 2
    sums = dot(accumulators[:: 1 << split], a.reshape(-1, many), b.reshape(-1, many), kind)
    return {each << split: total for each, total in enumerate(sums.tolist())}


def as_bits(elements):
    return int.from_bytes(elements.astype("<u2").tobytes(), "little")


@cases("row_bytes, number", [(16, 0), (16, 1)], [(32, 0), (64, 0), (64, 1), (64, 3)])
def test_floats_sums(row_bytes, number):
    """A row a cycle in any fold, each of what floats can be; the result comes ``LATENCY`` cycles later."""
    dut, rng = elaborated(FloatUnit, row_bytes, number), np.random.default_rng(FLOATS_SEED)

    async def bench(ctx):
        for turn in range(4):
            kind, lanes = (MmType.F16, MmType.BF16)[turn % 2], turn // 2
            ctx.set(dut.brain, kind == MmType.BF16)
            ctx.set(dut.lanes, lanes)
            sums, *factors = dot_rows(rng, kind, 40, row_bytes // 2)
            wanted = []
            for cycle in range(len(sums) + dut.LATENCY):
                if cycle >= dut.LATENCY:
                    seen = ctx.get(dut.o)
                    for place, total in wanted[cycle - dut.LATENCY].items():
                        assert seen[place] == total, f"seed {FLOATS_SEED}, turn {turn}, cycle {cycle}, place {place}"
                if cycle < len(sums):
                    a, b = (rows[cycle] for rows in factors)
                    split = int(rng.integers(row_bytes == FOLDS, 5))  # a point has at least one element
                    accumulators = np.append(sums[cycle], rng.choice(sums, FOLDS - 1))
                    wanted.append(floats_expected(a, b, accumulators, split, lanes, kind, row_bytes, number))
                    ctx.set(dut.a, as_bits(a))
                    ctx.set(dut.b, as_bits(b))
                    ctx.set(dut.split, split)
                    ctx.set(dut.accumulators, accumulators.tolist())
                await ctx.tick()

    simulate(dut, bench)
