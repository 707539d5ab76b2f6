"""Groups of both lines of a pair: the second one of each is behind the first, with the addresses of the line below."""

import random

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.params import FOLDS, ConvUnitParams
from tilewright.hw.conv.result.layouts import GroupPlaceLayout
from tilewright.hw.conv.result.line_pairs import LinePairs
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 61
PARAMS = {name: ConvUnitParams(CONV_PRESETS[name], SmemParams(1024)) for name in ("unit", "default")}
SECOND = {"y": 300, "addend": 1000}
_LASTS = ("tile_last", "pass_last", "job_last")


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


def run(name, jobs, mode="none"):
    """Jobs, each of ``pairs`` and groups, one behind the other; the cycles in which places are taken."""
    params, stalls, times = PARAMS[name], STALL_MODES[mode], []
    dut = elaborated(LinePairs, params)

    async def source(ctx):
        for pairs, groups in jobs:
            while not ctx.get(dut.idle):
                await ctx.tick()
            ctx.set(dut.plan, {"pairs": pairs, "second": SECOND})
            await send(ctx, dut.i, [place for group in groups for place in group], idle=stalls["idle"])
            await ctx.tick()

    async def sink(ctx):
        for pairs, groups in jobs:
            places = list(wanted(groups, pairs))
            came, cycles = await receive(ctx, dut.o, len(places), stall=stalls["stall"])
            for have, want in zip(came, places, strict=True):
                assert {key: have[key] for key in want} == want, want
            times.append(cycles)
        await ctx.tick()
        assert ctx.get(dut.idle) and not ctx.get(dut.o.valid)

    simulate(dut, source, sink, background=[watch_stream(dut.o, "o")], deadline=20_000)
    return times


@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize("mode", STALL_MODES)
def test_groups(mode, name):
    """Jobs with pairs and jobs without."""
    rng = random.Random(f"{SEED} {mode}")
    run(name, [(number % 3 != 1, [some_group(rng, PARAMS[name]) for _ in range(8)]) for number in range(6)], mode)


def test_full_rate_and_latency():
    """A place a cycle, from the cycle on behind that of the first one, in both lines."""
    rng = random.Random(SEED)
    groups = [some_group(rng, PARAMS["unit"]) for _ in range(8)]
    (cycles,) = run("unit", [(True, groups)])
    assert cycles == list(range(cycles[0], cycles[0] + 2 * sum(map(len, groups))))
    # The plan is set in one cycle, and the place offered in the next one.
    assert cycles[0] == 1
