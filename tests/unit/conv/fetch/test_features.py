"""Pieces of random places against what a byte of a piece is, said byte by byte."""

import random

import pytest

from tilewright.golden.conv.job import parts_of
from tilewright.hw.conv.fetch.features import PieceMaker
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CHANNELS_AT_ONCE, CONV_PRESETS, ConvOperation, ConvParams
from tilewright.verify.pysim.conv_fetch import (
    FETCH_MODES,
    FetchArray,
    FetchGatherer,
    dense_job,
    make_path,
    run_jobs,
    start_job,
    wanted_sets,
)
from tilewright.verify.pysim.conv_plan import plan_of
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import unpacker
from tilewright.verify.random.conv_jobs import random_jobs

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


FEATURES_SEED, LANES_SEED = 22, 49
SMEM = SmemParams(16384)
FEATURES_PARAMS = {
    **{name: ConvUnitParams(CONV_PRESETS[name], SMEM) for name in ("unit", "ecp5", "default")},
    # Sets of several requests; rows of one slave that are less than a request; blocks that never come by pairs.
    "wide": ConvUnitParams(ConvParams(64, 2, 4, feature_rows=16, results=8, types=("i8", "i16")), SMEM),
    "one-slave": ConvUnitParams(ConvParams(16, 1, 8, results=4, types=("i8",)), SMEM),
    "one-unit": ConvUnitParams(ConvParams(16, 2, 1, feature_rows=4, results=4, types=("i8", "i16")), SMEM),
}


def some_jobs(params, seed, count, *, most=300, lanes=False):
    """Random jobs of at most so many requests."""
    jobs, conv = [], params.conv
    for job in random_jobs(seed, conv, (24 if lanes else 8) * count, most_macs=900,
                           smem_bytes=params.smem.size_bytes):  # fmt: skip
        plan = plan_of(job.fields, conv)
        if lanes and not plan.shape.operation.lanes:
            continue
        requests = 1 + conv.units * conv.row_bytes // (params.lanes * min(16, plan.block_bytes))
        # The cycles of the array are sets, or as many for each channel of a slave.
        if (plan.fetch_cycles if plan.shape.operation.lanes else plan.mac_cycles * requests) <= most:
            jobs.append((job.fields, job.smem))
    return jobs[:count]


#: All modes with one unit, and all units with the last mode.
CASES = [
    (preset, mode) if preset == "unit" or mode == "both" else pytest.param(preset, mode, marks=pytest.mark.long)
    for preset in FEATURES_PARAMS
    for mode in FETCH_MODES
]


@pytest.mark.parametrize(("preset", "mode"), CASES)
def test_random_jobs(preset, mode):
    run_jobs(FEATURES_PARAMS[preset], some_jobs(FEATURES_PARAMS[preset], f"{FEATURES_SEED} {preset} {mode}", 4), mode)


#: Preset, granularity, channels, operation; requests that two successive sets take, and so cycles.
RATES = {
    "a row is a request": ("default", 5, 32, ConvOperation.CONVOLUTION, 2),
    "pairs": ("default", 5, 64, ConvOperation.CONVOLUTION, 2),
    "three blocks": ("default", 5, 96, ConvOperation.CONVOLUTION, 2),
    "folded twice": ("default", 4, 32, ConvOperation.CONVOLUTION, 2),
    "folded four times": ("default", 3, 16, ConvOperation.CONVOLUTION, 4),
    "folded 16 times": ("default", 1, 2, ConvOperation.CONVOLUTION, 16),
    "small": ("ecp5", 4, 16, ConvOperation.CONVOLUTION, 2),
    "small pairs": ("ecp5", 4, 32, ConvOperation.CONVOLUTION, 2),
}


