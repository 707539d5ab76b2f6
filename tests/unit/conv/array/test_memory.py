"""Memories of the array: rows of slaves against numpy, and biases of two passes as the table's answers bring them."""

import random

import numpy as np
import pytest

from support.conv import conv_unit, conv_units
from tilewright.hw.conv.array.memory import Biases, SlaveMemory
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 61


@pytest.mark.parametrize("rotation", [True, False])
@pytest.mark.parametrize("row_bytes", [16, 32])
def test_rows(row_bytes, rotation):
    """A write and a read in each cycle: what is written is read from the next one on."""
    params = conv_unit(row_bytes=row_bytes, rotation=rotation)
    dut, rng = elaborated(SlaveMemory, params), random.Random(SEED)
    memory = np.zeros((params.words, row_bytes), np.uint8)
    parts = 2 if rotation else 1

    async def bench(ctx):
        row = None
        for cycle in range(300):
            word, strobe = (cycle if cycle < params.words else rng.randrange(8)), rng.getrandbits(row_bytes)
            strobe = (1 << row_bytes) - 1 if cycle < params.words else strobe
            raw = rng.randbytes(row_bytes)
            data = [int.from_bytes(raw[at : at + 16], "little") for at in range(0, row_bytes, 16)]
            ctx.set(dut.write, {"word": word, "data": data, "strobe": strobe})
            words, enable = [rng.randrange(min(cycle + 1, 8)) for _ in range(parts)], rng.random() < 0.8
            ctx.set(dut.words, words)
            ctx.set(dut.enable, enable)
            if enable:
                halves = memory.reshape(params.words, parts, -1)
                row = np.concatenate([halves[at, part] for part, at in enumerate(words)]).tobytes()
            for byte in range(row_bytes):
                if strobe >> byte & 1:
                    memory[word, byte] = raw[byte]
            await ctx.tick()
            if row is not None:
                assert ctx.get(dut.row).to_bytes(row_bytes, "little") == row, f"seed {SEED}, cycle {cycle}"

    simulate(dut, bench)


BIASES_SEED = 53
PARAMS = conv_units("unit", "pairs", "full", types=("f16",)) | {"four": conv_unit("pairs", slaves=4, types=("f16",))}


@pytest.mark.parametrize("lanes", [0, 1], ids=["convolution", "lanes"])
@pytest.mark.parametrize("name", PARAMS)
def test_passes(name, lanes):
    """Of each pass some channels, the last ones left out; each is read in the cycle after it came, and later."""
    params, rng = PARAMS[name], random.Random(BIASES_SEED)
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
