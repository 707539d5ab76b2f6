"""The tree of bits that tells which line leaves."""

import random

import pytest
from amaranth.hdl import Module, Signal

from tilewright.hw.cluster.l2.tree import least_used, used
from tilewright.sim.pysim.simulate import simulate


class Model:
    """Halves of halves, by recursion."""

    def __init__(self, ways):
        self.halves = (Model(ways // 2), Model(ways // 2)) if ways > 1 else None
        self.next, self.ways = 0, ways

    def victim(self):
        if not self.halves:
            return 0
        return self.next * self.ways // 2 + self.halves[self.next].victim()

    def use(self, way):
        if self.halves:
            half, rest = divmod(way, self.ways // 2)
            self.halves[half].use(rest)
            self.next = 1 - half


@pytest.mark.parametrize("ways", [1, 2, 4, 8])
def test_as_halves_of_halves(ways):
    m, tree, way = Module(), Signal(max(ways - 1, 1)), Signal(ways)
    victim = Signal(ways)
    m.d.comb += victim.eq(least_used(tree, ways))
    m.d.sync += tree.eq(used(tree, way, ways))
    model, rng = Model(ways), random.Random(ways)

    async def run(ctx):
        for _ in range(100):
            assert ctx.get(victim) == 1 << model.victim()
            number = rng.choice([model.victim(), rng.randrange(ways)])
            ctx.set(way, 1 << number)
            model.use(number)
            await ctx.tick()

    simulate(m, run)


def test_lines_that_are_not_used_again_leave_in_turns():
    model, seen = Model(4), []
    for _ in range(8):
        seen.append(model.victim())
        model.use(seen[-1])
    assert sorted(seen[:4]) == sorted(seen[4:]) == [0, 1, 2, 3]
