"""The table loader: the entries of every transfer of every pass, in stalls; passes ahead; nothing behind Co is read."""

import random

import numpy as np
import pytest

from support.conv import conv_unit, conv_units
from support.conv_results import gatherer
from support.selection import grid
from support.streams import pulse, transact
from tilewright.hw.conv.result.layouts import ResultSizes
from tilewright.hw.conv.result.operands import AddendReader, TableLoader
from tilewright.spec.conv import ConvOutput
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, send, watch_stream

BYTES = 1024
PARAMS = conv_units("unit", "pairs", "default", smem=BYTES) | {
    "floats": conv_unit("pairs", BYTES, slaves=4, results=2, types=("f16",)),
    "halves": conv_unit("pairs", BYTES, row_bytes=32, results=8, types=("f16",)),
}


def channels_of_pass(params, plan):
    """For each pass, for each transfer, the channel of each lane; None from Co on."""
    conv = params.conv
    span, distinct = 4 * conv.slaves, min(conv.results, conv.slaves)
    if plan["lanes"]:
        span = (1 << plan["granularity"]) >> plan["wide"]
        distinct = min(conv.results, span)
    for first in range(0, plan["out_channels"], span):
        count = min(span, plan["out_channels"] - first)
        yield [
            [
                first + start + lane % distinct if start + lane % distinct < count else None
                for lane in range(conv.results)
            ]
            for start in range(0, count, distinct)
        ]


