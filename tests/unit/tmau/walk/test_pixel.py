"""Parts of lines against a count of their pixels; how soon they are there."""

import random
from itertools import pairwise

import pytest

from support.cases import cases
from support.streams import transact
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.pixel import LineParts, PixelWalker
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES

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


PIXEL_SEED = 20261121
PIXEL_PARAMS = TMAU_PRESETS["unit"]
WIDE = PIXEL_PARAMS.replace(bus_bytes=64)


class Walk:
    """A random transfer: sizes and bounding box of W, H and D, as large as they may be or near the edges."""

    def __init__(self, rng, spatial, pixels):
        self.pixels, self.offset = pixels, [rng.choice([0, 0, rng.randint(0, 40)]) for _ in range(3)]
        self.size = [rng.choice([1, 2, 5, rng.randint(1, 30), 1 << 32]) if k < spatial else 1 for k in range(3)]
        self.lower = [rng.choice([0, -1, rng.randint(-9, 3)]) if k < spatial else 0 for k in range(3)]
        upper = [rng.choice([0, rng.randint(-3, 9)]) if k < spatial else 0 for k in range(3)]
        self.high = [max(s + u, low + 1) for s, u, low in zip(self.size, upper, self.lower, strict=True)]
        self.traversal = [rng.choice([1, 2, rng.randint(1, 8)]) if k < spatial else 1 for k in range(3)]
        self.start = [
            rng.choice([low, max(low, high - rng.randint(1, 5))])
            for low, high in zip(self.lower, self.high, strict=True)
        ]
        self.images, self.n = rng.choice([1, 3, 100, 1 << 32]), rng.choice([0, 0, -2, rng.randint(-3, 99)])
        self.address, self.strides = rng.getrandbits(32), [rng.getrandbits(32) for _ in range(4)]
        self.data_start, self.data_bytes = rng.randint(0, 100), rng.randint(1, 256)
        self.outside, self.store = rng.random() < 0.1, rng.getrandbits(1)
        self.traversal.append(rng.choice([1, rng.randint(1, 8)]))  # of N

    def emitted(self):
        """(n, position) of each pixel."""
        cur, n = list(self.start), self.n
        for _ in range(self.pixels):
            yield [c + o for c, o in zip(cur, self.offset, strict=True)], n
            for k in range(3):
                cur[k] += self.traversal[k]
                if cur[k] < self.high[k]:
                    break
                cur[k] = self.lower[k]
            else:
                n += self.traversal[3]

    def at(self, position, n):
        products = (x * stride for x, stride in zip([*position, n], self.strides, strict=True))
        return (self.address + sum(products)) % (1 << 32)

    def expected(self):
        for position, n in self.emitted():
            inside = 0 <= n < self.images and all(0 <= x < s for x, s in zip(position, self.size, strict=True))
            address = (self.at(position, n) + self.data_start) % (1 << 32)
            yield address, self.data_bytes, inside and not self.outside

    def fold(self):
        """Makes the pixels of a line adjoin."""
        self.data_bytes = min(self.data_bytes % 63 + 1, PIXEL_PARAMS.smem.size_bytes // self.pixels)
        self.traversal[0], self.strides[0] = 1, self.data_bytes
        self.outside, self.store = False, 0
        return self

    def folded(self):
        """Its runs, each what a line has before the tensor, inside or behind it: address, bytes, inside."""
        runs, before = [], None
        for (position, n), (address, _, inside) in zip(self.emitted(), self.expected(), strict=True):
            part = (position[0] >= 0) + (position[0] >= self.size[0])
            if before == (part, position[0], position[1:], n):
                runs[-1][1] += self.data_bytes
            else:
                runs.append([address, self.data_bytes, inside])
            before = (part, position[0] + 1, position[1:], n)
        return runs

    def payload(self):
        starts, lows, highs = (
            [x + o for x, o in zip(corner, self.offset, strict=True)] for corner in (self.start, self.lower, self.high)
        )
        return {
            "store": self.store,
            "data_bytes": self.data_bytes,
            "outside": self.outside,
            "origins": [(self.at(lows[:d] + starts[d:], self.n) + self.data_start) % (1 << 32) for d in range(4)],
            "strides": [s * t % (1 << 32) for s, t in zip(self.strides, self.traversal, strict=True)],
            "starts": [*starts, self.n],
            "lows": lows,
            "turns": [high - step for high, step in zip(highs, self.traversal[:3], strict=True)],
            "steps": [t - 1 for t in self.traversal],
            "sizes": [s - 1 for s in [*self.size, self.images]],
            "last": self.pixels - 1,
        }


@pytest.mark.parametrize("mode", STALL_MODES)
def test_pixels_of_back_to_back_walks(mode):
    rng = random.Random(PIXEL_SEED)
    walks = [Walk(rng, rng.randint(1, 3), rng.choice([1, 2, rng.randint(1, 60)])) for _ in range(50)]
    walks.append(Walk(rng, 3, 1024))
    expected = [(walk, number, *run) for walk in walks for number, run in enumerate(walk.expected())]
    items, dut = [walk.payload() for walk in walks], elaborated(PixelWalker, PIXEL_PARAMS)
    came, cycles = transact(dut, {"i": items}, {"o": len(expected)}, mode, deadline=20_000)
    for run, (walk, number, address, data_bytes, inside) in zip(came["o"], expected, strict=True):
        assert (run.inside, run.last) == (inside, number == walk.pixels - 1)
        assert (run.skip, run.store, run.loop) == (1, walk.store, 0)
        assert not inside or (run.address, run.bytes) == (address, data_bytes)
    assert mode != "none" or cycles["o"] == list(range(1, len(expected) + 1)), "latency 1, a pixel in every cycle"


@cases("mode", ["none", "both"], ["idle", "stall"])
def test_contiguous_pixels_are_folded(mode):
    rng, items, expected = random.Random(PIXEL_SEED), [], []
    for _ in range(120):
        walk = Walk(rng, rng.randint(1, 3), rng.choice([1, 2, rng.randint(1, 60), rng.randint(60, 400)]))
        folds = rng.random() < 0.8
        runs = list(walk.fold().folded() if folds else walk.expected())
        items.append(walk.payload() | {"folds": folds})
        expected += [(*run, folds, walk.store, k == len(runs) - 1) for k, run in enumerate(runs)]
    dut = elaborated(PixelWalker, WIDE)
    came, _ = transact(dut, {"i": items}, {"o": len(expected)}, mode, settle=2, deadline=30_000)
    for run, (address, count, inside, folds, store, last) in zip(came["o"], expected, strict=True):
        assert (run.inside, run.folded, run.last, run.store) == (inside, folds, last, store)
        assert (run.skip, run.loop) == (1, 0)
        assert not inside or run.address == address
        assert not (inside or folds) or run.bytes == count


def test_a_line_takes_a_cycle_and_one_for_each_run():
    walk = Walk(random.Random(PIXEL_SEED), 1, 100)
    walk.offset, walk.size, walk.lower, walk.high, walk.start = [0] * 3, [20, 1, 1], [-1, 0, 0], [19, 1, 1], [5, 0, 0]
    walk.images, walk.n = 1 << 20, 0
    items = [walk.fold().payload() | {"folds": 1}] * 2
    # A line from its middle, four with one pixel outside and 19 inside, and one that is cut after 5 inside.
    came, cycles = transact(elaborated(PixelWalker, WIDE), {"i": items}, {"o": 22})
    pixels = [14, *[1, 19] * 4, 1, 5]
    assert [run.bytes for run in came["o"]] == [walk.data_bytes * count for count in pixels * 2]
    first = [9, *(start + part for start in range(13, 25, 3) for part in (0, 1)), 25, 26]
    assert cycles["o"] == [*first, *(cycle + 26 for cycle in first)]
