"""Dimensions of commands in the order of the walk, against the descriptor's own order."""

import random

import pytest

from tilewright.golden.spec import Error, Mode, Opcode
from tilewright.golden.tmau.im2col import spatial_dimensions
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.dimensions import DimensionPicker
from tilewright.sim.pysim.payloads import checked_payload, listed_payload, show_dimensions
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, send
from tilewright.sim.random.maps import random_start

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]


def lookup(start, opcode=Opcode.LOAD):
    command = {
        "opcode": opcode,
        "coords": [*start.coords, *[0] * (5 - len(start.coords))],
        "offsets": [*start.offsets, *[0] * (3 - len(start.offsets))],
    }
    return {"command": command, "checked": checked_payload(start.tmap, PARAMS), "fault": {}}


def expected(start, item):
    """Members of each dimension that comes."""
    tmap, checked, listed = start.tmap, item["checked"], listed_payload(start.tmap, PARAMS)
    coords, offsets = item["command"]["coords"], item["command"]["offsets"]
    if tmap.mode == Mode.TILE:
        order, again = dict(enumerate(range(tmap.rank))), []
    else:
        spatial = spatial_dimensions(tmap)
        channel = tmap.rank - 2 if tmap.interleave else 0
        order = {0: channel, **dict(enumerate(spatial, start=1)), 4: tmap.rank - 1}
        again = range(1, 1 + len(spatial))
    visits = [(number, 0) for number in order] + [(number, 1) for number in again]
    for index, (number, is_again) in enumerate(visits):
        coord = coords[order[number]]
        spatial = tmap.mode == Mode.IM2COL and number in (1, 2, 3)
        offset = offsets[number - 1] if spatial else 0
        dimension = {
            "number": number,
            "again": is_again,
            "first": index == 0,
            "last": index == len(visits) - 1,
            "position": listed[number]["low"] - coord if is_again else coord + offset,
            **{name: value for name, value in listed[number].items() if name not in ("low", "high")},
            "contiguous": number > 0 and bool(checked.get("contiguous", [0] * 4)[number - 1]),
        }
        if spatial:
            dimension |= {name: listed[number][name] + offset for name in ("low", "high")}
        yield dimension


async def watch(ctx, dut, count, stall, seen, cycles):
    """The dimensions that come by, of which every one stays until the next step."""
    rng = random.Random(SEED)
    cycle = 0
    while len(seen) < count:
        step = rng.random() >= stall
        ctx.set(dut.step, step)
        *_, valid, dimension = await ctx.tick().sample(dut.valid, dut.o)
        if valid and step:
            seen.append(dimension)
            cycles.append(cycle)
        cycle += 1
    ctx.set(dut.step, 1)


def run(starts, items, count, mode="none"):
    """The ``count`` dimensions of ``items``, when they came, and when the items were taken."""
    dut, stall = elaborated(DimensionPicker, PARAMS), STALL_MODES[mode]
    seen, cycles, taken = [], [], []

    async def source(ctx):
        taken.extend(await send(ctx, dut.i, items, idle=stall["idle"], seed=1))

    async def sink(ctx):
        await watch(ctx, dut, count, stall["stall"], seen, cycles)

    async def lists(ctx):
        await show_dimensions(ctx, dut, [listed_payload(start.tmap, PARAMS) for start in starts])

    simulate(dut, source, sink, background=[lists])
    return seen, cycles, taken


@pytest.mark.parametrize("mode", STALL_MODES)
def test_dimensions_in_the_order_of_the_walk(mode):
    rng = random.Random(SEED)
    starts = [random_start(rng, first=0, end=1 << 20, most_bytes=4096, stores=False) for _ in range(80)]
    items = [lookup(start) for start in starts]
    wanted = [dimension for start, item in zip(starts, items, strict=True) for dimension in expected(start, item)]
    print(f"seed {SEED}")
    seen, *_ = run(starts, items, len(wanted), mode)
    for found, dimension in zip(seen, wanted, strict=True):
        assert {name: found[name] for name in dimension} == dimension
    assert any(dimension["again"] for dimension in wanted)


def test_one_dimension_a_cycle_and_three_cycles_at_least():
    rng = random.Random(SEED)
    starts = {}
    while len(starts) < 8:
        start = random_start(rng, first=0, end=1 << 20, most_bytes=4096, stores=False)
        starts[start.tmap.mode, start.tmap.rank] = start
    for (mode, rank), start in starts.items():
        count = rank if mode == Mode.TILE else 2 * rank - 2
        _, cycles, taken = run([start] * 2, [lookup(start)] * 2, 2 * count)
        stays = max(count, 3)
        assert taken == [stays - 1, 2 * stays - 1]
        assert cycles == [1 + n for n in range(count)] + [1 + stays + n for n in range(count)], "latency 1"


@pytest.mark.parametrize("change", [{"opcode": Opcode.INVALIDATE}, {"code": Error.WINDOW}])
def test_command_without_a_tensor_has_one_dimension(change):
    rng = random.Random(SEED)
    start = random_start(rng, first=0, end=1 << 20, most_bytes=4096, stores=False)
    item = lookup(start)
    item["command"]["opcode"] = change.get("opcode", Opcode.LOAD)
    item["fault"] = {"code": change.get("code", Error.NONE)}
    seen, cycles, taken = run([start] * 2, [item] * 2, 2)
    assert all(found.first and found.last for found in seen)
    assert (cycles, taken) == ([1, 4], [2, 5])
