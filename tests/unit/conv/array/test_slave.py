"""A slave: its latency, and which halves of its units add; tests of the array show its sums."""

import numpy as np
import pytest

from support.conv import conv_unit
from tilewright.hw.conv.array.slave import Slave
from tilewright.verify.pysim.simulate import elaborated, simulate


@pytest.mark.parametrize("off", [0, 1, 2])
@pytest.mark.parametrize("maximum", [0, 1])
def test_latency_in_lane_private_mode(maximum, off):
    """``LATENCY`` cycles from a step to its sums: one for each element, in each half of the units that is not off."""
    params = conv_unit()
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
