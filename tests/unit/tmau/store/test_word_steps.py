"""Word step generator: random runs, cut by a few lines of Python; latency and rate."""

import random

import pytest

from tilewright.golden.smem.swizzle import swizzle
from tilewright.golden.spec import LINE_BYTES, Swizzle
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.word_steps import WordStepGenerator
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 21


def random_runs(count):
    rng = random.Random(SEED)
    runs, source = [], 0
    for number in range(count):
        source = rng.choice([source, rng.randrange(3000)])
        size, last = rng.randrange(1, 300), rng.random() < 0.3
        run = {"source": source, "address": rng.getrandbits(32), "bytes": size, "last": last}
        context = {"tag": number, "swizzle": rng.randrange(4)}
        runs.append(run | {"empty": last and rng.random() < 0.3, "context": context})
        source += size
    return runs


def cut(runs, bus_bytes):
    """Steps: (word, first, end, turn, straddle, fetched segment or None, last)."""
    held = None
    for run in runs:
        source, address, left = run["source"], run["address"], run["bytes"]
        if run["empty"]:
            yield (0, None, None, None, None, None, 1)
            left = 0
        while left:
            first = address % bus_bytes
            count = min(bus_bytes - first, left)
            segments = [source // bus_bytes, (source + count - 1) // bus_bytes]
            if segments[0] != segments[1] and held != segments[0]:
                held = segments[0]
                yield (0, None, None, None, None, held, 0)
            taken = segments[1] if held != segments[1] else None
            held = segments[1]
            turn, straddle = (source - first) % bus_bytes, int(segments[0] != segments[1])
            yield (1, first, first + count, turn, straddle, taken, int(run["last"] and count == left))
            source, address, left = source + count, address + count, left - count
        held = None if run["last"] else held


def place(segment, bus_bytes, mode):
    """The line that a segment lies in, and the bank that its first 16 bytes lie in."""
    address = swizzle(segment * bus_bytes, mode)
    return address // 128, address // 16 % 8


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("bus_bytes", [16, 32, 64])
def test_steps(bus_bytes, mode):
    dut = elaborated(WordStepGenerator, TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes))
    runs = random_runs(60)
    expected = list(cut(runs, bus_bytes))
    modes = [Swizzle(run["context"]["swizzle"]) for run in runs]

    async def source(ctx):
        await send(ctx, dut.i, runs, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def sink(ctx):
        steps, cycles = await receive(ctx, dut.steps, len(expected), stall=STALL_MODES[mode]["stall"], seed=SEED)
        line = None  # of the segment before, of the same transfer
        for step, (word, first, end, turn, straddle, taken, last) in zip(steps, expected, strict=True):
            cut = step.cut
            assert (cut.word, cut.last, cut.fetch) == (word, last, taken is not None)
            assert taken is None or (step.row, step.bank) == place(taken, bus_bytes, modes[cut.tag])
            if taken is not None:
                before, line = line, taken * bus_bytes // LINE_BYTES
                assert step.again == (line == before)
            line = None if last else line
            assert not word or (cut.first, cut.end, cut.turn, cut.straddle) == (first, end, turn, straddle)
        if mode == "none":
            assert cycles == [*range(1, 1 + len(expected))]

    simulate(dut, source, sink, background=[watch_stream(dut.steps)])
