"""The address generator against base plus the sum of index times stride."""

import itertools
import random

import pytest

from tilewright.hw.tmau.address import AddressGenerator
from tilewright.sim.pysim import simulate

SEED = 20261121


@pytest.mark.parametrize("addr_width", [16, 32, 48, 64])
def test_every_index_of_a_nest(addr_width):
    dut = AddressGenerator(addr_width=addr_width)
    rng = random.Random(SEED + addr_width)

    async def check(ctx):
        for _ in range(8):
            counts = [rng.randint(1, 4) for _ in range(4)]
            strides = [rng.getrandbits(addr_width) for _ in range(4)]
            origin = rng.getrandbits(addr_width)
            ctx.set(dut.strides, strides)
            ctx.set(dut.origin, origin)
            ctx.set(dut.load, 1)
            await ctx.tick()
            ctx.set(dut.load, 0)
            visits = list(itertools.product(*(range(n) for n in reversed(counts))))
            for now, then in itertools.pairwise(visits):
                address = origin + sum(i * s for i, s in zip(reversed(now), strides, strict=True))
                assert ctx.get(dut.address) == address % (1 << addr_width)
                advancing = max(d for d in range(4) if now[3 - d] != then[3 - d])
                ctx.set(dut.advance, 1 << advancing)
                await ctx.tick()
            ctx.set(dut.advance, 0)

    print(f"seed {SEED}")
    simulate(dut, check)
