"""Accumulators: sums that wrap, maxima, banks and channels that come in every order."""

import random

from tilewright.hw.conv.array.sums import Sums
from tilewright.hw.conv.array.unit import FOLDS
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 43
LANES = 10
ENDS = (-(1 << 31), (1 << 31) - 1, -1, 0, 1)


def test_sums_and_maxima():
    """One in every cycle, which is there in the next one; the same channel may come again at once."""
    dut, rng = elaborated(Sums, LANES), random.Random(SEED)
    sums, checked = {}, 0

    async def bench(ctx):
        nonlocal checked
        for _ in range(600):
            valid, first, maximum = rng.random() < 0.8, rng.random() < 0.2, rng.getrandbits(1)
            address, read = rng.choice([rng.randrange(8), 3]), rng.randrange(8)
            terms = [rng.choice([*ENDS, rng.randint(-(1 << 31), (1 << 31) - 1)]) for _ in range(FOLDS)]
            for name, value in (("i", terms), ("valid", valid), ("first", first or address not in sums),
                                ("maximum", maximum), ("address", address), ("read", read)):  # fmt: skip
                ctx.set(getattr(dut, name), value)
            if read in sums:
                held = LANES if None in sums[read] else FOLDS
                assert list(ctx.get(dut.o))[:held] == [each & 0xFFFFFFFF for each in sums[read][:held]]
                checked += 1
            await ctx.tick()
            if valid:
                old = None if first else sums.get(address)
                sums[address] = [after(place, term, old, maximum) for place, term in enumerate(terms)]

    simulate(dut, bench)
    assert checked > 500


def after(place, term, old, maximum):
    """What an accumulator then holds; None if that means nothing."""
    if maximum:
        if place >= LANES:
            return None
        return term if old is None or old[place] is None else max(term, old[place])
    if old is None:
        return term
    return None if old[place] is None else (old[place] + term + (1 << 31)) % (1 << 32) - (1 << 31)
