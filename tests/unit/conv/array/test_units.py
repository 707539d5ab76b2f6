"""Elements as distances from their zero point, of every type, against numpy."""

import random

import numpy as np
import pytest

from tilewright.golden.dot_product import dot
from tilewright.hw.conv.array.units import ComputeUnit, Factors, FloatUnit
from tilewright.hw.conv.params import FOLDS
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.pe_operands import dot_rows
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 41
ROW_BYTES = 16
_DTYPES = {(0, 0): "u1", (0, 1): "i1", (1, 0): "<u2", (1, 1): "<i2"}


@pytest.mark.parametrize("built_wide", [False, True], ids=["bytes", "wide"])
def test_distances(built_wide):
    """A row a cycle, of another type each; a cycle later. Ends of the types are among rows and zero points."""
    dut, rng = elaborated(Factors, ROW_BYTES, wide=built_wide), random.Random(SEED)
    generator = np.random.default_rng(SEED)
    inputs = []
    for number in range(300):
        wide, signed = int(built_wide and rng.random() < 0.5), rng.getrandbits(1)
        dtype = np.dtype(_DTYPES[wide, signed])
        info = np.iinfo(dtype)
        row = generator.integers(info.min, info.max, ROW_BYTES // dtype.itemsize, dtype, endpoint=True)
        if number % 4 == 0:
            row[...] = generator.choice([info.min, info.max, 0], len(row))
        inputs.append((wide, signed, rng.choice([0, int(info.min), int(info.max), int(row[0])]), row))

    async def bench(ctx):
        for number in range(len(inputs) + 1):
            if number:
                wide, _, zero, row = inputs[number - 1]
                numbers = [each for pair in ctx.get(dut.o) for each in (pair.lower, pair.upper)]
                expected = (row.astype(np.int64) - zero).tolist()
                assert numbers == ([each for one in expected for each in (one, 0)] if wide else expected)
            if number < len(inputs):
                wide, signed, zero, row = inputs[number]
                ctx.set(dut.row, int.from_bytes(row.tobytes(), "little"))
                ctx.set(dut.wide, wide)
                ctx.set(dut.is_signed, signed)
                ctx.set(dut.zero, zero)
                await ctx.tick()

    simulate(dut, bench)


UNIT_SEED = 42


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
    dut, rng = elaborated(ComputeUnit, row_bytes, number, wide=built_wide), random.Random(UNIT_SEED)

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
                        assert seen[place] == total, f"seed {UNIT_SEED}, turn {turn}, cycle {cycle}, place {place}"
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


@pytest.mark.parametrize(("row_bytes", "number"), [
    *((16, 0), (16, 1)),
    *(pytest.param(*case, marks=pytest.mark.long) for case in ((32, 0), (64, 0), (64, 1), (64, 3))),
])  # fmt: skip
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
