"""Store finisher: one completion a command, the right error, ends in order."""

import random

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.finish import StoreFinisher
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 3


def random_load(count):
    """Ends, responses, and completions: (tag, bytes, error or None), where an error is (write, address)."""
    rng = random.Random(SEED)
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
    ends, responses, expected = random_load(150)
    idle, stall = STALL_MODES[mode]["idle"], STALL_MODES[mode]["stall"]
    done = []

    async def send_ends(ctx):
        await send(ctx, dut.ends, ends, idle=idle, seed=SEED)

    async def send_responses(ctx):
        await send(ctx, dut.responses, responses, idle=idle, seed=SEED + 1)

    async def sink(ctx):
        came, _ = await receive(ctx, dut.completions, len(expected), stall=stall, seed=SEED)
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
        ctx.set(dut.responses.p, {"last": 1})
        ctx.set(dut.responses.valid, 1)
        await ctx.tick().repeat(3)
        assert not ctx.get(dut.responses.ready)
        assert not ctx.get(dut.done_stb)
        await send(ctx, dut.ends, [{"tag": 5}])
        await ctx.tick().repeat(2)
        assert ctx.get(dut.responses.ready) and ctx.get(dut.completions.valid) and ctx.get(dut.done_stb)

    simulate(dut, drive)
