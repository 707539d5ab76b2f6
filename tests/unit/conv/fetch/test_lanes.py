"""The walk of lane-private mode against loops: tags, addresses, columns and rows of every request, in any rhythm."""

import random

import pytest

from tilewright.hw.conv.fetch.lanes import LaneWalker
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS, KERNEL_ROWS, ConvParams
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import unpacker

SEED = 48
SIZE = 4096
PARAMS = {
    **{name: ConvUnitParams(CONV_PRESETS[name], SmemParams(SIZE)) for name in ("unit", "default")},
    "wide": ConvUnitParams(ConvParams(64, 2, 4, feature_rows=16, results=8, types=("i8",)), SmemParams(SIZE)),
    "one-slave": ConvUnitParams(ConvParams(16, 1, 8, results=4, types=("i8",)), SmemParams(SIZE)),
}


def some_plan(rng, params):
    most = params.conv.row_bytes.bit_length() - 1
    granularity = rng.choice([most, rng.randint(most - 4, most)])
    group = params.conv.slaves * params.conv.row_bytes >> granularity
    columns, rows, keeps = rng.randrange(1, 6), rng.randrange(1, 4), rng.getrandbits(1)
    if rng.random() < 0.1:
        columns, rows, keeps = 13, 5, 0
    width, lines = rng.choice([1, group, group + 1, rng.randrange(1, 3 * group)]), rng.randrange(1, 6)
    rotates = params.conv.rotation and keeps and granularity >= most - 1 and rng.random() < 0.6
    raster = rotates and width >= group and rng.random() < 0.6
    planes = rng.randrange(1, columns + 1) if rotates else columns
    places = width + (rng.randrange(group) if rotates else 0)
    blocks, pci = rng.choice([1, 2]), 1 << granularity
    plan = {
        "lanes": 1,
        "granularity": granularity,
        "keeps": keeps,
        "pool": int(rng.random() < 0.3),
        "last_step": columns - 1,
        "last_kernel_row": rows - 1,
        "raster": raster,
        "stride": rng.randrange(3),
        "last_plane": planes - 1,
        "last_group": -(-(raster * (group - 1) + places) // group) - 1,
        "last_place": places - 1,
        "last_column": width - 1,
        "last_row": lines - 1,
        "last_image": rng.randrange(2),
        "last_pass": blocks - 1,
        "pixel_bytes": blocks * pci - rng.randrange(pci),
        "position_step": rng.randrange(1, 4),
        "position_end": rng.randrange(1, 90),
        "row_step": rng.randrange(1, 4),
        "row_end": rng.randrange(1, 30),
    }
    plan |= {name: rng.randrange(SIZE) for name in ("x_step", "x_row", "k", "k_pitch")}
    plan["kernel_stays"] = int(plan["pool"] or columns * rows <= KERNEL_ROWS)
    plan["x"] = {name: rng.randrange(SIZE) for name in ("start", "point", "line", "image")}
    plan["position"] = {"start": rng.randrange(-9, 1), "point": rng.randrange(1, 5)}
    plan["row"] = {"start": rng.randrange(-9, 1), "line": rng.randrange(1, 4)}
    return plan  # fmt: skip


def requests(params, plan):
    """Of each request: tag; of each place x, column, and whether it is there; row."""
    granularity, slots = plan["granularity"], max(1, 1 << plan["granularity"] >> 4)
    points = params.lanes // slots  # of a request
    group = params.conv.slaves * params.conv.row_bytes >> granularity
    columns, rows, planes = plan["last_step"] + 1, plan["last_kernel_row"] + 1, plan["last_plane"] + 1
    x, position, row = plan["x"], plan["position"], plan["row"]
    pairs = (params.lanes == 8 and params.pairs and plan["kernel_stays"] and granularity >= 4 and planes > 1
             and position["point"] % 2 == 0 and plan["position_step"] % 2 == 1
             and not (granularity == 5 and plan["x_step"] // 16 % 2))  # fmt: skip
    word, kernel_row, tap = 0, 0, 0

    def kernel(block):
        nonlocal kernel_row, tap
        tag = {
            "kernel": 1,
            "slaves": 0,
            "word": kernel_row % KERNEL_ROWS,
            "period": granularity,
            "pair": 0,
            "turned": 0,
        }
        kernel_row, tap = kernel_row + 1, (tap + 1) % (columns * rows)
        at = plan["k"] + (tap - 1) % (columns * rows) * plan["k_pitch"] + (block << granularity)
        return tag, at, None, None

    for block in range(plan["last_pass"] + 1):
        if plan["kernel_stays"] and not plan["pool"]:
            yield from (kernel(block) for _ in range(columns * rows))
        for number in range((plan["last_image"] + 1) * (plan["last_row"] + 1)):
            image, line = divmod(number, plan["last_row"] + 1)
            # In raster order a line begins where the point above it ended, in what is counted from a whole group.
            begin = line // (plan["stride"] + 1) * (plan["last_column"] + 1) % group if plan["raster"] else 0
            for first in range(0, (plan["last_group"] + 1) * group, group):
                # Of the last words there is a point at least, all of the others.
                last = first == plan["last_group"] * group
                width = max(begin + plan["last_place"], first) + 1 if last else first + group
                for kh in range(1 if plan["keeps"] else rows):
                    kw = 0
                    while kw < planes:
                        together = 2 if pairs and kw + 1 < planes else 1
                        if not plan["kernel_stays"]:
                            yield kernel(block)
                        parts = -(-min(group, width - first) // points)
                        for turned in range(together):
                            for part in range(parts):
                                places = []
                                for lane in range(params.lanes):
                                    column = first + part * points + lane // slots
                                    offset = column - begin
                                    tap_column = kw + (together == 2 and turned != (2 * lane >= params.lanes))
                                    places.append((
                                        x["start"] + image * x["image"] + line * x["line"] + kh * plan["x_row"]
                                        + offset * x["point"] + tap_column * plan["x_step"] + (block << granularity),
                                        position["start"] + offset * position["point"]
                                        + tap_column * plan["position_step"],
                                        column < width))  # fmt: skip
                                tag = {"kernel": 0, "slaves": 1, "word": word % params.words, "part": part,
                                       "period": min(granularity, 4) + params.lanes.bit_length() - 1,
                                       "pair": together == 2, "turned": turned,
                                       "complete": (turned, part) == (together - 1, parts - 1)}  # fmt: skip
                                at = row["start"] + line * row["line"] + kh * plan["row_step"]
                                yield tag, None, places, (at, max(0, plan["pixel_bytes"] - (block << granularity)))
                        word, kw = word + together, kw + together


@pytest.mark.parametrize("preset", PARAMS)
def test_requests(preset):
    params, rng = PARAMS[preset], random.Random(f"{SEED} {preset}")
    dut = elaborated(LaneWalker, params)
    unpack, unpack_tag = unpacker(dut.offsets.shape()), unpacker(dut.tag.shape())
    unpack_places = unpacker(dut.places.shape())

    def check(ctx, plan, waiting):
        if len(waiting) < 2:
            return
        request, found = waiting.pop(0), unpack(ctx.get(dut.offsets.as_value()))
        if not request:
            return
        _, kernel, places, of_row = request
        assert found.kernel == (kernel is not None) and found.second == 0
        if kernel is not None:
            assert found.x == kernel % SIZE, plan
            return
        row, rest = of_row
        assert (found.row_begin, found.row_end, found.rest) == (-row, plan["row_end"] - row, min(rest, 128))
        assert found.position_end == plan["position_end"] - found.position - 1
        shown = unpack_places(ctx.get(dut.places.as_value()))
        lanes = min(params.lanes, params.conv.slaves * params.conv.row_bytes >> min(4, plan["granularity"]))
        for place, (x, position, there) in zip(shown[:lanes], places[:lanes], strict=True):
            assert place.there == there and place.row == 0, plan
            assert ((found.x + place.x) % SIZE, found.position + place.position) == (x % SIZE, position), plan

    async def bench(ctx):
        word = row = 0  # numbers go on over jobs
        for _ in range(9):
            plan = some_plan(rng, params)
            ctx.set(dut.plan, plan)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            waiting = []
            for request in requests(params, plan):
                while rng.random() < 0.2:
                    ctx.set(dut.step, 0)
                    await ctx.tick()
                    waiting.append(None)
                    check(ctx, plan, waiting)
                ctx.set(dut.step, 1)
                assert ctx.get(dut.busy)
                tag = dict(request[0])
                base, many = (row, KERNEL_ROWS) if tag["kernel"] else (word, params.words)
                tag["word"] = (base + tag["word"]) % many
                last = tag["word"] + 1 + tag["pair"]
                found = unpack_tag(ctx.get(dut.tag.as_value()))
                assert {name: found[name] for name in tag} == tag, (plan, found)
                await ctx.tick()
                waiting.append(request)
                check(ctx, plan, waiting)
            ctx.set(dut.step, 0)
            assert not ctx.get(dut.busy)
            word, row = last % params.words, ctx.get(dut.kernel_row)
            await ctx.tick()
            waiting.append(None)
            check(ctx, plan, waiting)

    simulate(dut, bench, deadline=60_000)
