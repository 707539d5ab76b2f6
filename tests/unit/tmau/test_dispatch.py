"""How fast commands and jobs pass; groups are counted. Where jobs go is proved (tests/formal/tmau/test_dispatch.py)."""

import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.dispatch import Dispatch, GroupTracker, Router
from tilewright.hw.tmau.params import MAX_GROUPS, TMAU_PRESETS
from tilewright.spec import Opcode
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]


@pytest.mark.parametrize(("opcode", "number"), [(Opcode.STORE, 0), (Opcode.COMMIT, 1), (Opcode.LANES, 2)])
def test_one_command_a_cycle_to_the_same_setup(opcode, number):
    ready = ("tensors.ready", "blocks.ready", "lanes.ready")[number]
    commands = [{"command": {"opcode": opcode}}] * 5
    _, cycles = transact(elaborated(Router, PARAMS), {"i": commands}, inputs={"busy": 1 << number, ready: 1})
    assert cycles["i"] == list(range(5))


@pytest.mark.parametrize("preset", ["unit", "full"])
def test_groups_are_counted(preset):
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
                # The tracker drops one group a cycle, in the cycle after it could: never too early.
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


def job(number, *, store=0, im2col=0, quiet=0):
    """A job whose parts can be told by their numbers."""
    return {
        "transfer": {"tag": number, "quiet": quiet},
        "store": store,
        "im2col": im2col,
        "walk": {"origin": number},
        "pixels": {"last": number},
    }


def block(tag, *, store=0, quiet=0):
    return {"tag": tag, "quiet": quiet, "store": store, "address": tag, "size": 1}


def test_parts_leave_at_once_and_a_job_every_second_cycle():
    ready = {"o.load_transfers.ready": 1, "o.store_transfers.ready": 1}
    jobs = [job(n, store=n % 2) for n in range(8)]
    _, cycles = transact(elaborated(Dispatch, PARAMS), {"jobs": jobs}, {"o.walks": 8}, inputs=ready)
    assert (cycles["jobs"], cycles["o.walks"]) == (list(range(1, 16, 2)), list(range(0, 16, 2)))


def test_a_prefetch_is_a_walk_only():
    """No path gets a transfer, and none is counted as moving; walks stay in order."""
    dut = elaborated(Dispatch, PARAMS.replace(prefetches=True))
    jobs = [job(number) | {"prefetch": number % 2} for number in range(8)]
    came, _ = transact(dut, {"jobs": jobs}, {"o.load_transfers": 4, "o.walks": 8})
    assert [item.tag for item in came["o.load_transfers"]] == [0, 2, 4, 6]
    assert [item.origin for item in came["o.walks"]] == list(range(8))
    came, _ = transact(dut, {"blocks": [block(8) | {"prefetch": 1}]}, {"o.walks": 1})
    assert came["o.walks"][0].origin == 8
