"""The word placer: latency and rate.

What is written and completed is proved in tests/formal/tmau/load/test_place.py, and simulated in test_path.py.
"""

import pytest

from support.streams import transact
from tilewright.hw.tmau.load.layouts import BOUNDS
from tilewright.hw.tmau.load.place import WordPlacer
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.pysim.simulate import elaborated


@pytest.mark.parametrize("bus_bytes", [16, 64])
@pytest.mark.parametrize("fill", [False, True])
def test_latency_one_and_a_piece_a_cycle(fill, bus_bytes):
    dut, pieces = elaborated(WordPlacer, TMAU_PRESETS["unit"].replace(bus_bytes=bus_bytes)), []
    for number in range(16):
        start = 0 if fill else bus_bytes * number % 128
        bounds = (0, 128, 0, 0) if fill else (start, start + bus_bytes) * 2
        piece = dict(zip(BOUNDS, bounds, strict=True)) | {"line": number, "last": number == 15}
        chunks = {name: {"whole": (1 << bound // 16) - 1} for name, bound in zip(BOUNDS, bounds, strict=True)}
        context = {"quiet": number != 15, "tag": number}
        pieces.append({"piece": piece, "chunks": chunks, "word": number, "context": context})
    came, cycles = transact(dut, {"i": pieces}, {"completions": 1}, inputs={"rows.ready": 1})
    assert cycles["i"] == list(range(16))
    assert cycles["completions"] == [17], "written in the cycle after it came, complete in the next one"
    assert came["completions"][0].tag == 15
