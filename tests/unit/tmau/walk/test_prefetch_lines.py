"""Lines of runs: each that a run has a byte in is named once, but for one that the run before has named last."""

import random

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.prefetch_lines import PrefetchLines
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261124
PARAMS = TMAU_PRESETS["unit"].replace(prefetches=True)


def random_runs(rng, transfers):
    for _ in range(transfers):
        count, address = rng.randint(1, 8), rng.getrandbits(31)
        pitch = rng.choice([16, 64, 100, 128, 256, 4096])
        for number in range(count):
            size = rng.choice([1, 16, 64, 128, 200, 1000])
            flags = {"inside": rng.random() < 0.8, "last": number == count - 1, "folded": rng.randrange(2)}
            yield {"address": address, "bytes": size} | flags
            address += pitch


def lines_of(runs):
    named = []
    previous = None
    for run in runs:
        if run["inside"]:
            lines = range(run["address"] >> 7, (run["address"] + run["bytes"] - 1 >> 7) + 1)
            named += [line for line in lines if line != previous or line != lines[0]]
            previous = lines[-1]
        if run["last"]:
            previous = None
    return named


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_line_once(mode):
    dut, stalls, runs, came = elaborated(PrefetchLines, PARAMS), STALL_MODES[mode], None, []
    runs = list(random_runs(random.Random(SEED), 40))
    expected = lines_of(runs)

    async def source(ctx):
        await send(ctx, dut.i, runs, idle=stalls["idle"])

    async def sink(ctx):
        came.extend((await receive(ctx, dut.o, len(expected), stall=stalls["stall"]))[0])
        await ctx.tick()
        assert not ctx.get(dut.o.valid)

    print(f"seed {SEED}")
    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    assert came == expected


def test_one_line_a_cycle_behind_one_for_each_run():
    dut, cycles = elaborated(PrefetchLines, PARAMS), []

    async def source(ctx):
        await send(ctx, dut.i, [{"address": 256, "bytes": 512, "inside": 1, "last": 1}] * 2)

    async def sink(ctx):
        cycles.extend((await receive(ctx, dut.o, 8))[1])

    simulate(dut, source, sink)
    assert cycles == [1, 2, 3, 4, 6, 7, 8, 9]
