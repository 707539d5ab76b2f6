"""The rotator against a rotation of Python bytes."""

import random

import pytest
from amaranth.hdl import Module, Signal

from tilewright.hw.lib.rotate import rotate_bytes
from tilewright.sim.pysim.simulate import simulate

SEED = 1


@pytest.mark.parametrize("left", [True, False])
def test_every_distance(left):
    m = Module()
    value, distance, rotated = Signal(128), Signal(4), Signal(128)
    m.d.comb += rotated.eq(rotate_bytes(m, value, distance, left=left))
    rng = random.Random(SEED)

    async def check(ctx):
        for places in range(16):
            raw = rng.randbytes(16)
            ctx.set(value, int.from_bytes(raw, "little"))
            ctx.set(distance, places)
            await ctx.delay(1e-9)
            cut = -places % 16 if left else places
            assert ctx.get(rotated).to_bytes(16, "little") == raw[cut:] + raw[:cut]

    simulate(m, check)
