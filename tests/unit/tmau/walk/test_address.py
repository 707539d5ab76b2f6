"""Bounds of walks against the specification; addresses are proved in tests/formal/tmau/walk/test_address.py."""

import random

from amaranth.hdl import Elaboratable, Module

from tilewright.hw.tmau.walk.address import BoundsCheck, BoundsDistance, BoundsInterval
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 20261121


class BoundsChain(Elaboratable):
    """Distance and interval as setup joins them."""

    def __init__(self):
        self.distance, self.interval = BoundsDistance(), BoundsInterval()

    def elaborate(self, platform):
        m = Module()
        m.submodules.distance, m.submodules.interval = self.distance, self.interval
        m.d.comb += [self.interval.below.eq(self.distance.below), self.interval.above.eq(self.distance.above)]
        return m


def cases():
    rng = random.Random(SEED)
    corners = [-(1 << 31), -257, -256, -255, -1, 0, 1, 255, 256, 257, (1 << 31) - 1]
    for coord in corners:
        for size in (1, 2, 255, 256, 257, 1 << 31, 1 << 32):
            yield coord, size, rng.randint(1, 8), rng.randint(1, 256)
    for _ in range(2000):
        size = rng.choice([rng.randint(1, 300), rng.randint(1, 1 << 32)])
        coord = rng.choice([rng.randint(-300, 300), size + rng.randint(-300, 300), rng.choice(corners)])
        yield max(min(coord, (1 << 31) - 1), -(1 << 31)), size, rng.randint(1, 8), rng.randint(1, 256)


def test_interval_holds_exactly_the_indices_inside():
    dut = elaborated(BoundsChain)

    async def check(ctx):
        for coord, size, traversal, box in cases():
            count = -(-box // traversal)
            ctx.set(dut.distance.coord, coord)
            ctx.set(dut.distance.size, size - 1)
            ctx.set(dut.distance.traversal, traversal - 1)
            ctx.set(dut.interval.traversal, traversal - 1)
            ctx.set(dut.interval.count, count)
            ctx.set(dut.distance.count, count)
            interval = ctx.get(dut.interval.interval)
            inside = [i for i in range(count) if 0 <= coord + i * traversal < size]
            taken = [i for i in range(count) if interval.first <= i < interval.end]
            assert taken == inside, (coord, size, traversal, count)
            assert (ctx.get(dut.interval.empty) != 0) == (not inside)
            limits = (ctx.get(dut.distance.start), ctx.get(dut.distance.end))
            assert limits == (min(max(-coord, 0), count), min(max(size - coord, 0), count))

    print(f"seed {SEED}")
    simulate(dut, check)


def test_which_indices_are_inside():
    dut = elaborated(BoundsCheck)
    rng = random.Random(SEED)

    async def check(ctx):
        for _ in range(60):
            intervals = [{"first": rng.randint(0, 3), "end": rng.randint(0, 6)} for _ in range(5)]
            ctx.set(dut.starting, intervals)
            ctx.set(dut.start, 1)
            ctx.set(dut.step, rng.randint(0, 1))  # loses
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.starting, [{"first": 0, "end": 0}] * 5)
            ctx.set(dut.intervals, intervals)
            indices = [0] * 5
            for _ in range(20):
                expected = [v["first"] <= i < v["end"] for i, v in zip(indices, intervals, strict=True)]
                assert ctx.get(dut.inside) == sum(inside << d for d, inside in enumerate(expected))
                step, at_last = rng.randint(0, 3) > 0, [rng.randint(0, 2) > 0 for _ in range(5)]
                ctx.set(dut.step, step)
                ctx.set(dut.indices, indices)
                ctx.set(dut.at_last, sum(last << d for d, last in enumerate(at_last)))
                await ctx.tick()
                for d in range(5):
                    if step and all(at_last[:d]):
                        indices[d] = 0 if at_last[d] else indices[d] + 1

    print(f"seed {SEED}")
    simulate(dut, check)
