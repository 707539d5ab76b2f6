"""The LUT of a job: every byte of every lane, rows that come late, rate and latency, jobs in turn, resets."""

import random

import pytest
from amaranth.hdl import ResetInserter, Signal

from support.streams import pulse, transact
from tilewright.hw.conv.result.function import FunctionLookup
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 31
LANES = 2


def a_lut(seed):
    return random.Random(seed).randbytes(256)


def some_results(count, seed=SEED):
    """Every byte in every lane, in any order."""
    rng = random.Random(seed)
    lanes = [rng.sample(range(256), 256) for _ in range(LANES)]
    return [[lane[number] for lane in lanes] for number in range(count)]


async def begin(ctx, dut, function):
    ctx.set(dut.function, function)
    await pulse(ctx, dut.start)


async def load(ctx, dut, lut, rng=None):
    """Sends the rows, with pauses if there is a generator; what is not valid is anything."""
    for row in range(16):
        while rng and rng.random() < 0.7:
            ctx.set(dut.row, {"valid": 0, "bytes": list(rng.randbytes(16))})
            await ctx.tick()
        ctx.set(dut.row, {"valid": 1, "bytes": list(lut[16 * row :][:16])})
        await ctx.tick()
    ctx.set(dut.row, {"valid": 0, "bytes": [0xA5] * 16})


def check(results, payloads, lut):
    for result, payload in zip(results, payloads, strict=True):
        assert list(payload) == [lut[each] for each in result]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("late", [False, True])
def test_every_byte(mode, late):
    """Results that come before the last row wait for it."""
    dut, lut, results = elaborated(FunctionLookup, LANES), a_lut(1), some_results(256)

    async def bench(ctx):
        await begin(ctx, dut, 1)
        await load(ctx, dut, lut, random.Random(SEED) if late else None)

    async def no_result_before_the_lut(ctx):
        async for _, _, valid, rows in ctx.tick().sample(dut.o.valid, dut.rows):
            assert not valid or rows == 16

    payloads, _ = transact(dut, {"i": results}, {"o": len(results)}, mode, testbenches=[bench], starts={"i": 3},
                           background=[no_result_before_the_lut])  # fmt: skip
    check(results, payloads["o"], lut)


@pytest.mark.parametrize("function", [0, 1])
def test_full_rate_and_latency(function):
    dut, lut, results = elaborated(FunctionLookup, LANES), a_lut(2), some_results(60)

    async def bench(ctx):
        await begin(ctx, dut, function)
        await load(ctx, dut, lut)

    payloads, cycles = transact(dut, {"i": results}, {"o": 60}, testbenches=[bench], starts={"i": 30, "o": 30})
    assert cycles["o"] == [30 + function + number for number in range(60)]
    if function:
        check(results, payloads["o"], lut)
    else:
        assert [list(payload) for payload in payloads["o"]] == results


@pytest.mark.parametrize("mode", ["none", "both"])
def test_jobs_in_turn(mode):
    """With LUTs of their own and without; nothing of one is in the next."""
    dut, stalls = elaborated(FunctionLookup, LANES), STALL_MODES[mode]
    jobs = [(number, function, some_results(20, number)) for number, function in enumerate((1, 0, 1, 1, 0, 0, 1))]
    came = []

    async def bench(ctx):
        for number, function, results in jobs:
            await begin(ctx, dut, function)
            if function:
                await load(ctx, dut, a_lut(number))
            await send(ctx, dut.i, results, idle=stalls["idle"], seed=number)
            while len(came) <= number:
                await ctx.tick()

    async def sink(ctx):
        for number, _, results in jobs:
            payloads, _ = await receive(ctx, dut.o, len(results), stall=stalls["stall"], seed=number)
            came.append(payloads)

    simulate(dut, bench, sink, background=[watch_stream(dut.o, "o")])
    for (number, function, results), payloads in zip(jobs, came, strict=True):
        check(results, payloads, a_lut(number) if function else bytes(range(256)))


@pytest.mark.parametrize("rows", [1, 7, 16])
def test_reset(rows):
    """In the middle of a LUT, and with a result in the register: the next job has all of its own."""
    dut, reset, lut, results = FunctionLookup(LANES), Signal(), a_lut(5), some_results(256)

    async def bench(ctx):
        await begin(ctx, dut, 1)
        ctx.set(dut.i.valid, 1)
        ctx.set(dut.row, {"valid": 1, "bytes": [0x5A] * 16})
        await ctx.tick().repeat(rows)
        ctx.set(dut.row.valid, 0)
        await ctx.tick().repeat(3)
        ctx.set(dut.i.valid, 0)
        await pulse(ctx, reset)
        assert not ctx.get(dut.o.valid) and not ctx.get(dut.i.ready)
        await begin(ctx, dut, 1)
        await load(ctx, dut, lut)
        await send(ctx, dut.i, results[:1])
        (first,), _ = await receive(ctx, dut.o, 1)
        check(results[:1], [first], lut)

    simulate(ResetInserter(reset)(dut), bench)
