"""Reads of several cores: beats that come in any order of IDs find their way, and the bus never waits for a core."""

import random
from collections import defaultdict, deque

import pytest

from tilewright.hw.cluster.memory.read_side import ReadSide
from tilewright.sim.pysim.axi_channel import axi_channel
from tilewright.sim.pysim.ports import set_together
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

CORES, WORDS, MAX_BURST = 3, 16, 4


def side():
    return elaborated(ReadSide, CORES, 16, 32, max_burst=MAX_BURST, words=WORDS, reductions=False)


def mixing_memory(axi, log, stall):
    """Answers IDs in any order, beat by beat; each beat says which one of its request it is."""

    async def serve(ctx):
        rng, pending = random.Random(9), defaultdict(deque)
        members = (axi.arvalid, axi.arready, axi.arid, axi.araddr, axi.arlen, axi.rvalid, axi.rready)
        ticks = aiter(ctx.tick().sample(*members))
        while True:
            ready = [ident for ident, beats in pending.items() if beats]
            inputs = [(axi.arready, rng.random() >= stall), (axi.rvalid, 0)]
            if ready and rng.random() >= stall:
                ident = rng.choice(ready)
                data, last = pending[ident].popleft()
                inputs[1:] = [(axi.rvalid, 1), (axi.rid, ident), (axi.rdata, data), (axi.rlast, last)]
            set_together(ctx, *inputs)
            _, _, arvalid, arready, arid, address, beats, rvalid, rready = await anext(ticks)
            assert rready or not rvalid
            log.append((arid, beats + 1) if arvalid and arready else None)
            if arvalid and arready:
                pending[arid].extend((address + n, n == beats) for n in range(beats + 1))

    return serve


@pytest.mark.parametrize("mode", STALL_MODES)
def test_beats_find_their_way(mode):
    dut, stalls, log, benches = side(), STALL_MODES[mode], [], []
    for core, port in enumerate(dut.ports):
        rng = random.Random(core)
        requests = [
            {"id": rng.randrange(4), "addr": 0x1000 * core + 64 * n, "len": rng.randrange(MAX_BURST)} for n in range(40)
        ]
        benches += [asking(port, requests, stalls, core), taking(port, requests, stalls, core)]
    rules = [watch_stream(axi_channel(port, "r")) for port in dut.ports] + [watch_stream(axi_channel(dut.axi, "ar"))]
    simulate(dut, *benches, background=[mixing_memory(dut.axi, log, stalls["stall"]), *rules])
    assert sum(entry is not None for entry in log) == 40 * CORES


def asking(port, requests, stalls, seed):
    return lambda ctx: send(ctx, axi_channel(port, "ar"), requests, idle=stalls["idle"], seed=seed)


def taking(port, requests, stalls, seed):
    async def take(ctx):
        count = sum(request["len"] + 1 for request in requests)
        beats, _ = await receive(ctx, axi_channel(port, "r"), count, stall=stalls["stall"], seed=seed)
        for ident in range(4):
            expected = [r["addr"] + n for r in requests if r["id"] == ident for n in range(r["len"] + 1)]
            assert [beat.data for beat in beats if beat.id == ident] == expected

    return take


def test_no_more_is_under_way_than_one_core_may_have():
    """Memory answers nothing: all cores together get as many beats as their requests may have under way."""
    dut, beats = side(), []

    async def memory(ctx):
        ctx.set(dut.axi.arready, 1)
        async for _, _, valid, length in ctx.tick().sample(dut.axi.arvalid, dut.axi.arlen):
            beats.extend([length + 1] * valid)

    async def wait(ctx):
        await ctx.tick().repeat(60)

    stalls = STALL_MODES["none"]
    benches = [asking(port, [{"len": 2}] * 20, stalls, 0) for port in dut.ports]
    simulate(dut, wait, background=[memory, *benches])
    assert WORDS - 2 * MAX_BURST < sum(beats) <= WORDS


def test_latency():
    dut = side()
    axi, port = dut.axi, dut.ports[2]

    async def testbench(ctx):
        ctx.set(port.arvalid, 1)
        await ctx.tick()
        ctx.set(port.arvalid, 0)
        await ctx.tick().repeat(2)
        assert (ctx.get(axi.arvalid), ctx.get(axi.arid)) == (1, 8)
        ctx.set(axi.rvalid, 1)
        ctx.set(axi.rid, 8)
        await ctx.tick().repeat(2)
        assert [ctx.get(each.rvalid) for each in dut.ports] == [0, 0, 1]

    simulate(dut, testbench)
