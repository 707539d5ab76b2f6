"""Writes: bursts leave whole, words of several cores do not mix, and answers have space."""

import random

import pytest

from tilewright.hw.cluster.memory.writes import CoreWrites, WriteSide
from tilewright.verify.pysim.axi import axi_channel
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, sender, watch_stream

WORDS, BURSTS = 16, 4


def writes():
    return elaborated(CoreWrites, 16, 32, WORDS, BURSTS)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_bursts_leave_whole(mode):
    dut, stalls, rng = writes(), STALL_MODES[mode], random.Random(1)
    requests = [{"id": 0, "addr": 64 * n, "len": rng.randrange(8)} for n in range(40)]
    beats = [{"data": r["addr"] + n, "strb": 15, "last": n == r["len"]} for r in requests for n in range(r["len"] + 1)]
    answers = [{"id": 0, "resp": rng.randrange(4)} for _ in requests]

    async def bus(ctx):
        for number, request in enumerate(requests):
            (item,), _ = await receive(ctx, dut.requests, 1, stall=stalls["stall"], seed=number)
            assert (item.addr, item.len) == (request["addr"], request["len"])
            words, cycles = await receive(ctx, dut.words, item.len + 1)
            assert cycles == list(range(item.len + 1)), "they are all there"
            assert [(word.data, word.last) for word in words] == [
                (item.addr + n, n == item.len) for n in range(item.len + 1)
            ]
            await send(ctx, dut.answers, [answers[number]], idle=stalls["idle"], seed=number)

    async def take(ctx):
        got, _ = await receive(ctx, axi_channel(dut.axi, "b"), len(requests), stall=stalls["stall"])
        assert [answer.resp.value for answer in got] == [answer["resp"] for answer in answers]

    rules = [watch_stream(stream) for stream in (dut.requests, dut.words, axi_channel(dut.axi, "b"))]
    simulate(
        dut,
        sender(axi_channel(dut.axi, "aw"), requests, idle=stalls["idle"]),
        sender(axi_channel(dut.axi, "w"), beats, idle=stalls["idle"], seed=3),
        bus,
        take,
        background=rules,
    )


def test_words_may_come_first():
    dut, cycles = writes(), []

    async def testbench(ctx):
        await send(ctx, axi_channel(dut.axi, "w"), [{"last": n == 3} for n in range(4)])
        assert not ctx.get(dut.requests.valid)
        await send(ctx, axi_channel(dut.axi, "aw"), [{"len": 3}])
        cycles.extend((await receive(ctx, dut.requests, 1))[1])

    simulate(dut, testbench)
    assert cycles == [1]


def test_a_core_that_takes_no_answer_stops():
    dut = writes()

    async def bus(ctx):
        _, cycles = await receive(ctx, dut.requests, BURSTS)
        assert cycles == list(range(2, 2 + BURSTS)), "one a cycle"
        await send(ctx, dut.answers, [{}] * BURSTS)
        await ctx.tick().repeat(10)
        assert not ctx.get(dut.requests.valid)
        await receive(ctx, axi_channel(dut.axi, "b"), 2)
        await receive(ctx, dut.requests, 2)

    simulate(
        dut, sender(axi_channel(dut.axi, "aw"), [{}] * 6), sender(axi_channel(dut.axi, "w"), [{"last": 1}] * 6), bus
    )


CORES, MAX_BURST = 3, 4


def side():
    return elaborated(WriteSide, CORES, 16, 32, max_burst=MAX_BURST, words=2 * MAX_BURST, bursts=4)


def core_benches(port, core, count, stalls, *, skip=0):
    """Writes of a core: each word says whose it is, of which burst, and where in it."""
    rng = random.Random(core)
    requests = [{"addr": 0x1000 * core + 16 * n, "len": rng.randrange(MAX_BURST)} for n in range(count)]
    words = [{"data": r["addr"] + n, "last": n == r["len"]} for r in requests for n in range(r["len"] + 1)]

    async def take(ctx):
        answers, _ = await receive(ctx, axi_channel(port, "b"), count - bool(skip), stall=stalls["stall"], seed=core)
        assert [answer.resp.value for answer in answers] == [core] * (count - bool(skip))

    return [
        sender(axi_channel(port, "aw"), requests, idle=stalls["idle"], seed=core),
        sender(axi_channel(port, "w"), words[: len(words) - skip], idle=stalls["idle"], seed=core + 9),
        take,
    ]


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
        return [
            sender(axi_channel(port, "aw"), [{"len": beats - 1}] * 40),
            sender(axi_channel(port, "w"), [{"last": n % beats == beats - 1} for n in range(40 * beats)]),
        ]

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
