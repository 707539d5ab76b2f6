"""Swizzler: every chunk at its address in every swizzle; completions never before the last write; latency and rate."""

import random

import pytest

from tilewright.hw.tmau.load.swizzle import Swizzler
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = TMAU_PRESETS["unit"]
SEED = 15


def swizzled(address, span):
    """docs/tmau.md, "Swizzle"; the span in bytes, 0 for none."""
    return address ^ ((address >> 7) % (span // 16)) * 16 if span else address


def random_lines(count, last_rate=0.3):
    rng = random.Random(SEED)
    return [
        {
            "line": {
                "row": rng.randrange(PARAMS.smem.rows),
                "data": rng.getrandbits(1024),
                "strobe": rng.getrandbits(128),
            },
            "last": rng.random() < last_rate,
            "context": {
                "tag": number,
                "quiet": rng.random() < 0.3,
                "signal": rng.getrandbits(1),
                "barrier": 8 * number,
                "bytes": number,
                "swizzle": number % 4,
                "stage": rng.getrandbits(1),
                "reduction": rng.randrange(9),
                "element": rng.randrange(15),
            },
            "error": rng.getrandbits(1),
            "address": rng.getrandbits(32),
        }
        for number in range(count)
    ]


def completes(line):
    return line["last"] and not line["context"]["quiet"]


def run(lines, mode="none", *, completion_stall=None):
    dut = elaborated(Swizzler, PARAMS)
    stall = STALL_MODES[mode]["stall"]
    count = sum(completes(line) for line in lines)
    result = {}

    async def source(ctx):
        result["lines"] = await send(ctx, dut.lines, lines, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def writes(ctx):
        result["writes"] = await receive(ctx, dut.writes, len(lines), stall=stall, seed=SEED)

    async def completions(ctx):
        chance = stall if completion_stall is None else completion_stall
        result["completions"] = await receive(ctx, dut.completions, count, stall=chance, seed=SEED + 1)

    simulate(dut, source, writes, completions, background=[watch_stream(dut.writes), watch_stream(dut.completions)])
    return result


@pytest.mark.parametrize("mode", STALL_MODES)
def test_chunks_lie_at_swizzled_addresses(mode):
    lines = random_lines(150)
    for came, sent in zip(run(lines, mode)["writes"][0], lines, strict=True):
        row, data, strobe = (sent["line"][name] for name in ("row", "data", "strobe"))
        assert came.line.row == row
        assert all(came[name] == sent["context"][name] for name in ("stage", "reduction", "element"))
        assert (came.error, came.address) == (sent["error"], sent["address"])
        for byte in range(128):
            place = swizzled(128 * row + byte, (0, 32, 64, 128)[sent["context"]["swizzle"]]) - 128 * row
            assert came.line.data >> 8 * place & 255 == data >> 8 * byte & 255
            assert came.line.strobe >> place & 1 == strobe >> byte & 1


@pytest.mark.parametrize("completion_stall", [0.0, 0.9])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_completions_are_held_behind_their_last_write(mode, completion_stall):
    lines = random_lines(100)
    result = run(lines, mode, completion_stall=completion_stall)
    writes = result["writes"][1]
    last = [number for number, line in enumerate(lines) if completes(line)]
    for number, completion, cycle in zip(last, *result["completions"], strict=True):
        line = lines[number]
        expected = {name: line["context"][name] for name in ("tag", "signal", "barrier", "bytes")}
        expected |= {"error": line["error"], "address": line["address"], "write": 0}
        assert completion == completion.shape().const(expected)
        assert cycle >= writes[number]
        assert number + 1 == len(lines) or cycle < writes[number + 1]


def test_latency_one_and_full_rate():
    lines = random_lines(60)
    result = run(lines)
    assert result["lines"] == list(range(60))
    assert result["writes"][1] == list(range(1, 61))
    assert result["completions"][1] == [number + 1 for number, line in enumerate(lines) if completes(line)]
