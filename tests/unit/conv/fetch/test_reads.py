"""Plans of reads: every byte is in the chunk that the step says, neither output waits for the other, latency."""

import random

import pytest
from amaranth.hdl import Value

from tilewright.hw.conv.fetch.reads import GatherPlanner
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, unpacker, watch_stream

SEED = 31
COUNT = 100
SMEM = SmemParams(1024)
BYTES = SMEM.size_bytes
PARAMS = {2: ConvUnitParams(CONV_PRESETS["unit"], SMEM), 8: ConvUnitParams(CONV_PRESETS["default"], SMEM)}
TAG = 8


def requests(lanes):
    rng = random.Random(SEED)
    for tag in range(COUNT):
        base, pitch = rng.randrange(BYTES), rng.choice([6, 14, 16, 20, 100, -9])
        pieces = []
        for n in range(lanes):
            low, high = rng.choice([(0, 16), (0, 16), (0, 8), (3, 9), (7, 16), (0, 0), (9, 2)])
            pieces.append({"address": (base + n * pitch) % BYTES, "low": low, "high": high})
        yield {"pieces": pieces, "size": 4, "fill": rng.getrandbits(16), "tag": tag}


def wanted(piece):
    """Addresses of the bytes of a piece, by their places."""
    return {i: (piece["address"] + i) % BYTES for i in range(piece["low"], piece["high"])}


def brought(step, read, n):
    """Addresses of the bytes that a read brings of piece n, by their places."""
    piece, found = step["pieces"][n], {}
    first = piece["lane"] if len(step["pieces"]) == 8 else 2 * n
    for i in range(piece["low"], piece["high"]):
        place = (piece["offset"] + i) % 16
        lane = (first + (piece["two"] and place < piece["offset"])) % 8
        assert read["lanes"] >> lane & 1, f"lane {lane} was not asked for"
        found[i] = 16 * read["chunks"][lane] + place
    return found


def check(requests, steps, reads):
    """Goes through the steps of each request and the reads that belong to them."""
    steps, reads, lanes = iter(steps), iter(reads), len(requests[0]["pieces"])
    for request in requests:
        missing = {n for n, piece in enumerate(request["pieces"]) if wanted(piece)}
        last, count = False, 0
        while not last:
            step = next(steps)
            assert all(step[name] == request[name] for name in ("size", "fill", "tag"))
            assert step["reads"] == bool(missing)
            last, halves = (step["last"], step["halves"]) if lanes == 8 else (1, 3)
            if step["reads"]:
                read, count = next(reads), count + 1
                now = {n for n in missing if halves >> (2 * n // lanes) & 1}
                assert now, "a read that brings nothing"
                for n in now:
                    assert brought(step, read, n) == wanted(request["pieces"][n])
                missing -= now
        assert not missing
        assert count <= (2 if lanes == 8 else 1)
    assert next(steps, None) is None
    assert next(reads, None) is None


def run(lanes, items, *, idle=0.0, stall=0.0, blocked=None):
    """All steps and reads; of a ``blocked`` stream those that come in the first 40 cycles are kept waiting."""
    dut = elaborated(GatherPlanner, PARAMS[lanes], TAG)
    steps, reads, cycles = [], [], {}

    async def source(ctx):
        cycles["i"] = await send(ctx, dut.i, items, idle=idle, seed=SEED)

    def sink(name, into):
        async def take(ctx):
            if blocked == name:
                await ctx.tick().repeat(40)
            times = cycles[name] = []
            port, rng = getattr(dut, name), random.Random(f"{SEED}{name}")
            unpack = unpacker(port.payload.shape())
            ticks = aiter(ctx.tick().sample(port.valid, port.ready, Value.cast(port.payload)))
            for cycle in range(12 * len(items) + 60):
                ctx.set(port.ready, rng.random() >= stall)
                _, _, valid, ready, bits = await anext(ticks)
                if valid and ready:
                    into.append(unpack(bits))
                    times.append(cycle)
            ctx.set(port.ready, 0)

        return take

    watched = [watch_stream(dut.reads), watch_stream(dut.steps)]
    simulate(
        dut, source, sink("steps", steps), sink("reads", reads), background=watched, deadline=20 * len(items) + 200
    )
    return steps, reads, cycles


@pytest.mark.parametrize(
    ("lanes", "mode"),
    [
        pytest.param(lanes, mode, marks=[] if lanes == 2 or mode == "both" else pytest.mark.long)
        for lanes in PARAMS
        for mode in STALL_MODES
    ],
)
def test_random(lanes, mode):
    items = list(requests(lanes))
    steps, reads, _ = run(lanes, items, **STALL_MODES[mode])
    check(items, steps, reads)


@pytest.mark.parametrize("lanes", PARAMS)
@pytest.mark.parametrize("blocked", ["steps", "reads"])
def test_one_side_waits(lanes, blocked):
    items = list(requests(lanes))
    steps, reads, _ = run(lanes, items, blocked=blocked)
    check(items, steps, reads)


@pytest.mark.parametrize(("lanes", "latency"), [(2, 1), (8, 3)])
def test_full_rate_and_latency(lanes, latency):
    pieces = [{"address": 16 * n, "low": 0, "high": 16} for n in range(lanes)]
    _, _, cycles = run(lanes, [{"pieces": pieces, "size": 4, "fill": 0, "tag": n} for n in range(20)])
    assert cycles["i"] == list(range(20))
    assert cycles["steps"] == list(range(latency, latency + 20))
    assert cycles["reads"] == list(range(latency + 1, latency + 21))


def test_a_request_of_one_lane():
    one = ConvUnitParams(CONV_PRESETS["unit"].replace(units=1), SMEM)
    dut = elaborated(GatherPlanner, one, TAG)

    async def bench(ctx):
        ctx.set(dut.steps.ready, 1)
        await send(ctx, dut.i, [{"pieces": [{"address": 1023, "low": 0, "high": 2}], "size": 1, "fill": 0, "tag": 0}])
        (read,), _ = await receive(ctx, dut.reads, 1)
        assert (read["lanes"], list(read["chunks"])[:2]) == (3, [63, 0])

    simulate(dut, bench)
