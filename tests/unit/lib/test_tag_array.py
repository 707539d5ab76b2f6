"""The tag array against a list."""

import random

import pytest

from tilewright.hw.lib.tag_array import TagArray
from tilewright.verify.pysim.simulate import simulate


class Model:
    """Entries in a list, filled in turn."""

    def __init__(self, entries):
        self.tags = [None] * entries
        self.victim = 0

    def update(self, tag, *, insert, evict, invalidate, invalidate_all):
        if invalidate_all:
            self.tags = [None] * len(self.tags)
        elif invalidate:
            self.tags = [None if other == tag else other for other in self.tags]
        elif evict:
            self.tags[self.victim] = None
        elif insert:
            self.tags[self.victim] = tag
            self.victim = (self.victim + 1) % len(self.tags)


@pytest.mark.parametrize("entries", [1, 2, 8])
def test_random_operations(entries):
    """Few different tags, all strobes at random."""
    dut = TagArray(entries, 8)
    model = Model(entries)
    rng = random.Random(17)
    hits = []

    async def testbench(ctx):
        tag = 0
        for _ in range(600):
            ahead = rng.randrange(2 * entries + 1)
            hit, present = tag in model.tags, ahead in model.tags
            strobes = {
                "insert": int(not hit and rng.random() < 0.6),
                "evict": int(rng.random() < 0.05),
                "invalidate": int(rng.random() < 0.1),
                "invalidate_all": int(rng.random() < 0.02),
            }
            look = int(not strobes["insert"] and rng.random() < 0.8)
            ctx.set(dut.tag, tag)
            ctx.set(dut.ahead, ahead)
            for name, value in (strobes | {"look": look}).items():
                ctx.set(getattr(dut, name), value)
            assert ctx.get(dut.hit) == hit
            assert ctx.get(dut.place) == (model.tags.index(ahead) if present else 0)
            assert ctx.get(dut.victim) == model.victim
            hits.append(hit)
            await ctx.tick()
            model.update(tag, **strobes)
            tag = ahead if look else tag

    simulate(dut, testbench)
    assert 100 < sum(hits) < 500


@pytest.mark.parametrize("entries", [0, 3, 4.0])
def test_refused_entries(entries):
    with pytest.raises(ValueError, match=rf"^entries must be a power of two, not {entries}$"):
        TagArray(entries, 8)
