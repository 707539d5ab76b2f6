"""The point walker against the order of places, in words: tiles, rows, passes, ends of numbers; a place a cycle."""

import random

import pytest

from support.conv import conv_unit
from support.streams import pulse, transact
from tilewright.hw.conv.fetch.places import PlaceTable, PointWalker
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, watch_stream

SEED = 21
NUMBERS = ("x", "position", "row")


def some_walk(rng, params, **given):
    """A random walk as values of the plan, of a few hundred places."""
    most = params.conv.row_bytes.bit_length() - 1
    lanes = given.get("lanes", rng.getrandbits(1))
    granularity = most - rng.randrange(5)
    fields = {
        "lanes": lanes,
        "raster": rng.getrandbits(1),
        "granularity": granularity,
        "last_column": rng.choice([0, rng.randrange(4), rng.randrange(20)]),
        "last_line": rng.randrange(4),
        "last_image": rng.choice([0, 0, rng.randrange(3)]),
        "last_pass": rng.choice([0, 0, rng.randrange(3)]),
    }
    fields["x"] = {name: rng.getrandbits(params.smem.addr_width) for name in ("start", "point", "line", "image")}
    for name, step in (("position", "point"), ("row", "line")):
        fields[name] = {"start": rng.randrange(-40, 20), "point": 0, "line": 0, "image": 0} | {
            step: rng.randrange(1, 30)
        }
        fields[f"{name}_end"] = rng.randrange(1, 60)
    return fields | given


def places(params, fields, numbers=NUMBERS):
    """(there, values, last, final) of each place of a walk; ``values`` without ends."""
    fold = params.conv.row_bytes >> fields["granularity"]
    rows = params.conv.slaves if fields["lanes"] else params.conv.units
    lines = [
        [
            {name: fields[name]["start"] + column * fields[name].get("point", 0) + line * fields[name].get("line", 0)
             + image * fields[name].get("image", 0) for name in numbers}
            for column in range(fields["last_column"] + 1)
        ]
        for image in range(fields["last_image"] + 1) for line in range(fields["last_line"] + 1)
    ]  # fmt: skip
    if fields["raster"]:
        parts = fields["last_image"] + 1 if fields["lanes"] else 1
        each = len(lines) // parts
        lines = [[one for line in lines[part * each :][:each] for one in line] for part in range(parts)]
    tiles = [line[first : first + rows * fold] for line in lines for first in range(0, len(line), rows * fold)]
    # In lane-private mode a tile ends with the row in which its line ends, or in raster order its image.
    tiles = [tile + [None] * (-len(tile) % (fold if fields["lanes"] else rows * fold)) for tile in tiles]
    walked = [(values, place == len(tile) - 1) for tile in tiles for place, values in enumerate(tile)]
    final = max(number for number, (values, _) in enumerate(walked) if values)
    one = [(values is not None, values, last, number >= final) for number, (values, last) in enumerate(walked)]
    return one * (fields["last_pass"] + 1)


def check(params, fields, payloads):
    expected = places(params, fields)
    assert len(payloads) == len(expected)
    for number, (payload, (there, values, last, final)) in enumerate(zip(payloads, expected, strict=True)):
        assert (payload.there, payload.last, payload.final) == (there, last, final), f"place {number} of {fields}"
        if not there:
            continue
        found = payload["values"]
        assert found.x == values["x"] % params.smem.size_bytes, f"place {number} of {fields}"
        for name, step in (("position", "point"), ("row", "line")):
            end, most = fields[f"{name}_end"], fields[f"{name}_end"] + 2 * fields[name][step]
            begin = fields[name]["start"]
            if values[name] < end or begin >= end:
                assert found[name] == values[name] if values[name] < end else found[name] >= end, (number, fields)
            else:
                assert end <= found[name] < most, f"place {number} of {fields}"


def run(dut, params, work, mode="none"):
    stalls, cycles = STALL_MODES[mode]["stall"], []

    async def bench(ctx):
        for number, fields in enumerate(work):
            ctx.set(dut.plan, fields)
            await pulse(ctx, dut.start)
            payloads, times = await receive(ctx, dut.o, len(places(params, fields)), stall=stalls, seed=number)
            check(params, fields, payloads)
            cycles.append(times)
            assert not ctx.get(dut.o.valid)

    simulate(dut, bench, background=[watch_stream(dut.o, "o")], deadline=100_000)
    return cycles


