"""Rows of slaves that are turned, against numpy."""

import numpy as np
import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.array.rotator import RowRotator
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate


@pytest.mark.parametrize("slaves", [1, 2, 8])
def test_every_turn(slaves):
    """One after the other, each in the next cycle."""
    params = ConvUnitParams(CONV_PRESETS["unit"].replace(slaves=slaves), SmemParams(4096))
    dut, numbers = elaborated(RowRotator, params), np.random.default_rng(7)

    async def bench(ctx):
        for turn in range(2 * slaves):
            rows = numbers.integers(0, 256, (slaves, 16), np.uint8)
            ctx.set(dut.i, [int.from_bytes(row.tobytes(), "little") for row in rows])
            ctx.set(dut.turn, turn)
            await ctx.tick()
            wanted = np.roll(rows.reshape(-1, 8), -turn, axis=0).reshape(slaves, 16)
            found = [int(row).to_bytes(16, "little") for row in ctx.get(dut.o)]
            assert found == [row.tobytes() for row in wanted], turn

    simulate(dut, bench)
