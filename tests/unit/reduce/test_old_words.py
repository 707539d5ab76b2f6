"""The reader of old words: what comes, when it is asked for, and when not."""

import numpy as np
import pytest

from tilewright.golden.spec import Reduction
from tilewright.hw.reduce.old_words import OldWordReader
from tilewright.sim.pysim.axi_memory import AxiMemory
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

BUS_BYTES = 16
CONTENTS = np.random.default_rng(1).integers(256, size=4096, dtype=np.uint8)


def word_at(word):
    return int.from_bytes(CONTENTS[BUS_BYTES * word : BUS_BYTES * (word + 1)].tobytes(), "little")


@pytest.mark.parametrize("mode", STALL_MODES)
def test_bursts_and_words(mode):
    """Bursts to different words: each goes on when its words are here, refused if one of them failed."""
    dut, stalls = elaborated(OldWordReader, 20, BUS_BYTES, 4, 16), STALL_MODES[mode]
    memory = AxiMemory(dut.axi, CONTENTS, latency=6, stall=stalls["stall"])
    memory.failing = {BUS_BYTES * 9}
    bursts = [{"word": 4 * n, "beats_minus_one": n % 4, "reduction": Reduction.ADD, "last": n % 2} for n in range(40)]

    async def source(ctx):
        await send(ctx, dut.i, bursts, idle=stalls["idle"], seed=1)

    async def burst_sink(ctx):
        for n, burst in enumerate(bursts):
            (out,), _ = await receive(ctx, dut.o, 1, stall=stalls["stall"], seed=n)
            refused = burst["word"] == 8
            assert (out.word, out.last, out.empty, out.refused) == (burst["word"], burst["last"], refused, refused)
            ctx.set(dut.written, 1)
            await ctx.tick()
            ctx.set(dut.written, 0)

    async def word_sink(ctx):
        expected = [word_at(burst["word"] + beat) for burst in bursts for beat in range(burst["beats_minus_one"] + 1)]
        words, _ = await receive(ctx, dut.words, len(expected), stall=stalls["stall"], seed=2)
        assert words == expected

    background = [memory.serve, watch_stream(dut.o, "o"), watch_stream(dut.words, "words")]
    simulate(dut, source, burst_sink, word_sink, background=background)
    assert {request[1] for request in memory.requests} == {2}


def test_an_overlapping_burst_waits_for_the_write():
    dut = elaborated(OldWordReader, 20, BUS_BYTES, 4, 16)
    memory = AxiMemory(dut.axi, CONTENTS, latency=1)

    async def testbench(ctx):
        await send(ctx, dut.i, [{"word": 2, "beats_minus_one": 1}])
        await send(ctx, dut.i, [{"word": 3}])
        await receive(ctx, dut.o, 1)
        for _ in range(10):
            assert ctx.get(dut.waiting) and len(memory.requests) == 1
            await ctx.tick()
        ctx.set(dut.written, 1)
        await ctx.tick()
        ctx.set(dut.written, 0)
        assert ctx.get(dut.empty)
        await receive(ctx, dut.o, 1)
        assert len(memory.requests) == 2

    simulate(dut, testbench, background=[memory.serve])


def test_room_is_kept_until_the_words_are_used():
    """Bursts whose words are not taken are not followed by more than there is space for, though they are written."""
    dut = elaborated(OldWordReader, 20, BUS_BYTES, 4, 8)
    memory = AxiMemory(dut.axi, CONTENTS, latency=1)

    async def testbench(ctx):
        ctx.set(dut.written, 0)
        for n in range(3):
            await send(ctx, dut.i, [{"word": 4 * n, "beats_minus_one": 3}])
        await receive(ctx, dut.o, 2)
        ctx.set(dut.written, 1)
        await ctx.tick().repeat(2)
        ctx.set(dut.written, 0)
        assert ctx.get(dut.empty)
        await ctx.tick().repeat(20)
        assert len(memory.requests) == 2
        await receive(ctx, dut.words, 3)
        await ctx.tick().repeat(20)
        assert len(memory.requests) == 2, "a place is missing"
        await receive(ctx, dut.words, 1)
        await receive(ctx, dut.o, 1)
        assert len(memory.requests) == 3

    simulate(dut, testbench, background=[memory.serve])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((20, 16, 3, 4), r"^max_burst must be a power of two from 1 to 256, not 3$"),
        ((20, 16, 4, 12), r"^words must be a power of two from 4 to 1024, not 12$"),
        ((20, 16, 16, 8), r"^words must be a power of two from 16 to 1024, not 8$"),
    ],
)
def test_refused_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        OldWordReader(*arguments)
