"""The address generator against base plus the sum of index times stride."""

import itertools
import random

import pytest

from tilewright.hw.tmau.walk.address import AddressGenerator
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 20261121


@pytest.mark.parametrize(("addr_width", "levels"), [(16, 5), (32, 4), (48, 5), (64, 5)])
def test_every_index_of_a_nest(addr_width, levels):
    dut = elaborated(AddressGenerator, addr_width=addr_width, levels=levels)
    rng = random.Random(SEED + addr_width)

    async def check(ctx):
        for _ in range(8):
            counts = [rng.randint(1, 3) for _ in range(levels)]
            strides = [rng.getrandbits(addr_width) for _ in range(levels)]
            origin = rng.getrandbits(addr_width)
            ctx.set(dut.strides, strides)
            ctx.set(dut.origins, [origin] * levels)
            ctx.set(dut.load, 1)
            ctx.set(dut.loading, 1)
            await ctx.tick()
            ctx.set(dut.load, 0)
            ctx.set(dut.loading, 0)
            visits = list(itertools.product(*(range(n) for n in reversed(counts))))
            for now, then in itertools.pairwise(visits):
                address = origin + sum(i * s for i, s in zip(reversed(now), strides, strict=True))
                assert ctx.get(dut.address) == address % (1 << addr_width)
                advancing = max(d for d in range(levels) if now[~d] != then[~d])
                ctx.set(dut.step, 1)
                ctx.set(dut.over, (1 << advancing) - 1 | rng.getrandbits(levels) << advancing + 1)
                await ctx.tick()
            ctx.set(dut.step, 0)

    print(f"seed {SEED}")
    simulate(dut, check)


def test_a_round_begins_at_its_own_origin():
    dut = elaborated(AddressGenerator, addr_width=16, levels=3)

    async def check(ctx):
        ctx.set(dut.strides, [1, 10, 100])
        ctx.set(dut.origins, [57, 50, 0])  # the first round begins seven steps late, the second five
        ctx.set(dut.load, 1)
        ctx.set(dut.loading, 1)
        await ctx.tick()
        ctx.set(dut.load, 0)
        ctx.set(dut.loading, 0)
        for level, address in ((0, 58), (1, 60), (0, 61), (1, 70), (2, 100), (0, 101), (1, 110), (2, 200)):
            ctx.set(dut.step, 1)
            ctx.set(dut.over, (1 << level) - 1)
            await ctx.tick()
            assert ctx.get(dut.address) == address

    simulate(dut, check)
