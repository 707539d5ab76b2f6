"""The walk over sets against four loops: tags and offsets of every request, in any rhythm; one a cycle."""

import random

import pytest

from tilewright.hw.conv.fetch.sets import SetWalker
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS, ConvParams
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import unpacker

SEED = 25
SIZE = 4096
PARAMS = {
    **{name: ConvUnitParams(CONV_PRESETS[name], SmemParams(SIZE)) for name in ("unit", "default")},
    "wide": ConvUnitParams(ConvParams(64, 2, 4, feature_rows=16, results=8, types=("i8",)), SmemParams(SIZE)),
    "floats": ConvUnitParams(CONV_PRESETS["unit"].replace(types=("i8", "f16")), SmemParams(SIZE)),
    "one-slave": ConvUnitParams(ConvParams(16, 1, 8, results=4, types=("i8",)), SmemParams(SIZE)),
}


def some_plan(rng, params):
    most = params.conv.row_bytes.bit_length() - 1
    granularity = rng.choice([most, rng.randint(most - 4, most)])
    blocks, pci = rng.choice([1, 2, 3, 4]), 1 << granularity
    pixel = blocks * pci - rng.randrange(pci)
    names = ("x_step", "x_row")
    return {"granularity": granularity, "merged": rng.getrandbits(1),
            "pixel_bytes": pixel, "last_bytes": rng.choice([pixel, rng.randint(1, pixel)]), "last_block": blocks - 1,
            "last_step": rng.randrange(3), "last_kernel_row": rng.randrange(3), "position_step": rng.randrange(1, 99),
            "position_end": rng.randrange(1, 999), "row_step": rng.randrange(1, 9), "row_end": rng.randrange(1, 99),
            } | {name: rng.randrange(SIZE) for name in names} | (
                {"floats": rng.getrandbits(1)} if params.floats else {})  # fmt: skip


def requests(params, plan, finals):
    """Of each tile of ``finals`` the requests: part, pair, last of the tile; tag; offsets."""
    conv, pci = params.conv, 1 << plan["granularity"]
    size = min(plan["granularity"], 4)
    count = max(conv.units * conv.row_bytes // (params.lanes << size), 1)
    floats = plan.get("floats")  # blocks before steps, and no pairs
    together = 2 if params.pairs and not floats and pci == conv.row_bytes else 1
    number = 0
    for final in finals:
        walk = [
            (row, step, block, min(together, plan["last_block"] + 1 - block))
            for row in range(plan["last_kernel_row"] + 1) for step in range(plan["last_step"] + 1)
            for block in range(0, plan["last_block"] + 1, together)
        ]  # fmt: skip
        if floats:
            walk.sort(key=lambda each: (each[0], each[2], each[1]))
        for place, (row, step, block, many) in enumerate(walk):
            run = block * pci
            position = step * plan["position_step"] + plan["merged"] * run
            limit = plan["last_bytes"] if step == plan["last_step"] else plan["pixel_bytes"]
            parts = count * many
            for part in range(parts):
                last = part == parts - 1
                x = row * plan["x_row"] + step * plan["x_step"]
                tag = {"set": number, "period": size + params.lanes.bit_length() - 1, "slaves": 0, "kernel": 0,
                       "pair": many == 2, "complete": last, "part": part,
                       "flags": (place == 0, place == len(walk) - 1, final)}  # fmt: skip
                offsets = {"x": (x + run) % SIZE, "position": position,
                           "position_end": plan["position_end"] - position - (not plan["merged"]),
                           "row_begin": -row * plan["row_step"], "row_end": plan["row_end"] - row * plan["row_step"],
                           "rest": min(max(limit - run, 0), 128), "kernel": 0,
                           "second": (many == 2) and (2 - number % 2)}  # fmt: skip
                yield (part, many == 2, last and place == len(walk) - 1, final), tag, offsets
            number = (number + many) % params.sets


@pytest.mark.parametrize("preset", PARAMS)
def test_requests(preset):
    params, rng = PARAMS[preset], random.Random(f"{SEED} {preset}")
    dut = elaborated(SetWalker, params)
    unpack, unpack_tag = unpacker(dut.offsets.shape()), unpacker(dut.tag.shape())

    async def bench(ctx):
        first = 0  # sets go on over jobs
        for _ in range(12):
            plan = some_plan(rng, params)
            finals = [rng.random() < 0.5 and plan["last_block"] > 0 for _ in range(2)] + [True]
            ctx.set(dut.plan, plan)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            waiting = []
            for (part, pair, last, final), tag, offsets in requests(params, plan, finals):
                while rng.random() < 0.2:
                    ctx.set(dut.step, 0)
                    await ctx.tick()
                    waiting.append(None)
                    check(ctx, waiting)
                ctx.set(dut.step, 1)
                ctx.set(dut.final, final)
                assert (ctx.get(dut.part), ctx.get(dut.pair), ctx.get(dut.last)) == (part, pair, last), plan
                found = unpack_tag(ctx.get(dut.tag.as_value()))
                flags = found.flags
                assert (flags.first, flags.last, flags.final) == tag["flags"], plan
                tag = tag | {"set": (first + tag["set"]) % params.sets}
                assert all(found[name] == value for name, value in tag.items() if name != "flags"), (plan, tag, found)
                # Which half is for the second block goes by the number of the set.
                offsets = offsets | {"second": pair and 2 - tag["set"] % 2}
                await ctx.tick()
                waiting.append(offsets)
                check(ctx, waiting)
            ctx.set(dut.step, 0)
            first = (ctx.get(dut.tag.set)) % params.sets

    def check(ctx, waiting):
        if len(waiting) < 2:
            return
        wanted, found = waiting.pop(0), unpack(ctx.get(dut.offsets.as_value()))
        if wanted:
            assert {name: found[name] for name in wanted} == wanted

    simulate(dut, bench)
