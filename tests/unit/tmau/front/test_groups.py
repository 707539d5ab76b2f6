"""Groups against a model that keeps lists of jobs."""

import random

import pytest

from tilewright.hw.tmau.front.groups import GroupTracker
from tilewright.hw.tmau.params import MAX_GROUPS, TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 20261121


@pytest.mark.parametrize("preset", ["unit", "full"])
def test_counts(preset):
    """Counts are those of the model, at once or as soon as a group that just ended has been taken away."""
    dut = elaborated(GroupTracker, TMAU_PRESETS[preset])
    rng = random.Random(SEED)
    reached = {"full": False, "empty": False}

    async def run(ctx):
        issued, passed = 0, {"unread": 0, "unfinished": 0}
        groups = {"unread": [], "unfinished": []}  # the number that follows the last job of each
        for cycle in range(6000):
            slow = cycle // 500 % 2  # jobs pile up, then groups end as fast as they can
            issue = rng.random() < 0.4 and issued - passed["unfinished"] < 6
            commit = rng.random() < (0.5 if slow else 0.2) and not ctx.get(dut.full)
            read = passed["unread"] < issued and rng.random() < (0.05 if slow else 0.8)
            done = passed["unfinished"] < passed["unread"] and rng.random() < (0.05 if slow else 0.8)
            for name, strobe in (("issued", issue), ("commit", commit), ("read_stb", read), ("done_stb", done)):
                ctx.set(getattr(dut, name), strobe)
            if commit:
                for ends in groups.values():
                    ends.append(issued)
            await ctx.tick()
            issued += issue
            passed["unread"] += read
            passed["unfinished"] += done
            for name, ends in groups.items():
                shown = ctx.get(getattr(dut, name))
                # The tracker lets go of one group a cycle, in the cycle after it could: never too early.
                assert sum(end > passed[name] for end in ends) <= shown <= len(ends)
                groups[name] = ends[len(ends) - shown :]
            reached["full"] |= ctx.get(dut.full)
            reached["empty"] |= not groups["unfinished"]
        for name in ("issued", "commit", "read_stb", "done_stb"):
            ctx.set(getattr(dut, name), 0)
        for name, strobe in (("unread", "read_stb"), ("unfinished", "done_stb")):
            ctx.set(getattr(dut, strobe), 1)
            await ctx.tick().repeat(issued - passed[name])
            ctx.set(getattr(dut, strobe), 0)
        await ctx.tick().repeat(MAX_GROUPS + 2)
        assert ctx.get(dut.unfinished) == ctx.get(dut.unread) == 0 and not ctx.get(dut.full)

    print(f"seed {SEED}")
    simulate(dut, run)
    assert all(reached.values())


def test_latency():
    """A group is gone two cycles after the strobe that ends it; an empty one two cycles after its commit."""
    dut = elaborated(GroupTracker, TMAU_PRESETS["unit"])

    async def strobe(ctx, *signals):
        for signal in signals:
            ctx.set(signal, 1)
        await ctx.tick()
        for signal in signals:
            ctx.set(signal, 0)

    async def run(ctx):
        await strobe(ctx, dut.commit)
        assert ctx.get(dut.unfinished) == ctx.get(dut.unread) == 1
        await ctx.tick()
        assert ctx.get(dut.unfinished) == ctx.get(dut.unread) == 0
        await strobe(ctx, dut.issued)
        await strobe(ctx, dut.commit)
        await strobe(ctx, dut.read_stb)
        await ctx.tick()
        assert (ctx.get(dut.unread), ctx.get(dut.unfinished)) == (0, 1)
        await strobe(ctx, dut.done_stb)
        await ctx.tick()
        assert (ctx.get(dut.unread), ctx.get(dut.unfinished)) == (0, 0)

    simulate(dut, run)
