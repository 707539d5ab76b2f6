"""Plans of reads: rate and latency of both outputs, and one piece alone; tests of the gatherer show the rest."""

import pytest

from support.conv import conv_unit
from support.streams import transact
from tilewright.hw.conv.fetch.reads import GatherPlanner
from tilewright.verify.pysim.simulate import elaborated

TAG = 8


def run(preset, requests, **changes):
    """Sends requests; their reads, and the cycles of each port."""
    dut, counts = (
        elaborated(GatherPlanner, conv_unit(preset, 1024, **changes), TAG),
        dict.fromkeys(("steps", "reads"), len(requests)),
    )
    payloads, cycles = transact(dut, {"i": requests}, counts)
    return payloads["reads"], cycles


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
