"""Parts of lines against a count of their pixels; how soon they are there.

Pixels, and what becomes of the parts, are proved in tests/formal/tmau/walk/test_pixel.py.
"""

import random
from itertools import pairwise

from support.streams import transact
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.pixel import LineParts, PixelWalker
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 20261122
PARAMS = TMAU_PRESETS["unit"].replace(bus_bytes=64)
MOST = 1024


def random_walk(rng):
    """A line of W, from anywhere in it and from its begin; as short as one pixel, and as long as it may be."""
    low = rng.choice([0, -1, rng.randint(-40, 40), rng.randint(-(1 << 16), 1 << 16)])
    size = rng.choice([1, 5, rng.randint(1, 80), rng.randint(1, 3000), 1 << 32])
    high = max(low + 1, size + rng.choice([0, -1, rng.randint(-50, 50), rng.randint(-(1 << 15), 1 << 15)]))
    start = rng.choice([low, high - 1, rng.randint(low, high - 1), min(high - 1, low + rng.randint(0, 40))])
    return {"starts": [start, 0, 0, 0], "lows": [low, 0, 0], "turns": [high - 1, 0, 0], "sizes": [size - 1, 0, 0, 0],
            "last": rng.choice([0, 1023, rng.randrange(1024)]), "data_bytes": rng.randint(1, 63)}  # fmt: skip


def expected(walk, begin):
    """Bytes before the tensor, inside and behind it, of at most ``MOST`` pixels of a line from ``begin`` on."""
    end, size = walk["turns"][0] + 1, walk["sizes"][0] + 1
    bounds = [begin, *(max(begin, min(place, end)) for place in (0, size)), end]
    pixels = [min(bound - begin, MOST) for bound in bounds]
    return tuple((after - before) * walk["data_bytes"] for before, after in pairwise(pixels))


def test_parts_of_both_lines():
    dut = elaborated(LineParts, PARAMS)
    rng = random.Random(SEED)

    async def check(ctx):
        for _ in range(600):
            walk = random_walk(rng)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.walk, walk)
            # Some are given up: nothing of them stays.
            cycles = rng.choice([rng.randint(1, 14), 11])
            for cycle in range(1, cycles + 1):
                assert (ctx.get(dut.first_done), ctx.get(dut.others_done)) == (cycle >= 7, cycle >= 11), cycle
                if cycle < cycles:
                    await ctx.tick()
            for done, parts, begin in ((7, dut.first, "starts"), (11, dut.others, "lows")):
                if cycles >= done:
                    got = ctx.get(parts)
                    assert (got.before, got.inside, got.behind) == expected(walk, walk[begin][0]), walk
            if cycles >= 7:
                assert ctx.get(dut.bytes) == (walk["last"] + 1) * walk["data_bytes"]

    print(f"seed {SEED}")
    simulate(dut, check, deadline=20_000)


def test_a_line_takes_a_cycle_and_one_for_each_run():
    walk = {"folds": 1, "data_bytes": 3, "strides": [3, 0, 0, 0], "starts": [5, 0, 0, 0], "lows": [-1, 0, 0],
            "turns": [18, 0, 0], "sizes": [19, 0, 0, (1 << 20) - 1], "last": 99}  # fmt: skip
    # A line from its middle, four with one pixel outside and 19 inside, and one that is cut after 5 inside.
    came, cycles = transact(elaborated(PixelWalker, PARAMS), {"i": [walk] * 2}, {"o": 22})
    pixels = [14, *[1, 19] * 4, 1, 5]
    assert [run.bytes for run in came["o"]] == [3 * count for count in pixels * 2]
    first = [9, *(start + part for start in range(13, 25, 3) for part in (0, 1)), 25, 26]
    assert cycles["o"] == [*first, *(cycle + 26 for cycle in first)]
