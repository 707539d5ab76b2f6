"""The grouper: groups of every mode, with what is known of the pass; stalls, rate, latency."""

import random

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS, ConvParams
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.conv.result.groups import Grouper
from tilewright.hw.conv.result.layouts import ResultSizes
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SMEM = SmemParams(1024)
PARAMS = {
    "unit": ConvUnitParams(CONV_PRESETS["unit"], SMEM),
    "pairs": ConvUnitParams(ConvParams(16, 2, 2, feature_rows=8, weight_bytes=1024, results=4), SMEM),
    "default": ConvUnitParams(CONV_PRESETS["default"], SMEM),
}
MODES = [(0, 0, 4, 0), (0, 0, 2, 2), (1, 0, 4, 0), (1, 0, 2, 2), (1, 0, 1, 0), (1, 1, 3, 1)]
PLANS = [
    {"lanes": lanes, "wide": wide, "granularity": granularity, "result_log2": log2, "out_channels": 21}
    for lanes, wide, granularity, log2 in MODES
]


def some_places(params, plan):
    """Two tiles of each pass, and what must become of their places."""
    conv, rng = params.conv, random.Random(9)
    fold = conv.row_bytes >> plan["granularity"]
    span, together = 4 * conv.slaves, max(1, conv.results // conv.slaves)
    rows, row_places = 1, conv.units * fold
    if plan["lanes"]:
        span = (1 << plan["granularity"]) >> plan["wide"]
        rows, row_places = conv.slaves, fold
        together = max(1, min(conv.results // span, fold))
    for first in range(0, plan["out_channels"], span):
        count = min(span, plan["out_channels"] - first)
        for tile in range(2):
            for row in range(rows):
                there = rng.randint(1, row_places)
                for number in range(row_places):
                    place, y, addend = row * row_places + number, rng.randrange(1024), rng.randrange(1024)
                    last = place == rows * row_places - 1
                    yield (
                        {"there": number < there, "values": {"y": y, "addend": addend}, "last": last, "final": tile},
                        {
                            "there": number < there,
                            "y": (y + (first << plan["result_log2"])) % 1024,
                            "addend": (addend + first) % 1024,
                            "any": number - number % together < there,
                            "channels": count - 1,
                            "place": place,
                            "group_last": number % together == together - 1 or last,
                            "tile_last": last,
                            "pass_last": last and tile,
                            "job_last": last and tile and first + span >= plan["out_channels"],
                        },
                    )


def in_pairs(params, plan):
    """The same places, and some that are there and adjoin, or that are not there, as one."""
    rng, places = random.Random(2), iter(some_places(params, plan))
    grouped = not plan["lanes"] or (1 << plan["granularity"] >> plan["wide"]) < params.conv.results
    fold = params.conv.row_bytes >> plan["granularity"]
    several = ResultSizes(params).pairs and grouped and (fold > 1 or not plan["lanes"])
    held = None
    for place, wanted in places:
        if held:
            first, expected = held
            held = None
            if first["there"] == place["there"] and rng.random() < 0.7:
                ends = {name: wanted[name] for name in ("group_last", "tile_last", "pass_last", "job_last")}
                yield first | {"both": 1, "last": place["last"]}, expected | ends | {"both": 1}
                continue
            yield first, expected
        if several and wanted["place"] % 2 == 0:
            held = place, wanted
        else:
            yield place, wanted
    assert not held


def run(name, plans, mode):
    dut, stalls = elaborated(Grouper, PARAMS[name]), STALL_MODES[mode]
    work, times = [list(zip(*in_pairs(PARAMS[name], plan), strict=True)) for plan in plans], []

    async def source(ctx):
        for plan, (places, _) in zip(plans, work, strict=True):
            while ctx.get(dut.o.valid):
                await ctx.tick()
            ctx.set(dut.plan, plan)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            await send(ctx, dut.i, places, idle=stalls["idle"])

    async def sink(ctx):
        for plan, (_, wanted) in zip(plans, work, strict=True):
            came, cycles = await receive(ctx, dut.o, len(wanted), stall=stalls["stall"])
            for payload, each in zip(came, wanted, strict=True):
                assert {name: payload[name] for name in each} == each, plan
            times.append(cycles)

    simulate(dut, source, sink, background=[watch_stream(dut.o, "o")], deadline=40_000)
    return times


#: Of the largest only what stalls most.
CASES = [
    (name, mode) if name != "default" or mode == "both" else pytest.param(name, mode, marks=pytest.mark.long)
    for name in PARAMS
    for mode in STALL_MODES
]


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_places(name, mode):
    i16 = "i16" in PARAMS[name].conv.types
    run(name, [plan for plan in PLANS if i16 or not plan["wide"]], mode)


def test_full_rate_and_latency():
    (cycles,) = run("unit", PLANS[:1], "none")
    assert cycles == list(range(2, 2 + len(cycles)))
