"""Sums of products against Python's, for every width that addresses may have."""

import random

import pytest

from tilewright.hw.tmau.setup.origin import OriginSum
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 20261121


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("addr_width", [16, 32, 48, 64])
def test_sum_of_products(addr_width, stall):
    dut = elaborated(OriginSum, addr_width=addr_width)
    rng = random.Random(SEED)

    async def check(ctx):
        expected = None  # the sum with the product of the factors that the last step took
        for index in range(400):
            start = index == 0 or rng.random() < 0.2
            position = rng.choice([rng.randint(-(1 << 33), (1 << 33) - 1), rng.randint(-300, 300), -(1 << 33)])
            stride = rng.choice(
                [rng.getrandbits(min(40, addr_width)), rng.getrandbits(10), (1 << min(40, addr_width)) - 1]
            )
            none, address = rng.random() < 0.2, rng.getrandbits(addr_width)
            for name, value in (("position", position), ("stride", stride), ("none", none), ("start", start),
                                ("address", address)):  # fmt: skip
                ctx.set(getattr(dut, name), value)
            while rng.random() < stall:
                ctx.set(dut.step, 0)
                await ctx.tick()
                assert expected is None or ctx.get(dut.sum) == expected
            ctx.set(dut.step, 1)
            await ctx.tick()
            product = 0 if none else position * stride
            expected = ((address if start else expected) + product) % (1 << addr_width)
            assert ctx.get(dut.sum) == expected

    print(f"seed {SEED}")
    simulate(dut, check)
