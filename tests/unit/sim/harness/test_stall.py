"""Random pauses: their probability, and that seed and number vary them."""

import pytest

from tilewright.sim.harness.stall import Stall
from tilewright.sim.pysim.simulate import simulate

CYCLES = 4000


def _pattern(probability, *, number=1, seed=1):
    dut, pattern = Stall(number), []

    async def bench(ctx):
        ctx.set(dut.probability, probability)
        ctx.set(dut.seed, seed)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for _ in range(CYCLES):
            pattern.append(ctx.get(dut.go))
            await ctx.tick()

    simulate(dut, bench)
    return pattern


@pytest.mark.parametrize("probability", [64, 128, 230])
def test_probability(probability):
    assert sum(_pattern(probability)) / CYCLES == pytest.approx(1 - probability / 256, abs=0.03)


def test_zero_never_pauses():
    assert all(_pattern(0))


def test_seed_and_number_vary_it():
    patterns = [_pattern(128), _pattern(128, seed=2), _pattern(128, number=2)]
    assert patterns[0] == _pattern(128)
    for index, one in enumerate(patterns):
        for other in patterns[:index]:
            assert 0.4 < sum(a == b for a, b in zip(one, other, strict=True)) / CYCLES < 0.6
