"""The writer: every length at every address, in stalls, one piece a cycle."""

import random

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.conv.result.layouts import ResultSizes
from tilewright.hw.conv.result.writer import Writer
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = {name: ConvUnitParams(CONV_PRESETS[name], SmemParams(1024)) for name in ("unit", "default")}


def some_pieces(params, count):
    rng, sizes = random.Random(5), ResultSizes(params)

    def piece(width):
        start = rng.choice([0, 0, rng.randrange(16)])
        length = rng.randint(1, 16 - start if start else width)
        origin = rng.randrange(1024)
        return {"origin": origin, "first": origin % 16 + start, "last": origin % 16 + start + length - 1}

    for _ in range(count):
        width, pair = sizes.piece_bytes, sizes.pairs and rng.random() < 0.6
        made = piece(width // 2 if pair else width)
        length = made["last"] - made["first"]
        made |= {"bytes": length, "window": [rng.getrandbits(128) for _ in range(width // 16)]}
        if sizes.pairs:
            second = {"there": 0, "origin": (made["origin"] + width // 2) % 1024}
            if pair:
                second = piece(width // 2) | {"there": 1}
                while second["last"] - second["first"] != length or second["origin"] >> 4 == made["origin"] >> 4:
                    second = piece(width // 2) | {"there": 1}
            made["second"] = second
        yield made


def bytes_of_piece(piece):
    """Address and value of each byte that is written."""
    window, written = sum(chunk << 128 * n for n, chunk in enumerate(piece["window"])), {}
    halves = [(piece, 0)]
    if piece.get("second", {}).get("there"):
        halves.append((piece["second"], 8 * len(piece["window"])))
    for half, behind in halves:
        start = half["first"] - half["origin"] % 16
        for at in range(start, start + piece["bytes"] + 1):
            written[(half["origin"] + at) % 1024] = window >> 8 * (behind + at) & 255
    return written


def bytes_of_write(write):
    return {
        16 * chunk + byte: data >> 8 * byte & 255
        for chunk, data, strobes in zip(write.chunks, write.data, write.strobes, strict=True)
        for byte in range(16)
        if strobes >> byte & 1
    }


def run(name, pieces, mode, log2=0):
    dut = elaborated(Writer, PARAMS[name])
    came, stalls, written = [], STALL_MODES[mode], []

    async def source(ctx):
        ctx.set(dut.plan.result_log2, log2)
        await send(ctx, dut.i, pieces, idle=stalls["idle"])

    async def sink(ctx):
        came.extend(await receive(ctx, dut.o, len(pieces), stall=stalls["stall"]))

    async def count(ctx):
        async for _, _, results in ctx.tick().sample(dut.written):
            written.append(results)

    simulate(dut, source, sink, background=[count, watch_stream(dut.o, "o")])
    return *came, written


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("name", PARAMS)
def test_pieces(name, mode):
    pieces = list(some_pieces(PARAMS[name], 80))
    writes, _, written = run(name, pieces, mode)
    assert [bytes_of_write(write) for write in writes] == [bytes_of_piece(piece) for piece in pieces]
    assert [count for count in written if count] == [len(bytes_of_piece(piece)) for piece in pieces]


def test_full_rate_and_latency():
    pieces = list(some_pieces(PARAMS["unit"], 20))
    _, cycles, _ = run("unit", pieces, "none")
    assert cycles == list(range(1, 21))


@pytest.mark.parametrize("log2", [0, 1, 2])
def test_results_are_counted(log2):
    piece = {"origin": 5, "first": 5, "last": 12, "bytes": 7, "window": [1]}
    *_, written = run("unit", [piece], "none", log2)
    assert sum(written) == 8 >> log2
