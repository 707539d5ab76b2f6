"""The end of commands: what is reported where, and that nothing is lost when all ends come together."""

import random

import pytest

from tilewright.hw.tmau.finish import Finisher
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Error
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_command_ends_once(mode):
    dut = elaborated(Finisher, TMAU_PRESETS["unit"])
    rng = random.Random(SEED)
    stall = STALL_MODES[mode]
    completions, stores = (
        [
            {
                "tag": tag + i,
                "signal": rng.random() < 0.6,
                "barrier": 8 * i,
                "bytes": 16 * (i + 1),
                "error": rng.random() < 0.2,
                "write": write and rng.getrandbits(1),
                "address": rng.getrandbits(32),
            }
            for i in range(100)
        ]
        for tag, write in ((0, 0), (500, 1))
    )
    finished = [
        {"code": rng.choice([0, Error.RANK]), "tag": 1000 + i, "field": i % 7, "address": rng.getrandbits(32)}
        for i in range(60)
    ]
    signalled = [c for c in completions if c["signal"] and not c["error"]]
    ended = []

    async def watch(ctx):
        async for _, _, done in ctx.tick().sample(dut.done):
            if done.valid:
                ended.append(done)

    async def completion_source(ctx):
        await send(ctx, dut.completions, completions, idle=stall["idle"], seed=1)
        await ctx.tick().repeat(2)

    async def store_source(ctx):
        await send(ctx, dut.stores, stores, idle=stall["idle"], seed=4)
        await ctx.tick().repeat(2)

    async def finished_source(ctx):
        await send(ctx, dut.finished, finished, idle=stall["idle"], seed=2)
        await ctx.tick().repeat(2)

    async def barrier(ctx):
        landed, _ = await receive(ctx, dut.landed, len(signalled), stall=stall["stall"], seed=3)
        assert [(item.barrier, item.bytes) for item in landed] == [(c["barrier"], c["bytes"]) for c in signalled]

    print(f"seed {SEED}")
    sources = (completion_source, store_source, finished_source)
    simulate(dut, *sources, barrier, background=[watch, watch_stream(dut.landed)])

    loads = [done for done in ended if done.record.tag < 500]
    stored = [done for done in ended if 500 <= done.record.tag < 1000]
    others = [done for done in ended if done.record.tag >= 1000]
    for done, completion in zip(loads + stored, completions + stores, strict=True):
        assert (done.record.tag, done.bytes) == (completion["tag"], completion["bytes"])
        assert done.stored == (done.record.tag >= 500)
        error = Error.WRITE if completion["write"] else Error.READ
        assert done.record.code == (error if completion["error"] else Error.NONE)
        if completion["error"]:
            assert (done.record.field, done.record.address) == (0, completion["address"])
    for done, record in zip(others, finished, strict=True):
        assert done.record == done.record.shape().const(record)
        assert (done.bytes, done.stored) == (0, 0)


@pytest.mark.parametrize(("name", "latency"), [("completions", 2), ("stores", 1), ("finished", 1)])
def test_done_comes_after_the_handshake(name, latency):
    dut = elaborated(Finisher, TMAU_PRESETS["unit"])
    ended = []

    async def watch(ctx):
        cycle = 0
        async for _, _, done in ctx.tick().sample(dut.done):
            if done.valid:
                ended.append((cycle, done.record.tag))
            cycle += 1

    async def check(ctx):
        taken = await send(ctx, getattr(dut, name), [{"tag": tag} for tag in range(20)])
        assert taken == list(range(taken[0], taken[0] + 40, 2)), "one every second cycle"
        await ctx.tick().repeat(3)
        assert ended == [(cycle + latency, tag) for tag, cycle in enumerate(taken)]

    simulate(dut, check, background=[watch])


def test_the_barrier_hears_a_cycle_later_and_holds_up_all_ends():
    dut = elaborated(Finisher, TMAU_PRESETS["unit"])

    async def check(ctx):
        for port, tag in ((dut.stores, 2), (dut.finished, 3)):
            ctx.set(port.payload, {"tag": tag})
        await send(ctx, dut.completions, [{"tag": 1, "signal": 1, "barrier": 8, "bytes": 32}])
        for port in (dut.stores, dut.finished):
            ctx.set(port.valid, 1)
        for _ in range(5):
            assert ctx.get(dut.landed.valid) and not ctx.get(dut.done.valid)
            assert not any(ctx.get(port.ready) for port in (dut.completions, dut.stores, dut.finished))
            await ctx.tick()
        ctx.set(dut.landed.ready, 1)
        await ctx.tick()
        assert ctx.get(dut.done.valid) and ctx.get(dut.done.record.tag) == 1 and not ctx.get(dut.landed.valid)

    simulate(dut, check)


def test_none_starves():
    dut = elaborated(Finisher, TMAU_PRESETS["unit"])
    tags = []

    async def watch(ctx):
        async for _, _, done in ctx.tick().sample(dut.done):
            if done.valid:
                tags.append(done.record.tag)

    async def check(ctx):
        for number, port in enumerate((dut.completions, dut.stores, dut.finished)):
            ctx.set(port.payload, {"tag": number})
            ctx.set(port.valid, 1)
        await ctx.tick().repeat(42)

    simulate(dut, check, background=[watch])
    # While one load after the other comes, the others take turns in the cycles in which the next one is accepted.
    assert sorted(tags[:2]) == [0, 2] and tags[:40] == tags[:4] * 10, "one a cycle"
    assert sorted(tags[:4]) == [0, 0, 1, 2]
