"""Write generator: the bursts of random runs hold their words, in every stall mode; ends; rate."""

import random

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.store.bursts import WriteGenerator
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

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
