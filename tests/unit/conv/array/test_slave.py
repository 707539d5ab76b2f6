"""A slave: rows and parts of them times features, in banks and channels, against numpy."""

import random

import numpy as np
import pytest

from tilewright.hw.conv.array.slave import Slave
from tilewright.hw.conv.params import FOLDS, ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 44
SMEM = SmemParams(4096)
PARAMS = {
    "unit": ConvUnitParams(CONV_PRESETS["unit"], SMEM),
    "two": ConvUnitParams(CONV_PRESETS["unit"].replace(row_bytes=32), SMEM),
}
ZERO = 7


@pytest.mark.parametrize(
    ("name", "fold"), [("unit", 1), ("unit", 2), ("unit", 4), ("unit", 16), ("two", 1), ("two", 8)]
)
def test_steps(name, fold):
    """A step in any cycle, its row in the next one."""
    params, rng = PARAMS[name], random.Random(SEED)
    conv, generator = params.conv, np.random.default_rng(SEED)
    dut = elaborated(Slave, params)
    block = conv.row_bytes // fold
    sums = {}

    async def bench(ctx):
        ctx.set(dut.granularity, block.bit_length() - 1)
        ctx.set(dut.zero, ZERO)
        coming = []  # features of steps, so many cycles ahead
        for cycle in range(120):
            own, part = generator.integers(0, 256, conv.row_bytes, np.uint8), rng.randrange(fold)
            bank, channel = rng.getrandbits(1), rng.randrange(4)
            first = int((bank, channel) not in sums or rng.random() < 0.2)
            features = generator.integers(-255, 256, (conv.units, conv.row_bytes))
            valid = cycle < 110 and rng.random() < 0.8
            ctx.set(dut.valid, valid)
            ctx.set(dut.step, {"part": part, "channel": channel, "bank": bank, "halves": {"first": -first, "off": 0}})
            if valid:
                weights = np.tile(own[part * block :][:block].astype(np.int64) - ZERO, fold)
                found = (features * weights).reshape(conv.units, fold, -1).sum(2)
                sums[bank, channel] = found + (0 if first else sums[bank, channel])
            coming.append(features)
            if len(coming) > Slave.FEATURES:
                rows = coming[cycle - Slave.FEATURES].reshape(conv.units, -1, 2).tolist()
                ctx.set(dut.features, [[{"lower": a, "upper": b} for a, b in row] for row in rows])
            await ctx.tick()
            ctx.set(dut.row, int.from_bytes(own.tobytes(), "little"))
        ctx.set(dut.valid, 0)
        for (bank, channel), total in sums.items():
            ctx.set(dut.read, bank << 2 | channel)
            ctx.set(dut.on, -1)
            await ctx.tick()
            seen = np.array([list(unit) for unit in ctx.get(dut.sums)])
            assert (seen[:, :: FOLDS // fold] == total % (1 << 32)).all(), f"seed {SEED}, {bank}, {channel}"

    simulate(dut, bench)
    assert len(sums) == 8


@pytest.mark.parametrize("off", [0, 1, 2])
@pytest.mark.parametrize("maximum", [0, 1])
def test_latency_in_lane_private_mode(maximum, off):
    """``LATENCY`` cycles from a step to its sums: one for each element, in each half of the units that is not off."""
    params = PARAMS["unit"]
    conv, dut = params.conv, elaborated(Slave, params)
    row = np.arange(conv.row_bytes, dtype=np.uint8)
    seen = []

    async def bench(ctx):
        ctx.set(dut.granularity, 4)
        ctx.set(dut.lanes, 1)
        ctx.set(dut.maximum, maximum)
        ctx.set(dut.features, [[{"lower": 3, "upper": 3}] * (conv.row_bytes // 2)] * conv.units)
        await ctx.tick()
        ctx.set(dut.step, {"halves": {"first": 3, "off": off}, "part": 1})
        ctx.set(dut.valid, 1)
        ctx.set(dut.on, -1)
        await ctx.tick()
        ctx.set(dut.valid, 0)
        ctx.set(dut.row, int.from_bytes(row.tobytes(), "little"))
        for _ in range(Slave.LATENCY + 1):
            await ctx.tick()  # what could be read in the cycle before
            seen.append([list(unit) for unit in ctx.get(dut.sums)])

    simulate(dut, bench)
    expected = (3 * row).tolist()
    for unit in range(2):
        found = [each[unit] == expected for each in seen]
        assert found == [False] * (Slave.LATENCY - 1) + [not off >> unit & 1] * 2, unit
