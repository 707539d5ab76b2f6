"""The table of places: each lane finds the place of its piece, in all orders; two tiles at most; a place a cycle."""

import random

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS, ConvParams
from tilewright.hw.conv.fetch.table import PlaceTable
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import send
from tilewright.sim.pysim.unpacked import unpacker

SEED = 24
SMEM = SmemParams(4096)
PARAMS = {
    **{name: ConvUnitParams(CONV_PRESETS[name], SMEM) for name in ("unit", "default")},
    "wide": ConvUnitParams(ConvParams(64, 4, 4, feature_rows=16, results=16, types=("i8",)), SMEM),
    "one-unit": ConvUnitParams(ConvParams(16, 2, 1, feature_rows=4, results=4, types=("i8",)), SMEM),
}


def tile(rng, params, plan):
    """Places; some are one with the one before, if they may: as many bytes and columns farther as points are."""
    rows = params.conv.units
    count = rows * params.conv.row_bytes >> plan["granularity"]
    final, places = rng.getrandbits(1), []
    for number in range(count):
        values = {"x": rng.randrange(4096), "position": rng.randint(-500, 500), "row": rng.randint(-9, 99)}
        place = {"there": rng.getrandbits(1), "last": number == count - 1, "final": number == count - 1 and final,
                 "values": values, "second": False}  # fmt: skip
        if params.place_pairs and number % 2 and rng.random() < 0.7:
            before = places[-1]["values"]
            values |= {"row": before["row"], "x": (before["x"] + plan["x"]["point"]) % 4096,
                       "position": before["position"] + plan["position"]["point"]}  # fmt: skip
            place |= {"there": places[-1]["there"], "second": True}
        places.append(place)
    return places


def as_sent(params, places):
    """What comes of places: two as one."""
    for place, following in zip(places, [*places[1:], None], strict=True):
        if place["second"]:
            continue
        both = following is not None and following["second"]
        sent = {name: value for name, value in place.items() if name != "second"}
        if params.place_pairs:
            sent["both"] = both
        yield sent | ({"last": following["last"], "final": following["final"]} if both else {})


def asked(rng, params, plan, places):
    """Requests of a tile: (part, pair, place of each lane or None), all of them, in any order."""
    lanes, slots = params.lanes, params.row_slots
    pieces = max((1 << plan["granularity"]) // 16, 1)
    parts = -(-len(places) * pieces // lanes)
    requests = [(part, 0, [(part * lanes + lane) // pieces for lane in range(lanes)]) for part in range(parts)]
    if params.pairs and 1 << plan["granularity"] == params.conv.row_bytes:
        # Half of the lanes for each block: (block, place, slot).
        half = lanes // 2
        requests += [
            (part, 1, [(part * half + lane % half) // slots for lane in range(lanes)]) for part in range(2 * parts)
        ]
    rng.shuffle(requests)
    return [
        (part, pair, [places[number] if number < len(places) else None for number in numbers])
        for part, pair, numbers in requests
    ]


@pytest.mark.parametrize("preset", PARAMS)
def test_lanes_find_their_places(preset):
    params, rng = PARAMS[preset], random.Random(f"{SEED} {preset}")
    dut = elaborated(PlaceTable, params)
    unpack = unpacker(dut.o.shape())
    most = params.conv.row_bytes.bit_length() - 1
    steps = {"x": {"point": 77}, "position": {"point": 13}}
    plans = [{"granularity": size} | steps for size in range(most - 4, most + 1)]
    work = [(plan, [tile(rng, params, plan) for _ in range(4)]) for plan in plans]

    async def source(ctx):
        for plan, tiles in work:
            ctx.set(dut.plan, plan)
            await send(ctx, dut.i, [place for places in tiles for place in as_sent(params, places)], seed=len(tiles))
            while ctx.get(dut.full):
                await ctx.tick()
            await ctx.tick().repeat(4)

    async def reader(ctx):
        waiting = []  # places of the requests of one and two cycles ago
        for plan, tiles in work:
            for places in tiles:
                requests = asked(rng, params, plan, places)
                for number, (part, pair, wanted) in enumerate(requests):
                    while not ctx.get(dut.full) or rng.random() < 0.2:
                        ctx.set(dut.take, 0)
                        waiting = await self_check(ctx, [*waiting, None])
                    assert ctx.get(dut.final) == places[-1]["final"]
                    ctx.set(dut.part, part)
                    ctx.set(dut.pair, pair)
                    ctx.set(dut.take, number == len(requests) - 1)
                    waiting = await self_check(ctx, [*waiting, wanted])
                ctx.set(dut.take, 0)

    async def self_check(ctx, waiting):
        await ctx.tick()
        if len(waiting) < 2:
            return waiting
        for lane, (found, place) in enumerate(zip(unpack(ctx.get(dut.o.as_value())), waiting[0] or [], strict=False)):
            if place is not None:
                wanted = {"there": place["there"]} | place["values"]
                assert {name: found[name] for name in wanted} == wanted, (lane, waiting[0])
        return waiting[1:]

    simulate(dut, source, reader)


def test_two_tiles_at_most():
    params = PARAMS["unit"]
    dut, plan = elaborated(PlaceTable, params), {"granularity": 4}
    places = tile(random.Random(SEED), params, plan)
    taken = []

    async def source(ctx):
        ctx.set(dut.plan, plan)
        taken.extend(await send(ctx, dut.i, list(as_sent(params, places)) * 3))

    async def reader(ctx):
        await ctx.tick().repeat(20)
        assert ctx.get(dut.full) and not ctx.get(dut.i.ready)
        ctx.set(dut.take, 1)
        await ctx.tick()
        ctx.set(dut.take, 0)

    simulate(dut, source, reader)
    count = len(places)
    # The half is left after the strobe, and its last places have been read one cycle later.
    assert taken == [*range(2 * count), *range(22, 22 + count)]