@pytest.mark.parametrize("name", RATES)
def test_a_request_a_cycle(name):
    """Exact numbers of requests, and no cycle without one as soon as the second tile has been walked."""
    preset, granularity, channels, operation, requests = RATES[name]
    # With room for more sets than are under way at once.
    params = ConvUnitParams(CONV_PRESETS[preset].replace(feature_rows=64), SMEM)
    job = dense_job(params, granularity, channels, operation=operation)
    ((made, cycles, sets),) = run_jobs(params, [job])
    assert 2 * len(made) == requests * sets
    places = params.conv.units * params.conv.row_bytes >> granularity + params.place_pairs
    # The first place comes 1 cycle after the start, the first request 7 after the last place of the tile.
    assert cycles[0] == places + 8
    if places + 2 < requests * 9 * -(-channels >> granularity) // 2:
        assert cycles == list(range(cycles[0], cycles[0] + len(cycles)))


@pytest.mark.parametrize(
    "preset",
    [name if name in ("unit", "default") else pytest.param(name, marks=pytest.mark.long) for name in FEATURES_PARAMS],
)
def test_pairs(preset):
    """Blocks of a whole row, an even and an odd number of them, the last one cut short; merged columns; two passes."""
    params = FEATURES_PARAMS[preset]
    row = params.conv.row_bytes
    shape = {"width": 5, "height": 2, "out_channels": CHANNELS_AT_ONCE * params.conv.slaves + 1}
    jobs = [
        dense_job(params, row.bit_length() - 1, channels, kernel=(3, 1), merge=merge, raster=raster, **shape)
        for channels, merge, raster in ((2 * row - 1, 1, 0), (2 * row + 3, 1, 1), (row // 2 + 5, 3, 1), (row - 2, 2, 0))
    ]
    run_jobs(params, jobs, "both")


BLOCKS = [(3, 24, 2 / 3), (3, 8, 0), (1, 5, 2 / 3), (4, 32, 1 / 2)]


@pytest.mark.parametrize(("granularity", "channels", "share"), BLOCKS)
def test_blocks_of_the_same_points(granularity, channels, share):
    """Of each set but the first one of its pixels, the gatherer is told that the same points have been asked for."""
    params = FEATURES_PARAMS["default"]
    path = elaborated(make_path, params)
    gatherer, array = FetchGatherer(path, FEATURES_SEED, 0.1, 0.2), FetchArray(path, FEATURES_SEED, 0.2)

    async def bench(ctx):
        for raster in (0, 1):
            fields, gatherer.smem = dense_job(params, granularity, channels, raster=raster, width=9)
            array.expected = [(*each, f"raster {raster}") for each in wanted_sets(fields, gatherer.smem, params)]
            await start_job(ctx, path, fields)
            while array.expected or array.held:
                await ctx.tick()

    simulate(path, bench, background=[gatherer.serve, array.watch_writes, array.serve])
    assert gatherer.again == share * len(gatherer.requests) and gatherer.requests


def test_only_bytes_of_x_are_read():
    """A tensor at the end of memory: what lies behind the ends of lines and pixels is not asked for."""
    params = FEATURES_PARAMS["unit"]
    for merge in (1, 3):
        fields, smem = dense_job(params, 3, 5, width=6, merge=merge)
        ((made, _, _),) = run_jobs(params, [(fields, smem)])
        x = parts_of(fields)["x"]
        assert {place for read in made for place in read} == set(range(x.address, x.end))


@pytest.mark.parametrize("cycles", [5, 23, 60, 131])
def test_reset(cycles):
    """In the middle of a job: the next one finds nothing of it, and all room."""
    params = FEATURES_PARAMS["unit"]
    path = elaborated(make_path, params)
    gatherer, array = FetchGatherer(path, cycles, 0.2, 0.3), FetchArray(path, cycles, 0.3)
    (before, smem), after = dense_job(params, 3, 16), dense_job(params, 4, 32, width=5)
    gatherer.smem = smem

    async def bench(ctx):
        array.expected = [(*each, "before") for each in wanted_sets(before, smem, params)]
        await start_job(ctx, path, before)
        await ctx.tick().repeat(cycles)
        ctx.set(path.reset, 1)
        await ctx.tick()
        ctx.set(path.reset, 0)
        assert not ctx.get(path.fetcher.busy)
        array.expected = [(*each, "after") for each in wanted_sets(*after, params)]
        await start_job(ctx, path, after[0])
        while array.expected or array.held:
            await ctx.tick()

    simulate(path, bench, background=[gatherer.serve, array.watch_writes, array.serve])


def test_late_release():
    """Without a release as many sets are asked for as there is room for, and a pair only if there is room for both."""
    params = FEATURES_PARAMS["unit"]
    path = elaborated(make_path, params)
    fields, smem = dense_job(params, 4, 48, kernel=(1, 1))
    gatherer = FetchGatherer(path, 0, 0, 0)
    gatherer.smem = smem

    async def release(ctx):
        ctx.set(path.fetcher.release, 1)
        await ctx.tick()
        ctx.set(path.fetcher.release, 0)
        await ctx.tick().repeat(20)

    async def bench(ctx):
        await start_job(ctx, path, fields)
        await ctx.tick().repeat(60)
        # Of four sets the first three are those of a tile: two, and one; the fourth would be the first of a pair.
        assert len(gatherer.requests) == 3
        await release(ctx)
        assert len(gatherer.requests) == 5
        await release(ctx)
        assert len(gatherer.requests) == 6

    simulate(path, bench, background=[gatherer.serve])


#: Preset, granularity, channels, and what else is given; whether lines stay.
LANES = {
    "a request for four points": ("default", 5, 64, {}, True),
    "a request for eight points": ("default", 4, 24, {"width": 50}, True),
    "less than a request": ("default", 5, 32, {"width": 3}, True),
    "folded 16 times": ("default", 1, 6, {"width": 60}, True),
    "pooling": ("ecp5", 4, 20, {"operation": ConvOperation.SUM_POOL}, True),
    "pairs of columns": ("default", 5, 40, {"stride": (2, 2), "kernel": (5, 3)}, True),
    "pairs of columns, all of them": ("ecp5", 4, 16, {"stride": (2, 1), "kernel": (4, 2)}, True),
    "no pairs": ("default", 5, 40, {"stride": (2, 2), "dilation": (2, 1)}, True),
    "words of one line": ("default", 5, 40, {"stride": (2, 3)}, False),
    "many rows of the kernel": ("default", 4, 16, {"kernel": (13, 5), "width": 9, "height": 2}, False),
}


@pytest.mark.parametrize("name", LANES)
def test_lanes(name):
    """As many requests as the golden model says, and no cycle without one: two passes' rows of the kernel have room."""
    preset, granularity, channels, others, keeps = LANES[name]
    params = ConvUnitParams(CONV_PRESETS[preset], SMEM)
    job = dense_job(params, granularity, channels, **{"operation": ConvOperation.DEPTHWISE} | others)
    ((made, cycles, _),) = run_jobs(params, [job])
    plan = plan_of(job[0], params.conv)
    assert plan.keeps_lines == keeps and len(made) == plan.fetch_cycles
    # The first request comes 8 cycles after the start.
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles))) and cycles[0] == 8


@pytest.mark.parametrize(
    ("preset", "mode"),
    [
        (preset, mode)
        if preset == "unit" or (preset, mode) == ("default", "both")
        else pytest.param(preset, mode, marks=pytest.mark.long)
        for preset in FEATURES_PARAMS
        if preset != "one-unit"
        for mode in FETCH_MODES
    ],
)
def test_random_lanes(preset, mode):
    """Few words, so that lines wait for room."""
    params = FEATURES_PARAMS[preset]
    least = max(256, CHANNELS_AT_ONCE * 16 * params.lanes)
    for weight_bytes in (least, 4 * least):
        small = params.replace(conv=params.conv.replace(weight_bytes=weight_bytes))
        run_jobs(small, some_jobs(small, f"{LANES_SEED} {preset} {mode}", 3, lanes=True), mode)
