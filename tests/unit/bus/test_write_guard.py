"""The write guard: what lies in the window passes unchanged, what does not is refused in its turn."""

import random

import pytest

from tilewright.hw.bus.write_guard import WriteGuard
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

BUS_BYTES = 64
PAGE_WORDS = 4096 // BUS_BYTES
FIRST, LAST = 3, 5


def some_bursts(count, seed):
    """Bursts around the borders of the window, and the words of each."""
    rng = random.Random(seed)
    bursts = []
    for n in range(count):
        beats, empty = rng.choice([1, 2, 5]), rng.random() < 0.2
        word = PAGE_WORDS * rng.randrange(1, 8) + rng.choice([0, 10, PAGE_WORDS - beats])
        burst = {"word": word, "beats_minus_one": beats - 1, "empty": empty, "last": n % 3 == 0, "element": n % 16}
        words = [{"data": rng.getrandbits(512), "strobe": rng.getrandbits(64)} for _ in range(0 if empty else beats)]
        bursts.append((burst, words))
    return bursts


def passes(burst, confine):
    return not confine or FIRST <= burst["word"] // PAGE_WORDS <= LAST


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("confine", [False, True])
def test_bursts_and_words(mode, confine):
    bursts = some_bursts(80, seed=3)
    stalls = STALL_MODES[mode]
    dut = WriteGuard(20, BUS_BYTES)
    words = [word for burst, words in bursts if passes(burst, confine) for word in words]

    async def window(ctx):
        ctx.set(dut.confine, confine)
        ctx.set(dut.first, FIRST)
        ctx.set(dut.last, LAST)

    async def burst_source(ctx):
        await window(ctx)
        await send(ctx, dut.i.bursts, [burst for burst, _ in bursts], idle=stalls["idle"], seed=1)

    async def word_source(ctx):
        items = [word for _, words in bursts for word in words]
        await send(ctx, dut.i.words, items, idle=stalls["idle"], seed=2)

    async def burst_sink(ctx):
        passed, _ = await receive(ctx, dut.o.bursts, len(bursts), stall=stalls["stall"], seed=3)
        for out, (burst, _) in zip(passed, bursts, strict=True):
            refused = not burst["empty"] and not passes(burst, confine)
            expected = burst | {"empty": burst["empty"] or refused, "refused": refused}
            assert {name: getattr(out, name) for name in expected} == expected

    async def word_sink(ctx):
        passed, _ = await receive(ctx, dut.o.words, len(words), stall=stalls["stall"], seed=4)
        assert [{"data": word.data, "strobe": word.strobe} for word in passed] == words

    background = [watch_stream(dut.o.bursts, "bursts"), watch_stream(dut.o.words, "words")]
    simulate(dut, burst_source, word_source, burst_sink, word_sink, background=background)


def test_full_rate_and_latency():
    """A burst passes in its cycle, its words from the next cycle on."""
    dut = WriteGuard(20, BUS_BYTES)

    async def bursts(ctx):
        assert await send(ctx, dut.i.bursts, [{"word": n} for n in range(50)]) == list(range(50))

    async def words(ctx):
        assert await send(ctx, dut.i.words, [{"data": n} for n in range(50)]) == list(range(1, 51))

    async def sinks(ctx):
        ctx.set(dut.o.bursts.ready, 1)
        ctx.set(dut.o.words.ready, 1)

    simulate(dut, bursts, words, sinks)


def test_crossing_burst_is_refused():
    """No block makes one, and none gets out of the window."""
    dut = WriteGuard(20, BUS_BYTES)

    async def testbench(ctx):
        ctx.set(dut.i.bursts.payload, {"word": (LAST + 1) * PAGE_WORDS - 1, "beats_minus_one": 1})
        for confine in (0, 1):
            ctx.set(dut.confine, confine)
            ctx.set(dut.first, FIRST)
            ctx.set(dut.last, LAST)
            assert ctx.get(dut.o.bursts.payload.refused) == confine

    simulate(dut, testbench)


def test_responses_pass():
    dut = WriteGuard(20, BUS_BYTES)

    async def testbench(ctx):
        ctx.set(dut.o.responses.payload, {"error": 1, "last": 1, "address": 0x54321})
        ctx.set(dut.o.responses.valid, 1)
        response = ctx.get(dut.i.responses.payload)
        assert ctx.get(dut.i.responses.valid)
        assert (response.error, response.last, response.address) == (1, 1, 0x54321)
        assert not ctx.get(dut.o.responses.ready)
        ctx.set(dut.i.responses.ready, 1)
        assert ctx.get(dut.o.responses.ready)

    simulate(dut, testbench)
