"""Dispatch: every part of every job reaches its place, in order; runs of two walkers never mix."""

import itertools
import random

import pytest

from tilewright.hw.tmau.front.dispatch import Dispatch
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121


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
    """The same of a block."""
    return {"tag": tag, "quiet": quiet, "store": store, "address": tag, "size": 1}


class Walker:
    """Takes a walk, and walks for some cycles; a walk can follow another without a gap, as in the real one."""

    def __init__(self, port, busy, other_busy, number_of, log, stall, seed):
        self.port, self.busy, self.other_busy, self.number_of, self.log = port, busy, other_busy, number_of, log
        self.stall, self.rng = stall, random.Random(seed)

    async def work(self, ctx):
        left = 0
        for cycle in itertools.count():
            ready = left <= 1 and self.rng.random() >= self.stall
            ctx.set(self.port.ready, ready)
            ctx.set(self.busy, left > 0)
            _, _, valid, payload, other = await ctx.tick().sample(self.port.valid, self.port.payload, self.other_busy)
            left = max(left - 1, 0) if left != 1 or ready else 0
            if valid and ready:
                assert not other, "runs of the other walker are still on their way"
                self.log.append(("walk", self.number_of(payload), cycle))
                left = self.rng.randint(1, 4)


def path(port, name, log, stall, seed):
    """Takes transfers."""
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
@pytest.mark.parametrize("spares", [False, True])
def test_every_part_arrives_once(spares, mode):
    dut = elaborated(Dispatch, TMAU_PRESETS["unit"].replace(spares_tables=spares))
    rng = random.Random(SEED)
    stall = STALL_MODES[mode]
    pause = stall["stall"]
    jobs = [
        job(number, store=rng.randrange(2), im2col=rng.random() < 0.3, quiet=rng.random() < 0.3)
        for number in range(1, 301)
    ]
    log = []

    async def source(ctx):
        # Two streams, each of which is offered jobs while the other has none.
        index = 0
        while index < len(jobs):
            count = rng.randint(1, 6)
            port, items = dut.jobs, jobs[index : index + count]
            if rng.randrange(2) and not any(item["im2col"] for item in items):
                port, items = dut.blocks, [block(store=item["store"], **item["transfer"]) for item in items]
            await send(ctx, port, items, idle=stall["idle"], seed=index)
            index += count
        await ctx.tick().repeat(10)

    strobes = []

    async def watch(ctx):
        async for _, _, strobe in ctx.tick().sample(dut.store_stb):
            strobes.append(strobe)

    tiles = Walker(dut.o.walks, dut.o.tile_busy, dut.o.pixel_busy, lambda p: p.origin, log, pause, 1)
    pixels = Walker(dut.o.pixel_walks, dut.o.pixel_busy, dut.o.tile_busy, lambda p: p.last, log, pause, 2)
    ports = (dut.o.walks, dut.o.pixel_walks, dut.o.load_transfers, dut.o.store_transfers)
    background = [
        tiles.work,
        pixels.work,
        path(dut.o.load_transfers, "load", log, pause, 3),
        path(dut.o.store_transfers, "store", log, pause, 4),
        watch,
        *(watch_stream(port) for port in ports),
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
    dut = elaborated(Dispatch, TMAU_PRESETS["unit"])

    async def run(ctx):
        for port in (dut.o.load_transfers, dut.o.store_transfers):
            ctx.set(port.ready, 1)
        cycles = await send(ctx, dut.jobs, [job(n, store=n % 2) for n in range(8)])
        assert cycles == list(range(1, 16, 2))

    async def walks(ctx):
        _, cycles = await receive(ctx, dut.o.walks, 8)
        assert cycles == list(range(0, 16, 2))

    simulate(dut, run, walks)


def test_moving_counts_what_is_not_quiet():
    dut = elaborated(Dispatch, TMAU_PRESETS["unit"])

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


def test_ends_of_all_setups_pass():
    dut = elaborated(Dispatch, TMAU_PRESETS["unit"])

    async def run(ctx):
        for number in range(3):
            ctx.set(dut.refused[number].payload, {"tag": 7 + number, "code": 3})
            ctx.set(dut.refused[number].valid, 1)
            assert ctx.get(dut.o.finished.valid) and not ctx.get(dut.refused[number].ready)
            ctx.set(dut.o.finished.ready, 1)
            assert ctx.get(dut.refused[number].ready)
            assert ctx.get(dut.o.finished.payload.tag) == 7 + number
            await ctx.tick()
            ctx.set(dut.o.finished.ready, 0)
            ctx.set(dut.refused[number].valid, 0)

    simulate(dut, run)


def test_a_prefetch_is_a_walk_only():
    """No path gets a transfer, and none is counted as moving; walks stay in order."""
    dut = elaborated(Dispatch, TMAU_PRESETS["unit"].replace(prefetches=True))
    jobs = [job(number) | {"prefetch": number % 2} for number in range(8)]

    async def source(ctx):
        await send(ctx, dut.jobs, jobs)
        await send(ctx, dut.blocks, [block(8) | {"prefetch": 1}])
        await ctx.tick()
        assert ctx.get(dut.moving) == 4

    async def transfers(ctx):
        assert [item.tag for item in (await receive(ctx, dut.o.load_transfers, 4, stall=0.5))[0]] == [0, 2, 4, 6]

    async def walks(ctx):
        assert [item.origin for item in (await receive(ctx, dut.o.walks, 9))[0]] == list(range(9))

    simulate(dut, source, transfers, walks)
