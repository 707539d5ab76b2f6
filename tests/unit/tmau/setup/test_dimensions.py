"""Dimensions of commands in the order of the walk, against the descriptor's own order."""

import itertools
import random

import pytest

from support.tmau_neighbours import checked_payload, listed_payload, show_dimensions
from tilewright.golden.tmau.tile import spatial_dimensions
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.dimensions import DimensionPicker, Fold, OriginSum
from tilewright.spec import Error, Mode, Opcode
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send
from tilewright.verify.random.maps import random_start

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


def run(starts, items, count, mode="none"):
    """The ``count`` dimensions of ``items``, when they came, and when the items were accepted."""
    dut, stall, rng = elaborated(DimensionPicker, PARAMS), STALL_MODES[mode], random.Random(SEED)
    dimensions, cycles, accepted = [], [], []

    async def source(ctx):
        accepted.extend(await send(ctx, dut.i, items, idle=stall["idle"], seed=1))

    async def sink(ctx):
        cycle = 0
        while len(dimensions) < count:
            step = rng.random() >= stall["stall"]
            ctx.set(dut.step, step)
            *_, valid, dimension = await ctx.tick().sample(dut.valid, dut.o)
            if valid and step:
                dimensions.append(dimension)
                cycles.append(cycle)
            cycle += 1
        ctx.set(dut.step, 1)

    async def lists(ctx):
        await show_dimensions(ctx, dut, [listed_payload(start.tmap, PARAMS) for start in starts])

    simulate(dut, source, sink, background=[lists])
    return dimensions, cycles, accepted


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


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("addr_width", [16, 32, 48, 64])
def test_sum_of_products(addr_width, stall):
    dut = elaborated(OriginSum, addr_width=addr_width)
    rng = random.Random(SEED)

    async def check(ctx):
        expected = None  # the sum with the product of the factors that the last step took
        for index in range(400):
            start = index == 0 or rng.random() < 0.2
            position = rng.choice([rng.randint(-(1 << 33), (1 << 33) - 1), rng.randint(-300, 300), -(1 << 33)])
            stride = rng.choice(
                [rng.getrandbits(min(40, addr_width)), rng.getrandbits(10), (1 << min(40, addr_width)) - 1]
            )
            none, address = rng.random() < 0.2, rng.getrandbits(addr_width)
            for name, value in (("position", position), ("stride", stride), ("none", none), ("start", start),
                                ("address", address)):  # fmt: skip
                ctx.set(getattr(dut, name), value)
            while rng.random() < stall:
                ctx.set(dut.step, 0)
                await ctx.tick()
                assert expected is None or ctx.get(dut.sum) == expected
            ctx.set(dut.step, 1)
            await ctx.tick()
            product = 0 if none else position * stride
            expected = ((address if start else expected) + product) % (1 << addr_width)
            assert ctx.get(dut.sum) == expected

    print(f"seed {SEED}")
    simulate(dut, check)


def inside(below, above, index):
    return all(b <= i < a for b, a, i in zip(below, above, index, strict=True))


def fold_expected(below, above, counts, contiguous, unit):
    """Folded dimensions, bytes of a run, and offsets in it of bytes inside, of the first run that has any."""
    folded = 0
    while folded < 4 and contiguous[folded] and below[folded] == 0 and above[folded] >= counts[folded]:
        folded += 1
    runs = {}
    for outer in itertools.product(*(range(n) for n in reversed(counts))):
        index = outer[::-1]
        runs.setdefault(index[folded + 1 :], []).extend([inside(below, above, index)] * unit)
    parts = [[k for k, is_inside in enumerate(run) if is_inside] for run in runs.values()]
    parts = [part for part in parts if part]
    assert all(part == parts[0] for part in parts), "all runs of a box have the same part inside"
    return folded, len(next(iter(runs.values()))), parts[0] if parts else None


async def fold(ctx, dut, below, above, counts, run_bytes, contiguous, log2, gather=0):
    """Sends the dimensions; which of them fold."""
    folded = []
    for d, count in enumerate(counts):
        for name, value in (("first", d == 0), ("gather", gather), ("count", count),
                            ("start", min(below[d], count)), ("end", min(above[d], count)), ("step", 1),
                            ("dimension_bytes", run_bytes[d]), ("piece", run_bytes[d - 1] if d else 1 << log2),
                            ("contiguous", d and contiguous[d - 1])):  # fmt: skip
            ctx.set(getattr(dut, name), value)
        folded.append(ctx.get(dut.folded))
        continues = ctx.get(dut.folded) and below[d] == 0 and above[d] >= count
        assert ctx.get(dut.whole) == continues
        await ctx.tick()
        ctx.set(dut.step, 0)
        await ctx.tick()
    return folded


def test_runs_and_their_inside():
    dut = elaborated(Fold, 13)
    rng = random.Random(SEED)

    async def check(ctx):
        for _ in range(400):
            counts = [rng.randint(1, 4) for _ in range(5)]
            log2 = rng.randint(0, 3)
            below = [rng.choice([0, 0, 0, rng.randint(0, 5)]) for _ in counts]
            above = [rng.choice([256, n, rng.randint(0, 5)]) for n in counts]
            contiguous = [rng.random() < 0.8 for _ in range(4)]
            run_bytes = list(itertools.accumulate(counts[1:], int.__mul__, initial=counts[0] << log2))
            found = await fold(ctx, dut, below, above, counts, run_bytes, contiguous, log2)
            folded, length, part = fold_expected(below, above, counts, contiguous, 1 << log2)
            assert found == [1] * (1 + folded) + [0] * (4 - folded) and ctx.get(dut.bytes) == length
            if part:
                assert range(ctx.get(dut.data_start), ctx.get(dut.data_end)) == range(part[0], part[-1] + 1)
                assert ctx.get(dut.data_bytes) == len(part)

    print(f"seed {SEED}")
    simulate(dut, check)


def test_gathered_dimension_makes_runs_of_one_unit():
    dut = elaborated(Fold, 13)

    async def check(ctx):
        folded = await fold(ctx, dut, [3, 0, 0, 0, 0], [256] * 5, [7] * 5, [7 * 32] * 5, [0] * 4, log2=5, gather=1)
        assert folded == [0] * 5
        part = (ctx.get(dut.data_start), ctx.get(dut.data_end), ctx.get(dut.data_bytes))
        assert (ctx.get(dut.bytes), *part) == (32, 0, 32, 32)

    simulate(dut, check)
