"""The memory of a slave against numpy: writes of any bytes, and reads of both halves of a row."""

import random

import numpy as np
import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.array.memory import SlaveMemory
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 61


@pytest.mark.parametrize("rotation", [True, False])
@pytest.mark.parametrize("row_bytes", [16, 32])
def test_rows(row_bytes, rotation):
    """A write and a read in each cycle: what is written is read from the next one on."""
    params = ConvUnitParams(CONV_PRESETS["unit"].replace(row_bytes=row_bytes, rotation=rotation), SmemParams(4096))
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


def test_a_write_and_a_read_of_the_same_word():
    """The read has what was there before."""
    params = ConvUnitParams(CONV_PRESETS["unit"], SmemParams(4096))
    dut = elaborated(SlaveMemory, params)

    async def bench(ctx):
        for value, seen in ((5, None), (9, 5), (0, 9)):
            ctx.set(dut.write, {"word": 3, "data": [value], "strobe": -1 & 0xFFFF})
            ctx.set(dut.words, [3, 3])
            ctx.set(dut.enable, 1)
            await ctx.tick()
            assert seen is None or ctx.get(dut.row) == seen

    simulate(dut, bench)
