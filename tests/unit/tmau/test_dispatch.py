"""The order of commands: each reaches its setup, each part of a job its place, and groups are counted."""

import itertools
import random

import pytest

from support.streams import transact
from tilewright.hw.tmau.dispatch import Dispatch, GroupTracker, Router
from tilewright.hw.tmau.params import MAX_GROUPS, TMAU_PRESETS
from tilewright.spec import Opcode
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, watch_stream

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


def test_a_group_ends_two_cycles_after_its_last_strobe():
    """An empty one two cycles after its commit."""
    dut = elaborated(GroupTracker, PARAMS)

    async def run(ctx):
        for strobes, unread, unfinished in (
            ([dut.commit], 0, 0),
            ([dut.issued, dut.commit, dut.read_stb], 0, 1),
            ([dut.done_stb], 0, 0),
        ):
            for signal in strobes:
                ctx.set(signal, 1)
                await ctx.tick()
                ctx.set(signal, 0)
            if strobes[0] is dut.commit:
                assert ctx.get(dut.unfinished) == ctx.get(dut.unread) == 1
            await ctx.tick()
            assert (ctx.get(dut.unread), ctx.get(dut.unfinished)) == (unread, unfinished)

    simulate(dut, run)


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


def walker(port, busy, other_busy, number_of, log, stall, seed):
    """Accepts a walk, and walks for some cycles; a walk can follow another without a gap, as in the real walker."""
    rng = random.Random(seed)

    async def work(ctx):
        left = 0
        for cycle in itertools.count():
            ready = left <= 1 and rng.random() >= stall
            ctx.set(port.ready, ready)
            ctx.set(busy, left > 0)
            _, _, valid, payload, other = await ctx.tick().sample(port.valid, port.payload, other_busy)
            left = max(left - 1, 0) if left != 1 or ready else 0
            if valid and ready:
                assert not other, "runs of the other walker are still in progress"
                log.append(("walk", number_of(payload), cycle))
                left = rng.randint(1, 4)

    return work


def path(port, name, log, stall, seed):
    """Accepts transfers."""
    rng = random.Random(seed)

    async def take(ctx):
        for cycle in itertools.count():
            ready = rng.random() >= stall
            ctx.set(port.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(port.valid, port.payload)
            if valid and ready:
                log.append((name, payload.tag, cycle))

    return take


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_part_arrives_once(mode):
    dut, rng, stall = elaborated(Dispatch, PARAMS), random.Random(SEED), STALL_MODES[mode]
    jobs = [
        job(number, store=rng.randrange(2), im2col=rng.random() < 0.3, quiet=rng.random() < 0.3)
        for number in range(1, 301)
    ]
    log, strobes, o = [], [], dut.o

    async def source(ctx):
        # Two streams, each of which is offered jobs while the other has none.
        index = 0
        while index < len(jobs):
            port, items = dut.jobs, jobs[index : index + rng.randint(1, 6)]
            if rng.randrange(2) and not any(item["im2col"] for item in items):
                port, items = dut.blocks, [block(store=item["store"], **item["transfer"]) for item in items]
            await send(ctx, port, items, idle=stall["idle"], seed=index)
            index += len(items)
        await ctx.tick().repeat(10)

    async def watch(ctx):
        async for _, _, strobe in ctx.tick().sample(dut.store_stb):
            strobes.append(strobe)

    pause = stall["stall"]
    background = [
        walker(o.walks, o.tile_busy, o.pixel_busy, lambda p: p.origin, log, pause, 1),
        walker(o.pixel_walks, o.pixel_busy, o.tile_busy, lambda p: p.last, log, pause, 2),
        path(o.load_transfers, "load", log, pause, 3),
        path(o.store_transfers, "store", log, pause, 4),
        watch,
        *map(watch_stream, (o.walks, o.pixel_walks, o.load_transfers, o.store_transfers)),
    ]
    print(f"seed {SEED}")
    simulate(dut, source, background=background)
    for name in ("load", "store"):
        wanted = [j["transfer"]["tag"] for j in jobs if j["store"] == (name == "store")]
        assert [number for kind, number, _ in log if kind == name] == wanted
    assert [number for kind, number, _ in log if kind == "walk"] == list(range(1, 301)), "walks are in order of jobs"
    assert sum(strobes) == sum(j["store"] for j in jobs)
    walks = {number: cycle for kind, number, cycle in log if kind == "walk"}
    assert all(walks[number] >= cycle for _, number, cycle in log), "a walk before its transfer"


def test_parts_leave_at_once_and_a_job_every_second_cycle():
    ready = {"o.load_transfers.ready": 1, "o.store_transfers.ready": 1}
    jobs = [job(n, store=n % 2) for n in range(8)]
    _, cycles = transact(elaborated(Dispatch, PARAMS), {"jobs": jobs}, {"o.walks": 8}, inputs=ready)
    assert (cycles["jobs"], cycles["o.walks"]) == (list(range(1, 16, 2)), list(range(0, 16, 2)))


def test_moving_counts_what_is_not_quiet():
    dut = elaborated(Dispatch, PARAMS)

    async def run(ctx):
        for port in (dut.o.walks, dut.o.pixel_walks, dut.o.load_transfers, dut.o.store_transfers):
            ctx.set(port.ready, 1)
        await send(ctx, dut.jobs, [job(1, quiet=1), job(2, store=1), job(3), job(4, im2col=1)])
        assert ctx.get(dut.moving) == 3
        ctx.set(dut.o.load_completed, 1)
        ctx.set(dut.o.store_completed, 1)
        await ctx.tick()
        ctx.set(dut.o.store_completed, 0)
        assert ctx.get(dut.moving) == 1
        ctx.set(dut.jobs.payload, job(5))
        ctx.set(dut.jobs.valid, 1)
        await ctx.tick()
        ctx.set(dut.o.load_completed, 0)
        assert ctx.get(dut.moving) == 1, "one comes while another ends"
        await ctx.tick()
        assert ctx.get(dut.moving) == 1, "it is counted once"

    simulate(dut, run)


@pytest.mark.parametrize("number", range(3))
def test_ends_of_all_setups_pass(number):
    dut = elaborated(Dispatch, PARAMS)

    async def run(ctx):
        refused = dut.refused[number]
        ctx.set(refused.payload, {"tag": 7, "code": 3})
        ctx.set(refused.valid, 1)
        assert ctx.get(dut.o.finished.valid) and not ctx.get(refused.ready)
        ctx.set(dut.o.finished.ready, 1)
        assert ctx.get(refused.ready) and ctx.get(dut.o.finished.payload.tag) == 7

    simulate(dut, run)


def test_a_prefetch_is_a_walk_only():
    """No path gets a transfer, and none is counted as moving; walks stay in order."""
    dut = elaborated(Dispatch, PARAMS.replace(prefetches=True))
    jobs = [job(number) | {"prefetch": number % 2} for number in range(8)]
    came, _ = transact(dut, {"jobs": jobs}, {"o.load_transfers": 4, "o.walks": 8})
    assert [item.tag for item in came["o.load_transfers"]] == [0, 2, 4, 6]
    assert [item.origin for item in came["o.walks"]] == list(range(8))
    came, _ = transact(dut, {"blocks": [block(8) | {"prefetch": 1}]}, {"o.walks": 1})
    assert came["o.walks"][0].origin == 8
