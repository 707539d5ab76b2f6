"""Bursts become the lines that they have words of."""

import random

import pytest

from tilewright.hw.cluster.l2.burst_lines import BurstLines
from tilewright.hw.cluster.l2.params import Geometry
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261124
GEOMETRY = Geometry(addr_width=16, data_width=32, id_width=3, sets=4, ways=2, misses=4, line_bytes=16)


def lines_of(request):
    """Lines of a burst, in order, each with the first and last of its words."""
    first = request["addr"] // 4
    last = first + request["len"]
    for line in range(first // 4, last // 4 + 1):
        yield line, max(first - 4 * line, 0), min(last - 4 * line, 3), line == last // 4


@pytest.mark.parametrize("mode", STALL_MODES)
def test_every_word_is_in_its_line(mode):
    dut, rng, stalls, came = elaborated(BurstLines, GEOMETRY), random.Random(SEED), STALL_MODES[mode], []
    requests = []
    for _ in range(60):
        beats = rng.choice([1, rng.randint(1, 16), rng.randint(1, 256)])
        word = rng.randrange(1024 - beats + 1)  # of a page
        requests.append({"id": rng.randrange(8), "addr": 4096 * rng.randrange(16) + 4 * word, "len": beats - 1})
    expected = [(request["id"], *line) for request in requests for line in lines_of(request)]

    async def ask(ctx):
        await send(ctx, dut.i, requests, idle=stalls["idle"])

    async def take(ctx):
        came.extend((await receive(ctx, dut.o, len(expected), stall=stalls["stall"]))[0])

    print(f"seed {SEED}")
    simulate(dut, ask, take, background=[watch_stream(dut.o)])
    assert [(part.id, part.line, part.first, part.last, bool(part.end)) for part in came] == expected


def test_one_line_a_cycle_one_cycle_later():
    dut, cycles = elaborated(BurstLines, GEOMETRY), []

    async def ask(ctx):
        await send(ctx, dut.i, [{"addr": 0, "len": 15}, {"addr": 64}, {"addr": 128, "len": 7}])

    async def take(ctx):
        cycles.extend((await receive(ctx, dut.o, 7))[1])

    simulate(dut, ask, take)
    assert cycles == list(range(1, 8))
