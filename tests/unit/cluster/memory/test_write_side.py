"""Writes of several cores: no words of another burst come between those of one, and answers find their way."""

import random

import pytest

from tilewright.hw.cluster.memory.write_side import WriteSide
from tilewright.sim.pysim.axi_channel import axi_channel
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

CORES, MAX_BURST = 3, 4


def side():
    return elaborated(WriteSide, CORES, 16, 32, max_burst=MAX_BURST, words=2 * MAX_BURST, bursts=4)


def core_benches(port, core, count, stalls, *, skip=0):
    """Writes of a core: each word says whose it is, of which burst, and where in it."""
    rng = random.Random(core)
    requests = [{"addr": 0x1000 * core + 16 * n, "len": rng.randrange(MAX_BURST)} for n in range(count)]
    words = [{"data": r["addr"] + n, "last": n == r["len"]} for r in requests for n in range(r["len"] + 1)]

    async def ask(ctx):
        await send(ctx, axi_channel(port, "aw"), requests, idle=stalls["idle"], seed=core)

    async def give(ctx):
        await send(ctx, axi_channel(port, "w"), words[: len(words) - skip], idle=stalls["idle"], seed=core + 9)

    async def take(ctx):
        answers, _ = await receive(ctx, axi_channel(port, "b"), count - bool(skip), stall=stalls["stall"], seed=core)
        assert [answer.resp.value for answer in answers] == [core] * (count - bool(skip))

    return [ask, give, take]


def memory(dut, bursts, stall=0.0):
    """Takes bursts and words each at its own pace, and answers with the number of the core."""

    async def take_words(ctx):
        for number in range(bursts):
            beats, last = [], 0
            while not last:
                (beat,), _ = await receive(ctx, axi_channel(dut.axi, "w"), 1, stall=stall, seed=number + 7 * len(beats))
                beats.append(beat.data)
                last = beat.last
            while len(requests) <= number:
                await ctx.tick()
            request = requests[number]
            assert beats == [request.addr + n for n in range(request.len + 1)]
            assert request.id >> 2 == request.addr >> 12
            await send(ctx, axi_channel(dut.axi, "b"), [{"id": request.id, "resp": request.id >> 2}])

    requests = []

    async def take_bursts(ctx):
        for number in range(bursts):
            requests.extend((await receive(ctx, axi_channel(dut.axi, "aw"), 1, stall=stall, seed=number))[0])

    return [take_words, take_bursts]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_bursts_are_not_mixed(mode):
    dut, stalls = side(), STALL_MODES[mode]
    benches = [bench for core, port in enumerate(dut.ports) for bench in core_benches(port, core, 30, stalls)]
    rules = [watch_stream(axi_channel(dut.axi, name)) for name in ("aw", "w")]
    simulate(dut, *benches, *memory(dut, 30 * CORES, stalls["stall"]), background=rules)


def test_a_core_without_its_last_word_stops_nobody():
    dut, stalls = side(), STALL_MODES["none"]
    benches = [
        bench
        for core, port in enumerate(dut.ports)
        for bench in core_benches(port, core, 10, stalls, skip=int(core == 1))
    ]
    simulate(dut, *benches, *memory(dut, 29))


def test_words_leave_without_a_pause():
    """Single words and long bursts, a word a cycle in all."""
    dut, cycles = side(), []

    def stream(port, beats):
        async def ask(ctx):
            await send(ctx, axi_channel(port, "aw"), [{"len": beats - 1}] * 40)

        async def give(ctx):
            await send(ctx, axi_channel(port, "w"), [{"last": n % beats == beats - 1} for n in range(40 * beats)])

        return [ask, give]

    async def bus(ctx):
        ctx.set(dut.axi.awready, 1)
        await receive(ctx, axi_channel(dut.axi, "w"), 8)
        cycles.extend((await receive(ctx, axi_channel(dut.axi, "w"), 100))[1])

    async def answer(ctx):
        requests = ctx.tick().sample(dut.axi.awvalid, dut.axi.awid)
        async for _, _, valid, ident in requests:
            ctx.set(dut.axi.bvalid, valid)
            ctx.set(dut.axi.bid, ident)

    async def take(ctx):
        for port in dut.ports:
            ctx.set(port.bready, 1)

    background = [bench for port, beats in zip(dut.ports, (1, 4, 2), strict=True) for bench in stream(port, beats)]
    simulate(dut, bus, background=[answer, take, *background])
    assert cycles == list(range(100))


def test_latency():
    dut = side()
    port = dut.ports[1]

    async def testbench(ctx):
        ctx.set(port.awvalid, 1)
        ctx.set(port.wvalid, 1)
        ctx.set(port.wlast, 1)
        await ctx.tick()
        ctx.set(port.awvalid, 0)
        ctx.set(port.wvalid, 0)
        await ctx.tick().repeat(2)
        assert (ctx.get(dut.axi.awvalid), ctx.get(dut.axi.wvalid)) == (1, 0)
        await ctx.tick()
        assert ctx.get(dut.axi.wvalid)
        ctx.set(dut.axi.bvalid, 1)
        ctx.set(dut.axi.bid, 4)
        await ctx.tick().repeat(2)
        assert [ctx.get(each.bvalid) for each in dut.ports] == [0, 1, 0]

    simulate(dut, testbench)