def run(name, plans, *, stall=0.0):
    dut, params, rng = elaborated(TableLoader, PARAMS[name]), PARAMS[name], random.Random(3)
    smem = np.random.default_rng(1).integers(0, 256, BYTES, np.uint8)
    waits, biases = [], [{}, {}]

    async def watch_biases(ctx):
        """Biases that leave for the array, by their channel in the pass of either half."""
        async for _, _, start, sent in ctx.tick().sample(dut.start, dut.biases):
            if start:
                for half in biases:
                    half.clear()
            if sent.valid:
                biases[sent.half].update({sent.channel + n: bias for n, bias in enumerate(sent.entries)})

    async def bench(ctx):
        for plan in plans:
            entries = np.roll(smem, -plan["table_address"])[: 8 * plan["out_channels"]].view("<u4").reshape(-1, 2)
            ctx.set(dut.plan, plan | {"table": 1})
            await pulse(ctx, dut.start)
            for number, rows in enumerate(channels_of_pass(params, plan)):
                waited = 0
                while not ctx.get(dut.loaded):
                    await ctx.tick()
                    waited += 1
                waits.append(waited)
                await ctx.delay(1e-9)  # what others saw in this cycle too
                first = min(channel for lanes in rows for channel in lanes if channel is not None)
                for channel in {channel for lanes in rows for channel in lanes} - {None}:
                    assert not params.floats or biases[number % 2][channel - first] == entries[channel][0]
                for row, lanes in enumerate(rows):
                    ctx.set(dut.row, number % 2 * (2 ** len(dut.row) // 2) + row)
                    for lane, channel in enumerate(lanes):
                        if channel is not None:
                            assert [ctx.get(dut.bias[lane]), ctx.get(dut.scale[lane])] == entries[channel].tolist()
                    await ctx.tick().repeat(rng.randrange(1, 4))
                await pulse(ctx, dut.release)
            assert not ctx.get(dut.loaded)

    around = gatherer(dut.request, dut.answer, smem, stall=stall)
    watched = [around, watch_stream(dut.request, "request"), *([watch_biases] if params.floats else [])]
    simulate(dut, bench, background=watched)
    return waits


def some_plans(params):
    for granularity in range(params.conv.row_bytes.bit_length() - 5, params.conv.row_bytes.bit_length()):
        for wide in range(int(params.floats), 1 + (params.wide and granularity > 0)):
            yield {"lanes": 1, "wide": wide, "granularity": granularity, "out_channels": 19, "table_address": 1000}
    for channels in (1, 4 * params.conv.slaves, 4 * params.conv.slaves + 1, 40):
        yield {"lanes": 0, "wide": 0, "granularity": 4, "out_channels": channels, "table_address": 72}


@pytest.mark.parametrize("stall", [0.0, 0.6])
@pytest.mark.parametrize("name", PARAMS)
def test_entries(name, stall):
    run(name, list(some_plans(PARAMS[name])), stall=stall)


def test_passes_are_loaded_ahead():
    """Of the first one four requests and an answer's way are waited for; the second comes while the first is read."""
    plan = {"lanes": 0, "wide": 0, "granularity": 4, "out_channels": 64, "table_address": 0}
    assert run("default", [plan]) == [10, 0]


ADDENDS_PARAMS = conv_units("unit", "pairs", "default", "as-many", smem=BYTES)
_POINT = 421
ADDED = {"output": ConvOutput.U8, "add": 1}


def some_groups(params, plan, count):
    """Places, and for each group that has one, for each transfer, the address of each lane's addend.

    Of two places that come together the second one's addends are ``addend.point`` farther.
    """
    conv, rng = params.conv, random.Random(9)
    span, together = 4 * conv.slaves, max(1, conv.results // conv.slaves)
    if plan["lanes"]:
        span = (1 << plan["granularity"]) >> plan["wide"]
        together = max(1, min(conv.results, conv.row_bytes >> plan["wide"]) // span)
    ours = conv.results if plan["lanes"] and span >= conv.results else min(span, conv.results // together)
    places, groups = [], []
    for _ in range(count):
        channels, there = rng.randint(1, span), rng.randint(0, together)
        addresses = [rng.randrange(1024) for _ in range(together)]
        pairs = set()
        for number in range(0, together - 1, 2):
            if ResultSizes(params).pairs and number + 1 != there and rng.random() < 0.7:
                pairs.add(number)
                addresses[number + 1] = (addresses[number] + _POINT) % 1024
        for number, address in enumerate(addresses):
            if number - 1 not in pairs:
                place = {"there": number < there, "any": there > 0, "addend": address, "channels": channels - 1,
                         "group_last": number + (number in pairs) == together - 1}  # fmt: skip
                places.append(place | ({"both": 1} if number in pairs else {}))
        if there:
            groups.append([
                {
                    place * ours + lane: (addresses[place] + start + lane) % 1024
                    for place in range(there)
                    for lane in range(min(ours, channels - start))
                }
                for start in range(0, channels, ours)
            ])  # fmt: skip
    return places, groups


def addends_run(name, plan, *, mode="none", count=20):
    dut, params, rng = elaborated(AddendReader, ADDENDS_PARAMS[name]), ADDENDS_PARAMS[name], random.Random(3)
    smem = np.random.default_rng(1).integers(0, 256, BYTES, np.uint8)
    places, groups = some_groups(params, plan, count)
    inputs = {"plan": plan | {"post": ADDED, "addend": {"point": _POINT}}}

    async def sink(ctx):
        for number, transfers in enumerate(groups):
            while not ctx.get(dut.loaded):
                await ctx.tick()
            ctx.set(dut.group, number % 16)
            for step, addresses in enumerate(transfers):
                ctx.set(dut.step, step)
                assert {lane: ctx.get(dut.addend[lane]) for lane in addresses} == {
                    lane: smem[address] for lane, address in addresses.items()
                }, f"{plan}, group {number}, transfer {step}"
            await ctx.tick().repeat(rng.randrange(1, 4))
            await pulse(ctx, dut.release)
        assert not ctx.get(dut.loaded)

    around = gatherer(dut.request, dut.answer, smem, stall=STALL_MODES[mode]["stall"])
    _, cycles = transact(dut, {"i": places}, mode=mode, inputs=inputs, watch=["request"], testbenches=[sink],
                         background=[around])  # fmt: skip
    return cycles["i"]


def addends_some_plans(params):
    yield {"lanes": 0, "wide": 0, "granularity": 4}
    most = params.conv.row_bytes.bit_length()
    for granularity in range(most - 5, most):
        yield {"lanes": 1, "wide": 0, "granularity": granularity}
    if "i16" in params.conv.types:
        yield from ({"lanes": 1, "wide": 1, "granularity": n} for n in range(max(1, most - 5), most))


@grid(lambda name, mode: name in ("unit", "pairs") or mode == "both", name=ADDENDS_PARAMS, mode=STALL_MODES)
def test_addends(name, mode):
    plans = list(addends_some_plans(ADDENDS_PARAMS[name]))
    for plan in plans[:: 1 if mode == "both" else 3]:
        addends_run(name, plan, mode=mode, count=6 if name == "as-many" else 14)


def test_full_rate():
    """A place a cycle while sixteen groups are asked for, whatever comes."""
    begun = addends_run("unit", {"lanes": 0, "wide": 0, "granularity": 4}, count=24)
    assert begun[:12] == list(range(begun[0], begun[0] + 12))


@pytest.mark.parametrize("post", [{"output": ConvOutput.RAW, "add": 1}, {"output": ConvOutput.U8, "add": 0}])
def test_nothing_is_added(post):
    dut = elaborated(AddendReader, ADDENDS_PARAMS["unit"])
    places, _ = some_groups(ADDENDS_PARAMS["unit"], {"lanes": 0}, 40)

    async def bench(ctx):
        ctx.set(dut.plan.post, post)
        assert await send(ctx, dut.i, places) == list(range(len(places)))
        assert not ctx.get(dut.request.valid)

    simulate(dut, bench)
