"""The grouper: groups of every mode, with what is known of the pass; stalls, rate, latency."""

import random

import pytest

from support.conv import conv_units
from support.selection import grid
from support.streams import pulse
from tilewright.hw.conv.params import FOLDS
from tilewright.hw.conv.result.groups import Grouper, LinePairs
from tilewright.hw.conv.result.layouts import GroupPlaceLayout, ResultSizes
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

PARAMS = conv_units("unit", "pairs", "default", smem=1024)
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
                ends = {name: wanted[name] for name in ("group_last", "tile_last", "pass_last")}
                yield first | {"both": 1, "last": place["last"]}, expected | ends | {"both": 1}
                continue
            yield first, expected
        if several and wanted["place"] % 2 == 0:
            held = place, wanted
        else:
            yield place, wanted
    assert not held


def run_jobs(dut, jobs, begin, mode, end=None):
    """Jobs, each of a plan, places and what must come of them, one behind the other; cycles in which that is taken.

    ``begin`` sets the plan of a job when the one before is over.
    """
    stalls, times = STALL_MODES[mode], []

    async def source(ctx):
        for plan, places, _ in jobs:
            await begin(ctx, plan)
            await send(ctx, dut.i, places, idle=stalls["idle"])
            await ctx.tick()

    async def sink(ctx):
        for plan, _, wanted in jobs:
            came, cycles = await receive(ctx, dut.o, len(wanted), stall=stalls["stall"])
            for payload, each in zip(came, wanted, strict=True):
                assert {name: payload[name] for name in each} == each, plan
            times.append(cycles)
        if end:
            await end(ctx)

    simulate(dut, source, sink, background=[watch_stream(dut.o, "o")], deadline=40_000)
    return times


def run(name, plans, mode):
    dut = elaborated(Grouper, PARAMS[name])

    async def begin(ctx, plan):
        while ctx.get(dut.o.valid):
            await ctx.tick()
        ctx.set(dut.plan, plan)
        await pulse(ctx, dut.start)

    return run_jobs(dut, [(plan, *zip(*in_pairs(PARAMS[name], plan), strict=True)) for plan in plans], begin, mode)


@grid(lambda name, mode: name != "default" or mode == "both", name=PARAMS, mode=STALL_MODES)
def test_places(name, mode):
    i16 = "i16" in PARAMS[name].conv.types
    run(name, [plan for plan in PLANS if i16 or not plan["wide"]], mode)


def test_full_rate_and_latency():
    (cycles,) = run("unit", PLANS[:1], "none")
    assert cycles == list(range(2, 2 + len(cycles)))


SEED = 61

SECOND = {"y": 300, "addend": 1000}
_LASTS = ("tile_last", "pass_last")


def some_group(rng, params):
    """Places of a group: none that is there follows one that is not, and none is alone in front of one that is not."""
    names = [name for name, _ in GroupPlaceLayout(params)]
    count = rng.choice([1, 2, rng.randint(1, FOLDS), FOLDS])
    there, paired = rng.randrange(count + 1), rng.randrange(count + 1)
    shared = {"channels": rng.randrange(16), "any": there > 0}
    ends = {name: rng.getrandbits(1) for name in _LASTS}
    return [
        dict.fromkeys(names, 0)
        | shared
        | {"there": number < there, "alone": number >= paired, "place": rng.randrange(8)}
        | {"y": rng.randrange(1024), "addend": rng.randrange(1024)}
        | ({"both": rng.getrandbits(1)} if "both" in names else {})
        | ({"group_last": 1} | ends if number == count - 1 else {})
        for number in range(count)
    ]


def wanted(groups, pairs):
    for group in groups:
        if not pairs:
            yield from group
            continue
        yield from (place | dict.fromkeys(_LASTS, 0) for place in group)
        for place in group:
            below = {name: (place[name] + SECOND[name]) % 1024 for name in SECOND}
            there = place["there"] and not place["alone"]
            yield place | below | {"second": 1, "there": there, "any": place["any"] and not group[0]["alone"]}


def line_pairs_run(name, jobs, mode="none"):
    """Jobs, each of ``pairs`` and groups, one behind the other; the cycles in which places are taken."""
    dut = elaborated(LinePairs, PARAMS[name])

    async def begin(ctx, pairs):
        while not ctx.get(dut.idle):
            await ctx.tick()
        ctx.set(dut.plan, {"pairs": pairs, "second": SECOND})

    async def end(ctx):
        await ctx.tick()
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)

    work = [(pairs, [place for group in groups for place in group], list(wanted(groups, pairs)))
            for pairs, groups in jobs]  # fmt: skip
    return run_jobs(dut, work, begin, mode, end)


@pytest.mark.parametrize("name", ["unit", "default"])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_groups(mode, name):
    """Jobs with pairs and jobs without."""
    rng = random.Random(f"{SEED} {mode}")
    jobs = [(number % 3 != 1, [some_group(rng, PARAMS[name]) for _ in range(8)]) for number in range(6)]
    line_pairs_run(name, jobs, mode)


def test_line_pairs_full_rate_and_latency():
    """A place a cycle, from the cycle on behind that of the first one, in both lines."""
    rng = random.Random(SEED)
    groups = [some_group(rng, PARAMS["unit"]) for _ in range(8)]
    (cycles,) = line_pairs_run("unit", [(True, groups)])
    assert cycles == list(range(cycles[0], cycles[0] + 2 * sum(map(len, groups))))
    # The plan is set in one cycle, and the place offered in the next one.
    assert cycles[0] == 1
