"""Old words: the gate against a list of bursts, and the reader against a memory."""

import random

import numpy as np
import pytest

from support.selection import grid
from support.streams import pulse, transact
from tilewright.hw.reduce.old_words import HazardGate, OldWordReader
from tilewright.spec import Reduction
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send

BUS_BYTES = 64
PAGE_WORDS = 4096 // BUS_BYTES
ADDR_WIDTH = 24


def words_of(burst):
    return {burst["word"] + beat for beat in range(burst["beats_minus_one"] + 1)}


def some_bursts(rng, count, pages):
    for _ in range(count):
        beats = rng.randrange(1, 5)
        word = PAGE_WORDS * rng.choice(pages) + rng.choice([0, 1, 2, 3, 4, PAGE_WORDS - beats])
        yield {"word": word, "beats_minus_one": beats - 1}


@grid(lambda number_bits, mode: number_bits == 4 or mode == "both", number_bits=[4, 16], mode=STALL_MODES)
def test_no_burst_passes_too_early(mode, number_bits):
    """Random bursts, many of which share words or entries; four bits of number come round often."""
    dut, stalls = elaborated(HazardGate, ADDR_WIDTH, BUS_BYTES, 64, 4, number_bits), STALL_MODES[mode]
    rng = random.Random(number_bits)
    bursts = list(some_bursts(rng, 200, pages=(0, 1, 8, 4095)))
    passed, words = [], 0  # bursts without a response; words that have passed

    async def space(ctx):
        nonlocal words
        while True:
            ctx.set(dut.space, 1)
            while not ctx.get(dut.word_stb):
                await ctx.tick()
            words += 1
            await ctx.tick()
            while stalls["stall"] and rng.random() < 0.5:
                ctx.set(dut.space, 0)
                await ctx.tick()

    async def responses(ctx):
        while True:
            answered = bool(passed) and rng.random() < 0.2
            ctx.set(dut.written, answered)
            assert ctx.get(dut.empty) == (not passed)
            await ctx.tick()
            del passed[:answered]

    async def sink(ctx):
        for n, burst in enumerate(bursts):
            (out,), _ = await receive(ctx, dut.o, 1, stall=stalls["stall"], seed=n)
            assert (out.word, out.beats_minus_one) == (burst["word"], burst["beats_minus_one"])
            assert not any(words_of(burst) & words_of(other) for other in passed)
            passed.append(burst)
            assert len(passed) <= 4
        assert words in (sum(burst["beats_minus_one"] + 1 for burst in bursts) + extra for extra in (-1, 0))

    transact(dut, {"i": bursts}, mode=mode, watch=["o"], testbenches=[sink], background=[space, responses],
             deadline=30_000)  # fmt: skip


def test_a_word_a_cycle():
    """Contiguous rows, and rows of two words at a distance of the whole memory."""
    dut = elaborated(HazardGate, ADDR_WIDTH, BUS_BYTES, 64, 64)
    rows = [{"word": 4 * n, "beats_minus_one": 3} for n in range(8)]
    apart = [{"word": 64 * (n + 1) + 48, "beats_minus_one": 1} for n in range(2)]

    _, cycles = transact(dut, {"i": rows + apart}, {"o": len(rows + apart)}, inputs={"space": 1})
    assert cycles["o"] == [
        66 + cycle for cycle in (*range(4, 4 + 4 * len(rows), 4), 4 * len(rows) + 2, 4 * len(rows) + 4)
    ]


@pytest.mark.parametrize(
    ("entries", "bursts", "number_bits", "message"),
    [
        (48, 4, 16, r"^entries must be a power of two of at least 2, not 48$"),
        (64, 3, 16, r"^bursts must be a power of two of at least 2, not 3$"),
        (64, 8, 4, r"^number_bits must be 5 or more, not 4$"),
    ],
)
def test_refused_parameters(entries, bursts, number_bits, message):
    with pytest.raises(ValueError, match=message):
        HazardGate(ADDR_WIDTH, BUS_BYTES, entries, bursts, number_bits)


READER_BUS_BYTES = 16
CONTENTS = np.random.default_rng(1).integers(256, size=4096, dtype=np.uint8)


def word_at(word):
    return int.from_bytes(CONTENTS[READER_BUS_BYTES * word : READER_BUS_BYTES * (word + 1)].tobytes(), "little")


@pytest.mark.parametrize("mode", STALL_MODES)
def test_bursts_and_words(mode):
    """Bursts to different words: each goes on when its words have come, refused if one of them failed."""
    dut, stalls = elaborated(OldWordReader, 20, READER_BUS_BYTES, 4, 16), STALL_MODES[mode]
    memory = AxiMemory(dut.axi, CONTENTS, latency=6, stall=stalls["stall"])
    memory.failing = {READER_BUS_BYTES * 9}
    bursts = [{"word": 4 * n, "beats_minus_one": n % 4, "reduction": Reduction.ADD, "last": n % 2} for n in range(40)]

    async def burst_sink(ctx):
        for n, burst in enumerate(bursts):
            (out,), _ = await receive(ctx, dut.o, 1, stall=stalls["stall"], seed=n)
            refused = burst["word"] == 8
            assert (out.word, out.last, out.empty, out.refused) == (burst["word"], burst["last"], refused, refused)
            await pulse(ctx, dut.written)

    expected = [word_at(burst["word"] + beat) for burst in bursts for beat in range(burst["beats_minus_one"] + 1)]
    payloads, _ = transact(dut, {"i": bursts}, {"words": len(expected)}, mode, seed=1, watch=["o"],
                           testbenches=[burst_sink], background=[memory.serve])  # fmt: skip
    assert payloads["words"] == expected
    assert {request[1] for request in memory.requests} == {2}


def test_space_is_reserved_until_the_words_are_accepted():
    """While words wait, no more are requested than there is space for, even if their bursts have been written."""
    dut = elaborated(OldWordReader, 20, READER_BUS_BYTES, 4, 8)
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
        assert len(memory.requests) == 2, "an entry is missing"
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
def test_old_words_refused_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        OldWordReader(*arguments)
