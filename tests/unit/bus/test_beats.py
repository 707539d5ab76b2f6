"""Bursts become beats: tags and lasts in order, one a cycle."""

import random

import pytest

from tilewright.hw.bus.beats import BeatSequencer
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream


@pytest.mark.parametrize("mode", STALL_MODES)
def test_beats(mode):
    rng = random.Random(1)
    bursts = [(rng.choice([1, 1, 2, 3, 256]), rng.randrange(8)) for _ in range(40)]
    dut = BeatSequencer(3, 4)
    stalls = STALL_MODES[mode]
    expected = [(tag, beat == count - 1) for count, tag in bursts for beat in range(count)]

    async def source(ctx):
        items = [{"beats_minus_one": count - 1, "tag": tag} for count, tag in bursts]
        await send(ctx, dut.bursts, items, idle=stalls["idle"], seed=2)

    async def sink(ctx):
        beats, cycles = await receive(ctx, dut.beats, len(expected), stall=stalls["stall"], seed=3)
        assert [(beat.tag, beat.last) for beat in beats] == expected
        if mode == "none":
            assert cycles == list(range(1, 1 + len(expected)))

    simulate(dut, source, sink, background=[watch_stream(dut.beats)], deadline=50_000)
