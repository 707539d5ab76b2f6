"""Plans of reads: rate and latency of both outputs, and one piece alone; tests of the gatherer show the rest."""

import pytest

from tilewright.hw.conv.fetch.reads import GatherPlanner
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import receive, send, watch_stream

TAG = 8


def run(preset, requests, **changes):
    """Sends requests; their reads, and the cycles of each stream."""
    params = ConvUnitParams(CONV_PRESETS[preset].replace(**changes), SmemParams(1024))
    dut, cycles, reads = elaborated(GatherPlanner, params, TAG), {}, []

    async def source(ctx):
        cycles["i"] = await send(ctx, dut.i, requests)

    async def steps(ctx):
        _, cycles["steps"] = await receive(ctx, dut.steps, len(requests))

    async def sink(ctx):
        reads[:], cycles["reads"] = await receive(ctx, dut.reads, len(requests))

    simulate(dut, source, steps, sink, background=[watch_stream(dut.reads), watch_stream(dut.steps)])
    return reads, cycles


@pytest.mark.parametrize(("preset", "lanes", "latency"), [("unit", 2, 1), ("default", 8, 3)])
def test_full_rate_and_latency(preset, lanes, latency):
    pieces = [{"address": 16 * n, "low": 0, "high": 16} for n in range(lanes)]
    _, cycles = run(preset, [{"pieces": pieces, "size": 4, "fill": 0, "tag": n} for n in range(20)])
    starts = {"i": 0, "steps": latency, "reads": latency + 1}
    assert cycles == {name: list(range(start, start + 20)) for name, start in starts.items()}


def test_a_request_of_one_lane():
    """Over the end of memory."""
    request = {"pieces": [{"address": 1023, "low": 0, "high": 2}], "size": 1, "fill": 0, "tag": 0}
    (read,), _ = run("unit", [request], units=1)
    assert (read["lanes"], list(read["chunks"])[:2]) == (3, [63, 0])
