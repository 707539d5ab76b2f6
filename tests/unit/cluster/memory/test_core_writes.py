"""The writes of one core: a burst leaves when it is whole, and when there is space for its answer."""

import random

import pytest

from tilewright.hw.cluster.memory.core_writes import CoreWrites
from tilewright.sim.pysim.axi_channel import axi_channel
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

WORDS, BURSTS = 16, 4


def writes():
    return elaborated(CoreWrites, 16, 32, WORDS, BURSTS)


@pytest.mark.parametrize("mode", STALL_MODES)
def test_bursts_leave_whole(mode):
    dut, stalls, rng = writes(), STALL_MODES[mode], random.Random(1)
    requests = [{"id": 0, "addr": 64 * n, "len": rng.randrange(8)} for n in range(40)]
    beats = [{"data": r["addr"] + n, "strb": 15, "last": n == r["len"]} for r in requests for n in range(r["len"] + 1)]
    answers = [{"id": 0, "resp": rng.randrange(4)} for _ in requests]

    async def ask(ctx):
        await send(ctx, axi_channel(dut.axi, "aw"), requests, idle=stalls["idle"])

    async def give(ctx):
        await send(ctx, axi_channel(dut.axi, "w"), beats, idle=stalls["idle"], seed=3)

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
    simulate(dut, ask, give, bus, take, background=rules)


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

    async def ask(ctx):
        await send(ctx, axi_channel(dut.axi, "aw"), [{}] * 6)

    async def give(ctx):
        await send(ctx, axi_channel(dut.axi, "w"), [{"last": 1}] * 6)

    async def bus(ctx):
        _, cycles = await receive(ctx, dut.requests, BURSTS)
        assert cycles == list(range(2, 2 + BURSTS)), "one a cycle"
        await send(ctx, dut.answers, [{}] * BURSTS)
        await ctx.tick().repeat(10)
        assert not ctx.get(dut.requests.valid)
        await receive(ctx, axi_channel(dut.axi, "b"), 2)
        await receive(ctx, dut.requests, 2)

    simulate(dut, ask, give, bus)
