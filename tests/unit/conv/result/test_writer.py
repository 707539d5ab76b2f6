"""The assembler: buffers of each mode, windows, stalls, rates. The writer: rate, latency, and counts of results."""

import random
from itertools import product

import pytest

from support.conv import conv_unit, conv_units
from support.streams import recording, transact
from tilewright.hw.conv.result.layouts import ResultSizes
from tilewright.hw.conv.result.writer import Assembler, Writer
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

PARAMS = conv_units("unit", "default") | {"pairs": conv_unit("pairs", types=("i8", "i16", "f16"))}


def some_work(params, lanes, log2, flushes):
    """Transfers with their flush, pieces, and the bytes that each piece must have, by their place in its window.

    With pairs the second half of a window is what follows the first, or begins in any slot.
    """
    rng, sizes, results = random.Random(7), ResultSizes(params), params.conv.results
    ours = results if lanes else results // sizes.together
    most = max(1, sizes.piece_bytes // (ours << log2))
    transfers, pieces, wanted = [], [], []
    for _ in range(flushes):
        count, buffer = rng.choice([most, rng.randint(1, most)]), {}
        for number in range(count):
            data = [rng.getrandbits(32) for _ in range(results)]
            transfers.append((data, number == count - 1))
            for lane, byte in product(range(results), range(1 << log2)):
                place, channel = divmod(lane, ours)
                at = place * sizes.piece_bytes + (number * ours + channel << log2) + byte
                buffer[at] = data[lane] >> 8 * byte & 255
        windows = range(0, max(buffer) + 1, sizes.piece_bytes)
        for start in windows:
            piece = {"slot": start // 16, "origin": rng.randrange(1024), "flush_last": start == windows[-1]}
            length, half, begins = sizes.piece_bytes, sizes.piece_bytes // 2, [start]
            if sizes.pairs:
                there, length = rng.getrandbits(1), half
                begins.append(rng.randrange(0, sizes.buffer_bytes, half) if there else start + half)
                piece["second"] = {"there": there, "slot": begins[1] // 16, "origin": rng.randrange(1024)}
            pieces.append(piece)
            wanted.append({at - begin + number * half: value for number, begin in enumerate(begins)
                           for at, value in buffer.items() if 0 <= at - begin < length})  # fmt: skip
    return transfers, pieces, wanted


def run(name, work, lanes, log2, mode):
    transfers, pieces, wanted = work
    results, flushes = zip(*transfers, strict=True)
    inputs = {"plan": {"lanes": lanes, "result_log2": log2}}
    items = {"i": results, "flush": flushes, "pieces": pieces}
    payloads, cycles = transact(elaborated(Assembler, PARAMS[name]), items, {"o": len(pieces)}, mode, inputs=inputs)
    for piece, given, bytes_ in zip(payloads["o"], pieces, wanted, strict=True):
        assert piece.origin == given["origin"]
        assert all(piece.second[name] == value for name, value in given.get("second", {}).items() if name != "slot")
        window = sum(chunk << 128 * n for n, chunk in enumerate(piece.window))
        assert {at: window >> 8 * at & 255 for at in bytes_} == bytes_
    return cycles["i"], cycles["o"]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize(("lanes", "log2"), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)])
@pytest.mark.parametrize("name", PARAMS)
def test_pieces(name, lanes, log2, mode):
    if log2 == 1 and not (PARAMS[name].floats or (lanes and PARAMS[name].wide)):
        pytest.skip("there are no results of 16 bits")
    run(name, some_work(PARAMS[name], lanes, log2, 12), lanes, log2, mode)


def test_full_rate_and_latency():
    """A transfer a cycle; the first piece one cycle after its flush."""
    work = some_work(PARAMS["unit"], 1, 0, 10)
    sent, cycles = run("unit", work, 1, 0, "none")
    assert sent == list(range(len(work[0])))
    assert cycles == [cycle + 1 for cycle, (_, last) in zip(sent, work[0], strict=True) if last]


#: Pieces of eight bytes; with the preset default the second half of the window is another one.
PIECE = {"origin": 5, "first": 5, "last": 12, "bytes": 7, "window": [1]}
PIECES = {
    "unit": PIECE,
    "default": PIECE | {"window": [1, 2], "second": {"there": 1, "origin": 100, "first": 4, "last": 11}},
}


@pytest.mark.parametrize("log2", [0, 1, 2])
@pytest.mark.parametrize("name", PIECES)
def test_written_results(name, log2):
    """A piece a cycle, one cycle later; which bytes are written is proved."""
    dut, counts = elaborated(Writer, conv_unit(name, 1024)), []
    items, background = {"i": [PIECES[name]] * 20}, [recording(counts, dut.written, dut.written)]
    _, cycles = transact(dut, items, {"o": 20}, inputs={"plan.result_log2": log2}, background=background)
    assert cycles["o"] == list(range(1, 21))
    assert [results for _, results in counts] == [(16 if "second" in PIECES[name] else 8) >> log2] * 20
