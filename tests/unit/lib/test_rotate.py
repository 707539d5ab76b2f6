"""The rotator against a rotation of Python bytes."""

import random

import pytest
from amaranth.hdl import Module, Signal

from tilewright.hw.lib.rotate import rotate_bytes
from tilewright.sim.pysim.simulate import simulate

SEED = 1


@pytest.mark.parametrize("complemented", [False, True])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("bits", [4, 5])
def test_every_distance(bits, left, complemented):
    m, count = Module(), 1 << bits
    value, distance, rotated = Signal(8 * count), Signal(bits), Signal(8 * count)
    complement = ~distance if complemented else None
    m.d.comb += rotated.eq(rotate_bytes(m, value, distance, left=left, complement=complement))
    rng = random.Random(SEED)

    async def check(ctx):
        for places in range(count):
            raw = rng.randbytes(count)
            ctx.set(value, int.from_bytes(raw, "little"))
            ctx.set(distance, places)
            await ctx.delay(1e-9)
            cut = -places % count if left else places
            assert ctx.get(rotated).to_bytes(count, "little") == raw[cut:] + raw[:cut]

    simulate(m, check)