@pytest.mark.parametrize("mode", ["none", "stall"])
@pytest.mark.parametrize("preset", ["unit", "ecp5", "default"])
def test_places(preset, mode):
    params, rng = conv_unit(preset), random.Random(f"{SEED} {preset} {mode}")
    run(elaborated(PointWalker, params, NUMBERS), params, [some_walk(rng, params) for _ in range(12)], mode)


def test_a_place_a_cycle():
    params, rng = conv_unit("unit"), random.Random(SEED)
    work = [some_walk(rng, params, lanes=lanes, last_pass=1) for lanes in (0, 1, 0)]
    for times in run(elaborated(PointWalker, params, NUMBERS), params, work):
        assert times == list(range(len(times)))


def in_pairs(params, fields):
    """The same places, two at once where that may be: (there, both, values of the first, last, final) of each."""
    fold, elements = params.conv.row_bytes >> fields["granularity"], 1 << fields["granularity"] >> fields["wide"]
    several = not fields["lanes"] or (fold > 1 and params.conv.results > elements)
    expected, at, column = iter(places(params, fields, ("y", "addend"))), 0, 0  # place of the tile, column
    for there, values, last, final in expected:
        both = several and at % 2 == 0 and not (there and column == fields["last_column"])
        if both:
            _, _, last, final = next(expected)
        yield there, both, values, last, final
        column = (column + there * (1 + both)) % (fields["last_column"] + 1)
        at = 0 if last else at + 1 + both


@pytest.mark.parametrize("mode", ["none", "stall"])
@pytest.mark.parametrize("preset", ["unit", "default"])
def test_pairs(preset, mode):
    """Two places at once, a pair a cycle: on a line and behind its end, but not over it."""
    params, rng = conv_unit(preset), random.Random(f"{SEED} {preset} {mode}")
    dut, size = elaborated(PointWalker, params, ("y", "addend"), pairs=True), params.smem.size_bytes
    work = []
    for number in range(24):
        follows = {name: {step: rng.randrange(size) for step in ("start", "point", "line", "image")}
                   for name in ("y", "addend")}  # fmt: skip
        work.append(some_walk(rng, params, wide=number % 3 == 2, **follows))

    async def bench(ctx):
        for number, fields in enumerate(work):
            expected = list(in_pairs(params, fields))
            ctx.set(dut.plan, fields)
            await pulse(ctx, dut.start)
            came, cycles = await receive(ctx, dut.o, len(expected), stall=STALL_MODES[mode]["stall"], seed=number)
            for payload, (there, both, values, last, final) in zip(came, expected, strict=True):
                assert (payload.there, payload.both, payload.last, payload.final) == (there, both, last, final), fields
                for name in values if there else ():
                    assert payload["values"][name] == values[name] % size, (name, fields)
            assert mode == "stall" or cycles == list(range(len(cycles)))
            assert not ctx.get(dut.o.valid)

    simulate(dut, bench, background=[watch_stream(dut.o, "o")], deadline=100_000)


@pytest.mark.parametrize(("lanes", "raster"), [(0, 0), (0, 1), (1, 0)])
def test_the_largest_steps_stay_in_their_width(lanes, raster):
    """A position and a row of many long steps: behind their ends they stop, and no later point seems to be inside."""
    params = conv_unit("unit")
    size = params.smem.size_bytes
    fields = some_walk(random.Random(SEED), params, lanes=lanes, raster=raster, granularity=4, last_column=40,
                       last_line=9, last_image=1, last_pass=0)  # fmt: skip
    fields["position"] = {"start": -255 * size, "point": 256 * size}
    fields["row"] = {"start": -255, "line": 256}
    fields |= {"position_end": size, "row_end": 1}
    run(elaborated(PointWalker, params, NUMBERS), params, [fields])


def test_wrong_numbers():
    with pytest.raises(ValueError, match=r"numbers must be of x, position, row, y, addend, not 'k'"):
        PointWalker(conv_unit("unit"), ["x", "k"])


def test_two_tiles_at_most():
    """Which lane reads which place is shown by the rows that are fetched; see test_features.py."""
    dut = elaborated(PlaceTable, conv_unit("unit"))
    places = [{"there": 1, "last": number, "values": {}} for number in (0, 1)]  # of a tile of two points

    async def reader(ctx):
        await ctx.tick().repeat(20)
        assert ctx.get(dut.full) and not ctx.get(dut.i.ready)
        await pulse(ctx, dut.take)

    _, cycles = transact(dut, {"i": places * 3}, inputs={"plan": {"granularity": 4}}, testbenches=[reader])
    # The half is read for one more cycle after the strobe.
    assert cycles["i"] == [0, 1, 2, 3, 22, 23]
