"""The table of writes against a list of bursts."""

import random

import pytest

from tilewright.hw.reduce.hazards import WriteTable
from tilewright.sim.pysim.simulate import elaborated, simulate

BUS_BYTES = 64
PAGE_WORDS = 4096 // BUS_BYTES


def words_of(burst):
    return {burst["word"] + beat for beat in range(burst["beats_minus_one"] + 1)}


@pytest.mark.parametrize("entries", [2, 4])
def test_clashes(entries):
    """Random bursts to two pages enter and leave; a clash is a word in common."""
    dut = elaborated(WriteTable, 20, BUS_BYTES, entries)
    rng = random.Random(entries)

    async def testbench(ctx):
        held, clashes = [], 0
        for _ in range(500):
            beats = rng.randrange(1, 5)
            word = PAGE_WORDS * rng.randrange(2) + rng.choice([0, 1, 2, 3, 4, PAGE_WORDS - beats])
            burst = {"word": word, "beats_minus_one": beats - 1}
            push = len(held) < entries and rng.random() < 0.6
            pop = bool(held) and rng.random() < 0.5
            ctx.set(dut.burst, burst)
            ctx.set(dut.push, push)
            ctx.set(dut.pop, pop)
            clash = any(words_of(burst) & words_of(other) for other in held)
            clashes += clash
            assert ctx.get(dut.clash) == clash
            assert (ctx.get(dut.empty), ctx.get(dut.full)) == (not held, len(held) == entries)
            await ctx.tick()
            held = held[pop:] + [burst] * push
        assert clashes > 50

    simulate(dut, testbench)


def test_refused_parameters():
    with pytest.raises(ValueError, match=r"^entries must be a power of two of at least 2, not 3$"):
        WriteTable(20, BUS_BYTES, 3)
