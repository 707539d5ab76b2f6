"""Every run reaches its path, in order, whichever walker it comes from."""

import random

import pytest

from tilewright.hw.tmau.layouts import BoxRunLayout, StoreRunLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.requests import PrefetchLines, RequestGenerator, RunRouter
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]


def random_runs(rng, count):
    layout = BoxRunLayout(PARAMS)
    return [layout.from_bits(rng.getrandbits(layout.as_shape().width)) for _ in range(count)]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_run_reaches_its_path(mode):
    dut = elaborated(RunRouter, PARAMS)
    rng = random.Random(SEED)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    # Walks: one walker after the other, each with some runs.
    walks = [(rng.choice([dut.tiles, dut.pixels]), random_runs(rng, rng.randint(1, 12))) for _ in range(30)]
    runs = [run for _, part in walks for run in part]
    loads, stores = ([run for run in runs if run.store == store] for store in (0, 1))
    came = {}

    async def source(ctx):
        for number, (port, part) in enumerate(walks):
            await send(ctx, port, part, idle=idle, seed=number)

    def sink(port, name, count):
        async def take(ctx):
            came[name], _ = await receive(ctx, port, count, stall=stall, seed=len(name))

        return take

    sinks = sink(dut.loads, "loads", len(loads)), sink(dut.stores, "stores", len(stores))
    print(f"seed {SEED}")
    simulate(dut, source, *sinks, background=[watch_stream(dut.loads, "loads"), watch_stream(dut.stores, "stores")])
    assert came["loads"] == loads
    kept = [name for name, _ in StoreRunLayout(PARAMS)]
    assert [{name: run[name] for name in kept} for run in came["stores"]] == [
        {name: run[name] for name in kept} for run in stores
    ]


def test_one_a_cycle_one_cycle_later():
    dut = elaborated(RunRouter, PARAMS)

    async def run(ctx):
        for port in (dut.tiles, dut.pixels):
            assert await send(ctx, port, [{"store": 1, "skip": number % 2} for number in range(6)]) == list(range(6))

    async def take(ctx):
        _, cycles = await receive(ctx, dut.stores, 12)
        assert cycles == list(range(1, 13))

    simulate(dut, run, take)


def test_ready_does_not_wait_for_what_follows():
    dut = elaborated(RunRouter, PARAMS)

    async def run(ctx):
        assert await send(ctx, dut.tiles, [{"store": 0}] * 2) == [0, 1], "neither path is ready"
        ctx.set(dut.loads.ready, 1)
        assert not ctx.get(dut.tiles.ready)

    simulate(dut, run)


def test_runs_of_prefetches_have_a_port_of_their_own():
    dut, came = elaborated(RunRouter, PARAMS.replace(prefetches=True)), {}
    runs = [{"address": number, "prefetch": number % 3 == 0, "store": number % 3 == 1} for number in range(30)]

    async def source(ctx):
        await send(ctx, dut.tiles, runs)

    def sink(name):
        async def take(ctx):
            port = getattr(dut, name)
            came[name] = [item.address for item in (await receive(ctx, port, 10, stall=0.5, seed=len(name)))[0]]
            await ctx.tick().repeat(30)
            assert not ctx.get(port.valid)

        return take

    simulate(dut, source, *(sink(name) for name in ("prefetches", "stores", "loads")))
    assert came == {name: list(range(first, 30, 3)) for first, name in enumerate(("prefetches", "stores", "loads"))}


PREFETCH_LINES_SEED = 20261124
PREFETCH_LINES_PARAMS = TMAU_PRESETS["unit"].replace(prefetches=True)


def prefetch_lines_random_runs(rng, transfers):
    for _ in range(transfers):
        count, address = rng.randint(1, 8), rng.getrandbits(31)
        pitch = rng.choice([16, 64, 100, 128, 256, 4096])
        for number in range(count):
            size = rng.choice([1, 16, 64, 128, 200, 1000])
            flags = {"inside": rng.random() < 0.8, "last": number == count - 1, "folded": rng.randrange(2)}
            yield {"address": address, "bytes": size} | flags
            address += pitch


def lines_of(runs):
    named = []
    previous = None
    for run in runs:
        if run["inside"]:
            lines = range(run["address"] >> 7, (run["address"] + run["bytes"] - 1 >> 7) + 1)
            named += [line for line in lines if line != previous or line != lines[0]]
            previous = lines[-1]
        if run["last"]:
            previous = None
    return named


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_line_once(mode):
    dut, stalls, runs, came = elaborated(PrefetchLines, PREFETCH_LINES_PARAMS), STALL_MODES[mode], None, []
    runs = list(prefetch_lines_random_runs(random.Random(PREFETCH_LINES_SEED), 40))
    expected = lines_of(runs)

    async def source(ctx):
        await send(ctx, dut.i, runs, idle=stalls["idle"])

    async def sink(ctx):
        came.extend((await receive(ctx, dut.o, len(expected), stall=stalls["stall"]))[0])
        await ctx.tick()
        assert not ctx.get(dut.o.valid)

    print(f"seed {PREFETCH_LINES_SEED}")
    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    assert came == expected


