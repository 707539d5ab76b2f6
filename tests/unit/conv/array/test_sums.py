"""Accumulators of a unit: sums modulo 2^32, maxima of elements, and reading beside adding."""

import random

import pytest

from tilewright.hw.conv.array.sums import Sums
from tilewright.hw.conv.params import FOLDS
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 41


@pytest.mark.parametrize("maximum", [0, 1])
@pytest.mark.parametrize(("lanes", "bits"), [(16, 9), (16, 17), (5, 9), (0, 9)])
def test_sums(lanes, bits, maximum):
    """An addition a cycle, with pauses; what is read is what has been added before this cycle."""
    dut, rng = elaborated(Sums, lanes, bits), random.Random(f"{SEED} {lanes} {bits} {maximum}")
    half = 1 << (bits - 1 if maximum else 31)
    kept = range(lanes if maximum else FOLDS)
    model = {}

    async def bench(ctx):
        ctx.set(dut.maximum, maximum)
        for _ in range(250):
            terms = [rng.choice([-half, half - 1, 0, -1, rng.randrange(-half, half)]) for _ in range(FOLDS)]
            address, valid = rng.randrange(8), rng.random() < 0.7
            first = address not in model or rng.random() < 0.1
            read = rng.choice([*model, 0])
            values = {"i": terms, "valid": valid, "first": first, "address": address, "read": read}
            for name, value in values.items():
                ctx.set(getattr(dut, name), value)
            if read in model:
                seen = ctx.get(dut.o)
                assert [seen[place] for place in kept] == [model[read][place] & 0xFFFFFFFF for place in kept]
            if valid and first:
                model[address] = terms
            elif valid:
                combine = max if maximum else int.__add__
                model[address] = list(map(combine, model[address], terms))
            await ctx.tick()

    simulate(dut, bench)
    assert len(model) == 8
