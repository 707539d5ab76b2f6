"""The credit counter against a number."""

import random

import pytest

from tilewright.hw.lib.credit import CreditCounter
from tilewright.sim.pysim import simulate


@pytest.mark.parametrize("limit", [1, 2, 5, 8])
def test_counts(limit):
    dut = CreditCounter(limit)
    rng = random.Random(19)
    counts = set()

    async def testbench(ctx):
        count = 0
        for _ in range(300):
            assert (ctx.get(dut.in_flight), ctx.get(dut.available)) == (count, count < limit)
            counts.add(count)
            take, give = count < limit and rng.random() < 0.6, count > 0 and rng.random() < 0.6
            ctx.set(dut.take, take)
            ctx.set(dut.give, give)
            await ctx.tick()
            count += take - give

    simulate(dut, testbench)
    assert counts == set(range(limit + 1))


def test_refused_limit():
    with pytest.raises(ValueError, match=r"^limit must be an int of at least 1, not 0$"):
        CreditCounter(0)
