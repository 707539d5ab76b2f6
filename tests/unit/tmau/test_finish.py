"""The end of commands: what is reported where, and that nothing is lost when both ends come together."""

import random

import pytest

from tilewright.golden.spec import Error
from tilewright.hw.tmau.finish import Finisher
from tilewright.hw.tmau.params import PRESETS
from tilewright.sim.pysim import simulate
from tilewright.sim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_command_ends_once(mode):
    dut = Finisher(PRESETS["unit"])
    rng = random.Random(SEED)
    stall = STALL_MODES[mode]
    completions = [
        {
            "tag": i,
            "signal": rng.random() < 0.6,
            "barrier": 8 * i,
            "bytes": 16 * (i + 1),
            "error": rng.random() < 0.2,
            "address": rng.getrandbits(32),
        }
        for i in range(100)
    ]
    finished = [
        {"code": rng.choice([0, Error.RANK]), "tag": 1000 + i, "field": i % 7, "value": rng.getrandbits(64)}
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

    async def finished_source(ctx):
        await send(ctx, dut.finished, finished, idle=stall["idle"], seed=2)
        await ctx.tick().repeat(2)

    async def barrier(ctx):
        landed, _ = await receive(ctx, dut.landed, len(signalled), stall=stall["stall"], seed=3)
        assert [(item.barrier, item.bytes) for item in landed] == [(c["barrier"], c["bytes"]) for c in signalled]

    print(f"seed {SEED}")
    simulate(dut, completion_source, finished_source, barrier, background=[watch, watch_stream(dut.landed)])

    loads = [done for done in ended if done.record.tag < 1000]
    others = [done for done in ended if done.record.tag >= 1000]
    assert len(loads) == len(completions) and len(others) == len(finished)
    for done, completion in zip(loads, completions, strict=True):
        assert (done.record.tag, done.bytes) == (completion["tag"], completion["bytes"])
        assert done.record.code == (Error.READ if completion["error"] else Error.NONE)
        if completion["error"]:
            assert (done.record.field, done.record.value) == (0, completion["address"])
    for done, record in zip(others, finished, strict=True):
        expected = (record["code"], record["tag"], record["field"], record["value"], 0)
        assert (done.record.code, done.record.tag, done.record.field, done.record.value, done.bytes) == expected


def test_done_comes_one_cycle_after_the_handshake():
    dut = Finisher(PRESETS["unit"])

    async def check(ctx):
        ctx.set(dut.completions.payload, {"tag": 3})
        ctx.set(dut.completions.valid, 1)
        assert ctx.get(dut.completions.ready) and not ctx.get(dut.done.valid)
        await ctx.tick()
        ctx.set(dut.completions.valid, 0)
        assert ctx.get(dut.done.valid) and ctx.get(dut.done.record.tag) == 3
        await ctx.tick()
        assert not ctx.get(dut.done.valid)

    simulate(dut, check)
