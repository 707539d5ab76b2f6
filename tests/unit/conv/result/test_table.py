"""The table loader: the entries of every transfer of every pass, in stalls; passes ahead; nothing behind Co is read."""

import random

import numpy as np
import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS, ConvParams
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.conv.result.table import TableLoader
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.conv_results import gatherer
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import watch_stream

SMEM = SmemParams(1024)
PARAMS = {
    "unit": ConvUnitParams(CONV_PRESETS["unit"], SMEM),
    "pairs": ConvUnitParams(ConvParams(16, 2, 2, feature_rows=8, weight_bytes=1024, results=4), SMEM),
    "default": ConvUnitParams(CONV_PRESETS["default"], SMEM),
    "floats": ConvUnitParams(ConvParams(16, 4, 2, feature_rows=8, weight_bytes=1024, results=2, types=("f16",)), SMEM),
    "halves": ConvUnitParams(ConvParams(32, 2, 2, feature_rows=8, weight_bytes=1024, results=8, types=("f16",)), SMEM),
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
    smem = np.random.default_rng(1).integers(0, 256, SMEM.size_bytes, np.uint8)
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
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
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
                ctx.set(dut.release, 1)
                await ctx.tick()
                ctx.set(dut.release, 0)
            assert not ctx.get(dut.loaded)

    around = gatherer(dut.request, dut.answer, dut.answer_stb, smem, stall=stall)
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
