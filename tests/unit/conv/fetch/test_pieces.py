"""Packing of pieces: every offset, cut, size and fill; answers in two halves; latency."""

import random

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.fetch.pieces import PiecePacker
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import send

SEED = 41
SMEM = SmemParams(1024)
PARAMS = {2: ConvUnitParams(CONV_PRESETS["unit"], SMEM), 8: ConvUnitParams(CONV_PRESETS["default"], SMEM)}
TAG = 8


def answers(lanes, rng, tag):
    """The answers of one request, and what it should give."""
    pieces, chunks, packed = [], [rng.randbytes(16) for _ in range(8)], b""
    size, fill = rng.randrange(5), rng.randbytes(2)
    halves = [1, 2] if lanes == 8 and rng.random() < 0.4 else [3]
    both = {half: [rng.randbytes(16) for _ in range(8)] if half != halves[0] else chunks for half in halves}
    for n in range(lanes):
        offset, low, high = rng.randrange(16), rng.randrange(17), rng.randrange(17)
        two, lane = int(offset + low < 16 < offset + high), rng.randrange(8) if lanes == 8 else 2 * n
        mine = next(both[half] for half in halves if half >> (2 * n // lanes) & 1)
        for i in range(1 << size):
            place = offset + i
            byte = mine[(lane + (two and place >= 16)) % 8][place % 16]
            packed += bytes([byte if low <= i < high else fill[i & 1]])
        pieces.append({"offset": offset, "low": low, "high": high, "two": two} | ({"lane": lane} if lanes == 8 else {}))
    read = {"pieces": pieces, "size": size, "fill": int.from_bytes(fill, "little"), "tag": tag, "reads": 1}
    steps = []
    for half in halves:
        step = read | ({"halves": half, "last": half == halves[-1]} if lanes == 8 else {})
        steps.append({"chunks": [int.from_bytes(chunk, "little") for chunk in both[half]], "read": step})
    return steps, packed


@pytest.mark.parametrize("idle", [0.0, 0.5])
@pytest.mark.parametrize("lanes", PARAMS)
def test_random(lanes, idle):
    dut = elaborated(PiecePacker, PARAMS[lanes], TAG)
    rng = random.Random(SEED)
    made = [answers(lanes, rng, tag) for tag in range(150)]
    steps = [step for some, _ in made for step in some]
    sent, got = [], []

    async def source(ctx):
        sent.extend(await send(ctx, dut.i, steps, idle=idle, seed=SEED))

    async def sink(ctx):
        cycle = 0
        async for _, _, valid, payload in ctx.tick().sample(dut.o.valid, dut.o.payload):
            if valid:
                got.append((cycle, payload))
            cycle += 1
            if len(got) == len(made):
                return

    simulate(dut, source, sink)
    last = [cycle for cycle, step in zip(sent, steps, strict=True) if lanes == 2 or step["read"]["last"]]
    assert [cycle for cycle, _ in got] == [cycle + PiecePacker.LATENCY for cycle in last]
    for tag, ((_, payload), (_, packed)) in enumerate(zip(got, made, strict=True)):
        data = b"".join(lane.to_bytes(16, "little") for lane in payload["data"])
        assert payload["tag"] == tag
        assert data.startswith(packed), f"request {tag}: {packed.hex()}, not {data.hex()}"
