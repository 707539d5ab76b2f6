"""Write generator: the bursts of random runs hold their words, in every stall mode; ends; rate."""

import random

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.bursts import StoreFinisher, WriteGenerator
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 9


def random_load(bus_bytes, max_burst, count):
    """Runs, and their bursts: (first word, beats, last); beats 0 for an empty one."""
    rng = random.Random(SEED)
    runs, expected = [], []
    for _ in range(count):
        address, size = rng.randrange(1 << 20), rng.choice([1, 16, rng.randrange(1, 600)])
        last, loop = rng.random() < 0.4, rng.random() < 0.2
        empty = last and rng.random() < 0.4
        context = {"loop": loop, "reduction": 5, "element": 9, "tag": 0x8FFF}
        runs.append(
            {"address": address, "bytes": size, "empty": empty, "last": last, "context": context},
        )
        if loop:
            continue
        if empty:
            expected.append((None, 0, 1))
            continue
        word, end = address // bus_bytes, (address + size - 1) // bus_bytes + 1
        while word < end:
            page = 4096 // bus_bytes
            beats = min(max_burst, end - word, page - word % page)
            expected.append((word, beats, int(last and word + beats == end)))
            word += beats
    return runs, expected


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("bus_bytes", [16, 64])
def test_bursts(bus_bytes, mode):
    params = TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes, processors=3)
    dut = elaborated(WriteGenerator, params)
    runs, expected = random_load(bus_bytes, params.max_burst, 150)

    async def source(ctx):
        await send(ctx, dut.i, runs, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def sink(ctx):
        bursts, cycles = await receive(ctx, dut.bursts, len(expected), stall=STALL_MODES[mode]["stall"], seed=SEED)
        for burst, (word, beats, last) in zip(bursts, expected, strict=True):
            assert (burst.empty, burst.last) == (beats == 0, last)
            assert (burst.reduction, burst.element, burst.processor) == (5, 9, 2)
            assert burst.empty or (burst.word, burst.beats_minus_one + 1) == (word, beats)
        if mode == "none":
            loops = sum(run["context"]["loop"] for run in runs)
            assert cycles[0] >= 1 and cycles[-1] <= len(expected) + loops

    simulate(dut, source, sink, background=[watch_stream(dut.bursts)])


FINISH_SEED = 3


def finish_random_load(count):
    """Ends, responses, and completions: (tag, bytes, error or None), where an error is (write, address)."""
    rng = random.Random(FINISH_SEED)
    ends, responses, expected, errors = [], [], [], []
    for tag in range(count):
        loop, quiet = rng.random() < 0.3, rng.random() < 0.4 and tag != count - 1
        unread = not loop and rng.random() < 0.2
        end = {"tag": tag, "bytes": rng.randrange(4096), "loop": loop, "quiet": quiet, "error": unread, "address": tag}
        ends.append(end)
        if loop:
            continue
        if unread:
            errors.append((0, tag))
        number = rng.randrange(1, 4)
        for index in range(number):
            response = {"error": rng.random() < 0.2, "last": index == number - 1, "address": rng.getrandbits(32)}
            responses.append(response)
            if response["error"]:
                errors.append((1, response["address"]))
        if not quiet:
            # The first one, but those of reading before those of writing.
            expected.append((tag, end["bytes"], min(errors, key=lambda error: error[0], default=None)))
            errors = []
    return ends, responses, expected


@pytest.mark.parametrize("mode", STALL_MODES)
def test_completions(mode):
    dut = elaborated(StoreFinisher, TMAU_PRESETS["unit"])
    ends, responses, expected = finish_random_load(150)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    done = []

    async def send_ends(ctx):
        await send(ctx, dut.ends, ends, idle=idle, seed=FINISH_SEED)

    async def send_responses(ctx):
        await send(ctx, dut.responses, responses, idle=idle, seed=FINISH_SEED + 1)

    async def sink(ctx):
        came, _ = await receive(ctx, dut.completions, len(expected), stall=stall, seed=FINISH_SEED)
        for completion, (tag, count, error) in zip(came, expected, strict=True):
            assert (completion.tag, completion.bytes, completion.signal) == (tag, count, 0)
            assert completion.error == (error is not None)
            assert error is None or (completion.write, completion.address) == error
        await ctx.tick().repeat(10)

    async def watch(ctx):
        async for _, _, strobe, completed in ctx.tick().sample(
            dut.done_stb, dut.completions.valid & dut.completions.ready
        ):
            assert strobe or not completed
            done.append(strobe)

    simulate(dut, send_ends, send_responses, sink, background=[watch_stream(dut.completions), watch])
    assert sum(done) == len(ends)


def test_the_last_response_waits_for_the_end_of_its_transfer():
    dut = elaborated(StoreFinisher, TMAU_PRESETS["unit"])

    async def drive(ctx):
        ctx.set(dut.completions.ready, 1)
        ctx.set(dut.responses.payload, {"last": 1})
        ctx.set(dut.responses.valid, 1)
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.responses.ready)
        assert not ctx.get(dut.done_stb)
        await send(ctx, dut.ends, [{"tag": 5}])
        await ctx.tick().repeat(2)
        assert ctx.get(dut.responses.ready) and ctx.get(dut.completions.valid) and ctx.get(dut.done_stb)

    simulate(dut, drive)