def test_one_line_a_cycle_behind_one_for_each_run():
    dut, cycles = elaborated(PrefetchLines, PREFETCH_LINES_PARAMS), []

    async def source(ctx):
        await send(ctx, dut.i, [{"address": 256, "bytes": 512, "inside": 1, "last": 1}] * 2)

    async def sink(ctx):
        cycles.extend((await receive(ctx, dut.o, 8))[1])

    simulate(dut, source, sink)
    assert cycles == [1, 2, 3, 4, 6, 7, 8, 9]


REQUESTS_PARAMS = TMAU_PRESETS["default"]
BUS = REQUESTS_PARAMS.bus_bytes


def requests_random_runs(rng, commands):
    for _ in range(commands):
        count = rng.randint(1, 12)
        address = rng.choice([1, 2, 16]) * rng.getrandbits(30)
        pitch = rng.choice([16, 32, 48, 64, 80, 128, 4096, 0, 1, 2, 37])
        size = rng.choice([1, 2, 16, 32, 48, 63, 64, 200])
        loop = rng.random() < 0.1
        for i in range(count):
            flags = {"inside": rng.random() < 0.8, "skip": rng.getrandbits(1), "last": i == count - 1, "loop": loop}
            yield {"address": address, "bytes": size, "folded": rng.getrandbits(1)} | flags
            address += pitch


def expected(runs):
    """Rows and requests from the rule of docs/tmau.md, "Memory side"."""
    rows, requests, previous = [], [], None
    for run in runs:
        words = list(range(run["address"] // BUS, (run["address"] + run["bytes"] - 1) // BUS + 1))
        shared = run["inside"] and words[0] == previous
        offset = run["address"] % BUS if run["inside"] else None
        rows.append((run["inside"], offset, shared, run["skip"], run["last"], run["folded"] and run["bytes"]))
        if run["inside"] and not run["loop"]:
            previous = words[-1]
            if words[shared:]:
                requests.append((words[shared], len(words[shared:])))
        if run["last"]:
            previous = None
    return rows, requests


@pytest.mark.parametrize("mode", STALL_MODES)
def test_rows_and_requests(mode):
    dut = elaborated(RequestGenerator, REQUESTS_PARAMS)
    rng = random.Random(SEED)
    runs = list(requests_random_runs(rng, 80))
    rows, requests = expected(runs)
    stall = STALL_MODES[mode]
    taken = {}

    async def source(ctx):
        taken["runs"] = await send(ctx, dut.i, runs, idle=stall["idle"], seed=1)

    async def row_sink(ctx):
        got, taken["rows"] = await receive(ctx, dut.rows, len(rows), stall=stall["stall"], seed=2)
        for row, (inside, offset, shared, skip, last, folded) in zip(got, rows, strict=True):
            assert row.folded * row.bytes == folded
            assert (row.inside, row.shared, row.skip, row.last) == (inside, shared, skip, last)
            assert not inside or row.offset == offset

    async def request_sink(ctx):
        # Ready whether there is a request or not, as BurstSplitter is: runs that have none wait for it too.
        stalls, got, port = random.Random(3), [], dut.requests
        while "runs" not in taken:
            ready = stalls.random() >= stall["stall"]
            ctx.set(port.ready, ready)
            _, _, valid, word, beyond = await ctx.tick().sample(port.valid, port.payload.word, port.payload.beyond)
            if ready and valid:
                got.append((word, beyond + 1))
        assert got == requests

    print(f"seed {SEED}")
    watchers = [watch_stream(dut.rows, "rows"), watch_stream(dut.requests, "requests")]
    simulate(dut, source, row_sink, request_sink, background=watchers)
    if mode == "none":
        assert taken["runs"] == taken["rows"] == list(range(len(runs))), "a run a cycle, combinational"


def test_no_request_leaves_before_its_row():
    dut = elaborated(RequestGenerator, REQUESTS_PARAMS)
    run = {"address": 0, "bytes": 64, "inside": 1, "last": 1}

    async def check(ctx):
        ctx.set(dut.i.payload, run)
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.requests.ready, 1)
        for _ in range(5):
            assert not ctx.get(dut.requests.valid) and not ctx.get(dut.i.ready)
            await ctx.tick()
        ctx.set(dut.rows.ready, 1)
        assert ctx.get(dut.requests.valid) and ctx.get(dut.i.ready)
        await ctx.tick()

    simulate(dut, check)
