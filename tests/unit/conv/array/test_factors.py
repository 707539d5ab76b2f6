"""Elements as distances from their zero point, of every type, against numpy."""

import random

import numpy as np
import pytest

from tilewright.hw.conv.array.factors import Factors
from tilewright.sim.pysim.simulate import elaborated, simulate

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
