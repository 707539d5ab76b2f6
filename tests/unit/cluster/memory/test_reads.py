"""Reads: requests wait for space and for their page, and beats find their core."""

import random
from collections import defaultdict, deque

import pytest

from tilewright.hw.cluster.memory.reads import CoreReads, ReadSide
from tilewright.verify.pysim.axi import axi_channel
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, sender, set_together, watch_stream

WORDS = 16


def reads():
    return elaborated(CoreReads, 16, 32, WORDS)


def some_requests(count, ids=(0, 1, 3)):
    rng = random.Random(count)
    return [{"id": rng.choice(ids), "addr": 64 * n, "len": rng.randrange(8), "burst": 1} for n in range(count)]


def grant_all(dut, pages):
    """A background testbench that grants every page, some time after it has been taken."""

    async def grant(ctx):
        ctx.set(dut.pages.ready, 1)
        async for _, _, valid, page in ctx.tick().sample(dut.pages.valid, dut.pages.payload):
            ctx.set(dut.granted, valid)
            ctx.set(dut.pages.ready, not valid)
            if valid:
                pages.append(page)

    return grant


@pytest.mark.parametrize("mode", STALL_MODES)
def test_requests_and_beats_pass(mode):
    dut, stalls, requests, pages = reads(), STALL_MODES[mode], some_requests(40, ids=(0, 1, 2, 3)), []
    taken = []

    async def bus(ctx):
        for number, request in enumerate(requests):
            (item,), _ = await receive(ctx, dut.requests, 1, stall=stalls["stall"], seed=number)
            assert (item.id, item.addr, item.len) == (request["id"], request["addr"], request["len"])
            beats = [{"id": item.id, "data": item.addr + n, "last": n == item.len} for n in range(item.len + 1)]
            await send(ctx, dut.beats, beats, idle=stalls["idle"], seed=number)

    async def take(ctx):
        count = sum(request["len"] + 1 for request in requests)
        beats, _ = await receive(ctx, axi_channel(dut.axi, "r"), count, stall=stalls["stall"])
        taken.extend((beat.id, beat.data, beat.last) for beat in beats)

    rules = [watch_stream(dut.requests), watch_stream(axi_channel(dut.axi, "r")), watch_stream(dut.pages)]
    simulate(
        dut,
        sender(axi_channel(dut.axi, "ar"), requests, idle=stalls["idle"]),
        bus,
        take,
        background=[*rules, grant_all(dut, pages)],
    )
    assert taken == [(r["id"], r["addr"] + n, n == r["len"]) for r in requests for n in range(r["len"] + 1)]
    assert pages == [request["addr"] >> 12 for request in requests if request["id"] == 2]


def test_requests_wait_for_space():
    """A core that takes no beat has as many asked for as it has space; each that it takes frees a place."""
    dut, cycles = reads(), []

    async def bus(ctx):
        await receive(ctx, dut.requests, 2)
        for _ in range(14):
            ctx.set(dut.beats.valid, 1)
            await ctx.tick()
        ctx.set(dut.beats.valid, 0)
        await ctx.tick().repeat(20)
        assert not ctx.get(dut.requests.valid)
        await receive(ctx, axi_channel(dut.axi, "r"), 5)  # two places are free already
        cycles.extend((await receive(ctx, dut.requests, 1))[1])

    simulate(dut, sender(axi_channel(dut.axi, "ar"), [{"len": 6}] * 3), bus)
    assert cycles == [1]


def test_requests_pass_one_a_cycle():
    dut, cycles = reads(), []

    async def bus(ctx):
        cycles.extend((await receive(ctx, dut.requests, WORDS))[1])

    simulate(dut, sender(axi_channel(dut.axi, "ar"), [{"len": 0}] * WORDS), bus)
    assert cycles == list(range(2, 2 + WORDS))


def test_reductions_ask_once_they_have_space():
    dut, pages = reads(), []

    async def bus(ctx):
        await receive(ctx, dut.requests, 1)
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.pages.valid)
        for number in range(16):
            ctx.set(dut.beats.valid, 1)
            ctx.set(dut.beats.payload.last, number == 15)
            await ctx.tick()
        ctx.set(dut.beats.valid, 0)
        await receive(ctx, axi_channel(dut.axi, "r"), 8)
        (page,), _ = await receive(ctx, dut.pages, 1)
        pages.append(page)
        await ctx.tick().repeat(5)
        assert not ctx.get(dut.requests.valid)
        assert not ctx.get(dut.pages.valid)
        ctx.set(dut.granted, 1)
        await ctx.tick()
        ctx.set(dut.granted, 0)
        await ctx.tick()
        assert ctx.get(dut.requests.valid)

    simulate(dut, sender(axi_channel(dut.axi, "ar"), [{"len": 15, "id": 0}, {"len": 7, "id": 2, "addr": 0x3000}]), bus)
    assert pages == [3]


def test_failed_reads_of_reductions():
    dut, failed = reads(), []
    beats = [(2, 0, 0), (0, 2, 1), (2, 2, 0), (2, 0, 1), (2, 0, 1), (1, 3, 1), (2, 3, 1)]

    async def bus(ctx):
        ctx.set(dut.axi.rready, 1)
        ctx.set(dut.beats.valid, 1)
        for ident, response, last in beats:
            ctx.set(dut.beats.payload, {"id": ident, "resp": response, "last": last})
            failed.append(ctx.get(dut.failed))
            await ctx.tick()

    simulate(dut, bus)
    assert failed == [0, 0, 0, 1, 0, 0, 1]


def test_without_reductions_no_id_asks():
    dut, requests = CoreReads(16, 32, WORDS, reductions=False), some_requests(2, ids=(2,))

    async def bus(ctx):
        await receive(ctx, dut.requests, 2)
        assert not ctx.get(dut.pages.valid)

    simulate(dut, sender(axi_channel(dut.axi, "ar"), requests), bus)


CORES, READ_SIDE_WORDS, MAX_BURST = 3, 16, 4


def side():
    return elaborated(ReadSide, CORES, 16, 32, max_burst=MAX_BURST, words=READ_SIDE_WORDS, reductions=False)


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
    assert READ_SIDE_WORDS - 2 * MAX_BURST < sum(beats) <= READ_SIDE_WORDS


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
