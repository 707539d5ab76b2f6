"""Accumulators of a unit: sums modulo 2^32, maxima of elements, and reading beside adding."""

import random

import pytest

from tilewright.hw.conv.array.sums import Sums
from tilewright.hw.conv.params import FOLDS
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 41


@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
@pytest.mark.parametrize("maximum", [0, 1])
@pytest.mark.parametrize(("lanes", "bits"), [(16, 9), (16, 17), (5, 9), (0, 9)])
def test_sums(lanes, bits, maximum, apart):
    """An addition a cycle, with pauses; what is read is what has been added before this cycle."""
    dut, rng = elaborated(Sums, lanes, bits, apart=apart), random.Random(f"{SEED} {lanes} {bits} {maximum}")
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
            if apart and read == address:
                read = address ^ 1
            values = {"i": terms, "valid": valid, "first": first, "address": address, "read": read}
            for name, value in values.items():
                ctx.set(getattr(dut, name), value)
            on = rng.getrandbits(FOLDS) if apart else (1 << FOLDS) - 1
            if apart:
                ctx.set(dut.on, on)
            wanted = {
                place: model[read][place] & 0xFFFFFFFF if on >> place & 1 else 0 for place in kept if read in model
            }
            if not apart:
                assert {place: ctx.get(dut.o)[place] for place in wanted} == wanted
            if valid and first:
                model[address] = terms
            elif valid:
                combine = max if maximum else int.__add__
                model[address] = list(map(combine, model[address], terms))
            await ctx.tick()
            if apart:
                assert {place: ctx.get(dut.o)[place] for place in wanted} == wanted

    simulate(dut, bench)
    assert len(model) == 8
