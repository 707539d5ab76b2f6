"""The tag array against a list, and the corners of its contract."""

import random

import pytest

from tilewright.hw.lib.tag_array import TagArray
from tilewright.verify.pysim.simulate import simulate


class Model:
    """What a tag array does: entries in a list, filled in turn."""

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
    """Tags from a small set, so that they meet; all strobes at random, also together."""
    dut = TagArray(entries, 8)
    model = Model(entries)
    rng = random.Random(17)
    hits = []

    async def testbench(ctx):
        tag = 0
        for _ in range(600):
            ahead = rng.randrange(2 * entries + 1)
            hit, there = tag in model.tags, ahead in model.tags
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
            assert ctx.get(dut.place) == (model.tags.index(ahead) if there else 0)
            assert ctx.get(dut.victim) == model.victim
            hits.append(hit)
            await ctx.tick()
            model.update(tag, **strobes)
            tag = ahead if look else tag

    simulate(dut, testbench)
    assert 100 < sum(hits) < 500


def test_nothing_is_there_after_reset():
    """Zero is a tag like any other."""
    dut = TagArray(4, 8)

    async def testbench(ctx):
        assert not ctx.get(dut.hit)
        ctx.set(dut.insert, 1)
        await ctx.tick()
        assert ctx.get(dut.hit)

    simulate(dut, testbench)


@pytest.mark.parametrize("entries", [0, 3, 4.0])
def test_refused_entries(entries):
    with pytest.raises(ValueError, match=rf"^entries must be a power of two, not {entries}$"):
        TagArray(entries, 8)
