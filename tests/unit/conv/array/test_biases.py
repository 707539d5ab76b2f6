"""Biases of two passes: of slaves and of the elements of a row, as the answers of the table bring them."""

import random

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS, ConvParams
from tilewright.hw.conv.array.biases import Biases, bias_columns
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 53
SMEM = SmemParams(4096)
PARAMS = {
    "unit": ConvUnitParams(CONV_PRESETS["unit"].replace(types=("f16",)), SMEM),
    "more": ConvUnitParams(ConvParams(16, 4, 2, feature_rows=8, results=4, weight_bytes=1024, types=("f16",)), SMEM),
    "full": ConvUnitParams(CONV_PRESETS["full"].replace(types=("f16",)), SMEM),
}


@pytest.mark.parametrize("lanes", [0, 1], ids=["convolution", "lanes"])
@pytest.mark.parametrize("name", PARAMS)
def test_passes(name, lanes):
    """Of each pass some channels, the last ones left out; each is read in the cycle after it came, and later."""
    params, rng = PARAMS[name], random.Random(SEED)
    conv, dut = params.conv, elaborated(Biases, params)
    many = min(params.lanes, conv.results)

    async def bench(ctx):
        ctx.set(dut.lanes, lanes)
        held = [{}, {}]
        for number in range(20):
            most = conv.row_bytes.bit_length() - 1
            granularity = rng.randint(max(1, most - 4), most)
            ctx.set(dut.granularity, granularity)
            channels = 1 << granularity - 1 if lanes else 4 * conv.slaves
            distinct = min(many, channels if lanes else min(conv.results, conv.slaves))
            biases = [rng.getrandbits(32) for _ in range(rng.randint(1, channels))]
            half = number % 2
            for first in range(0, len(biases), distinct):
                entries = [biases[first + n % distinct : first + n % distinct + 1] or [0] for n in range(many)]
                ctx.set(dut.i, {"valid": 1, "half": half, "channel": first, "entries": [each for (each,) in entries]})
                await ctx.tick()
            ctx.set(dut.i, {"valid": 0, "half": half, "channel": 0, "entries": [0] * many})
            held[half] = dict(enumerate(biases))
            for other in (half, 1 - half):
                check(ctx, other, channels, held[other] if other == half or not lanes else {})
            await ctx.tick()

    def check(ctx, half, channels, biases):
        ctx.set(dut.half, half)
        for channel in range(1 if lanes else 4):
            ctx.set(dut.channel, channel)
            seen = list(ctx.get(dut.o))
            for column in range(conv.row_bytes // 2 if lanes else conv.slaves):
                number = column % channels if lanes else channel * conv.slaves + column
                assert number not in biases or seen[column] == biases[number], (half, channel, column)

    simulate(dut, bench)


@pytest.mark.parametrize(("name", "columns"), [("unit", 8), ("more", 8), ("full", 32)])
def test_columns(name, columns):
    assert bias_columns(PARAMS[name]) == columns
