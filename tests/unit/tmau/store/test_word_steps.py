"""Word step generator: random runs, cut by a few lines of Python; latency and rate."""

import random

import pytest

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
        runs.append(run | {"empty": last and rng.random() < 0.3, "context": {"tag": number}})
        source += size
    return runs


def cut(runs, bus_bytes):
    """Steps: (word, first, end, source, straddle, fetched row or None, last)."""
    held = None
    for run in runs:
        source, address, left = run["source"], run["address"], run["bytes"]
        if run["empty"]:
            yield (0, None, None, None, None, None, 1)
            left = 0
        while left:
            first = address % bus_bytes
            count = min(bus_bytes - first, left)
            rows = [source // 128, (source + count - 1) // 128]
            if rows[0] != rows[1] and held != rows[0]:
                held = rows[0]
                yield (0, None, None, None, None, held, 0)
            row = rows[1] if held != rows[1] else None
            held = rows[1]
            last = int(run["last"] and count == left)
            yield (1, first, first + count, source % 128, int(rows[0] != rows[1]), row, last)
            source, address, left = source + count, address + count, left - count
        held = None if run["last"] else held


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("bus_bytes", [16, 64])
def test_steps(bus_bytes, mode):
    dut = elaborated(WordStepGenerator, TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes))
    runs = random_runs(60)
    expected = list(cut(runs, bus_bytes))

    async def source(ctx):
        await send(ctx, dut.i, runs, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def sink(ctx):
        steps, cycles = await receive(ctx, dut.steps, len(expected), stall=STALL_MODES[mode]["stall"], seed=SEED)
        for step, (word, first, end, start, straddle, row, last) in zip(steps, expected, strict=True):
            assert (step.word, step.last, step.row if step.fetch else None) == (word, last, row)
            assert not word or (step.first, step.end, step.source, step.straddle) == (first, end, start, straddle)
        if mode == "none":
            assert cycles == [*range(2, 2 + len(expected))]

    simulate(dut, source, sink, background=[watch_stream(dut.steps)])
