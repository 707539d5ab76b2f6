"""The request generator asks for each bus word of neighbouring runs once, and describes every run."""

import random

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.requests import RequestGenerator
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
PARAMS = TMAU_PRESETS["default"]
BUS = PARAMS.bus_bytes


def random_runs(rng, commands):
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
    dut = elaborated(RequestGenerator, PARAMS)
    rng = random.Random(SEED)
    runs = list(random_runs(rng, 80))
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
            _, _, valid, word, beyond = await ctx.tick().sample(port.valid, port.p.word, port.p.beyond)
            if ready and valid:
                got.append((word, beyond + 1))
        assert got == requests

    print(f"seed {SEED}")
    watchers = [watch_stream(dut.rows, "rows"), watch_stream(dut.requests, "requests")]
    simulate(dut, source, row_sink, request_sink, background=watchers)
    if mode == "none":
        assert taken["runs"] == taken["rows"] == list(range(len(runs))), "a run a cycle, combinational"


def test_no_request_leaves_before_its_row():
    dut = elaborated(RequestGenerator, PARAMS)
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
