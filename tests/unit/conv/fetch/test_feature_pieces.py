"""Pieces of random places against what a byte of a piece is, said byte by byte."""

import random

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS, ConvParams
from tilewright.hw.conv.fetch.feature_pieces import PieceMaker
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.unpacked import unpacker

SEED = 23
PARAMS = {
    **{name: ConvUnitParams(CONV_PRESETS[name], SmemParams(4096)) for name in ("unit", "default")},
    "wide": ConvUnitParams(ConvParams(64, 2, 4, feature_rows=16, results=8, types=("i8",)), SmemParams(4096)),
    "one-slave": ConvUnitParams(ConvParams(16, 1, 8, results=4, types=("i8",)), SmemParams(4096)),
}


def some_plan(rng, params):
    most = params.conv.row_bytes.bit_length() - 1
    lanes = rng.random() < 0.3
    return {"granularity": rng.randint(most - 4, most), "lanes": lanes, "pool": lanes and rng.getrandbits(1),
            "merged": not lanes and rng.getrandbits(1)}  # fmt: skip


def some_request(rng, params, plan):
    """Numbers near to each other, so that ends lie inside of pieces."""
    near = rng.choice([3, 40, 300, 4000])
    pair = (
        params.pairs and not plan["lanes"] and 1 << plan["granularity"] == params.conv.row_bytes and rng.getrandbits(1)
    )
    offsets = {"x": rng.randrange(4096), "position": rng.randint(-near, near), "position_end": rng.randint(-near, near),
               "row_begin": rng.randint(-4, 2), "row_end": rng.randint(-2, 4), "rest": min(128, rng.randrange(200)),
               "kernel": int(plan["lanes"]) and rng.getrandbits(1), "second": pair and rng.choice([1, 2])}  # fmt: skip
    places = [{"there": rng.random() < 0.8, "x": rng.randrange(4096), "position": rng.randint(-near, near),
               "row": rng.randint(-4, 4)} for _ in range(params.lanes)]  # fmt: skip
    return {"offsets": offsets, "places": places}


def taken(params, plan, request, lane):
    """Address of the piece, and which of its bytes are read."""
    offsets, place = request["offsets"], request["places"][lane]
    pieces = max((1 << plan["granularity"]) // 16, 1)
    size = min(1 << plan["granularity"], 16)
    number = lane % pieces + params.row_slots * (offsets["second"] >> (2 * lane // params.lanes) & 1)
    address = (offsets["x"] + 16 * number + (0 if offsets["kernel"] else place["x"])) % 4096
    if offsets["kernel"]:
        there = lane < pieces and not plan["pool"]
    else:
        there = place["there"] and offsets["row_begin"] <= place["row"] < offsets["row_end"]
        there = there and not (plan["lanes"] and lane * size >= params.conv.slaves * params.conv.row_bytes)
    begin, end = place["position"] + offsets["position"], offsets["position_end"] - place["position"]
    read = []
    for byte in range(size):
        index = 16 * number + byte
        inside = there and index < offsets["rest"]
        if not offsets["kernel"]:
            inside = inside and (begin + index >= 0 and index < end if plan["merged"] else begin >= 0 and end >= 0)
        read.append(inside)
    return address, read


@pytest.mark.parametrize("preset", PARAMS)
def test_pieces(preset):
    params, rng = PARAMS[preset], random.Random(f"{SEED} {preset}")
    dut = elaborated(PieceMaker, params)
    unpack = unpacker(dut.pieces.shape())

    async def bench(ctx):
        for _ in range(12):
            plan = some_plan(rng, params)
            requests = [some_request(rng, params, plan) for _ in range(40)]
            ctx.set(dut.plan, plan)
            for cycle in range(len(requests) + dut.LATENCY):
                if cycle < len(requests):
                    ctx.set(dut.offsets, requests[cycle]["offsets"])
                    ctx.set(dut.places, requests[cycle]["places"])
                if cycle >= dut.LATENCY:
                    request = requests[cycle - dut.LATENCY]
                    for lane, piece in enumerate(unpack(ctx.get(dut.pieces.as_value()))):
                        address, read = taken(params, plan, request, lane)
                        assert [piece.low <= byte < piece.high for byte in range(16)][: len(read)] == read, (
                            plan,
                            request,
                            lane,
                        )
                        assert piece.low <= 16 and piece.high <= len(read) and piece.address == address, (
                            plan,
                            request,
                            lane,
                        )
                await ctx.tick()

    simulate(dut, bench)
