"""The walker visits every run once, in order, one a cycle, without a gap between transfers."""

import itertools
import random

import pytest

from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.walk.tile import TileWalker
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]


def random_walk(rng):
    lasts = [rng.choice([0, 0, 1, rng.randint(0, 4)]) for _ in range(5)]
    return {
        "store": rng.getrandbits(1),
        "loop": rng.getrandbits(1),
        "origin": rng.getrandbits(32),
        "data_bytes": rng.randint(1, 4096),
        "strides": [rng.getrandbits(32) for _ in range(5)],
        "lasts": lasts,
        "intervals": [{"first": rng.choice([0, 0, 1]), "end": rng.choice([last + 1, last + 1, 1])} for last in lasts],
        "outside": rng.random() < 0.1,
    }


def visits(walk):
    """The runs of one walk, from the definition."""
    places = list(itertools.product(*(range(last + 1) for last in reversed(walk["lasts"]))))
    for number, place in enumerate(places):
        index = place[::-1]
        inside = not walk["outside"] and all(
            interval["first"] <= i < interval["end"] for i, interval in zip(index, walk["intervals"], strict=True)
        )
        address = walk["origin"] + sum(map(int.__mul__, index, walk["strides"]))
        flags = {
            "inside": inside,
            "skip": index[0] == walk["lasts"][0],
            "last": number == len(places) - 1,
            "store": walk["store"],
            "loop": walk["loop"],
        }
        yield address % (1 << 32), walk["data_bytes"], flags


@pytest.mark.parametrize("mode", STALL_MODES)
def test_runs_of_back_to_back_walks(mode):
    dut = elaborated(TileWalker, PARAMS)
    rng = random.Random(SEED)
    items = [random_walk(rng) for _ in range(60)]
    expected = [run for walk in items for run in visits(walk)]
    stall = STALL_MODES[mode]

    async def source(ctx):
        await send(ctx, dut.i, items, idle=stall["idle"], seed=1)

    async def sink(ctx):
        runs, cycles = await receive(ctx, dut.o, len(expected), stall=stall["stall"], seed=2)
        for run, (address, data_bytes, flags) in zip(runs, expected, strict=True):
            assert {name: run[name] for name in flags} == flags
            if run.inside:
                assert (run.address, run.bytes) == (address, data_bytes)
        if mode == "none":
            assert cycles == list(range(1, len(expected) + 1)), "latency 1, a run in every cycle"

    print(f"seed {SEED}")
    simulate(dut, source, sink, background=[watch_stream(dut.o, "runs")])
