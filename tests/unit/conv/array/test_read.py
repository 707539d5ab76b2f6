"""Which accumulators a read brings, of all slaves, in both modes."""

import random

import pytest
from amaranth.hdl import Value

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.array.read import SumsReader
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 8
UNIT = CONV_PRESETS["unit"]
#: R less than, equal to and more than the slaves.
PARAMS = {
    "parts": ConvUnitParams(UNIT, SmemParams(1024)),
    "one": ConvUnitParams(UNIT.replace(results=2), SmemParams(1024)),
    "groups": ConvUnitParams(UNIT.replace(row_bytes=32, results=8), SmemParams(1024)),
}


@pytest.mark.parametrize("lanes", [0, 1], ids=["convolution", "lanes"])
@pytest.mark.parametrize("name", PARAMS)
def test_every_read(name, lanes):
    params, rng = PARAMS[name], random.Random(SEED)
    conv = params.conv
    dut = elaborated(SumsReader, params)
    together = max(1, conv.results // conv.slaves)
    low = conv.row_bytes.bit_length() - 5

    async def bench(ctx):
        for _ in range(60):
            sums = [[rng.getrandbits(32) for _ in range(params.sums)] for _ in range(conv.slaves)]
            split = rng.randrange(5)
            places = params.sums >> split
            if lanes:
                index = rng.randrange(conv.row_bytes // conv.results) * conv.results
                part = rng.randrange(conv.slaves)
                wanted = sums[part][index : index + conv.results]
            else:
                index = rng.randrange(max(1, places // together)) * together
                part = rng.randrange(max(1, conv.slaves // conv.results))
                wanted = []
                for number in range(conv.results):
                    place = index + number // conv.slaves
                    # A group may reach over the last place: then nobody looks at it.
                    slave = (part * conv.results + number) % conv.slaves
                    wanted.append(sums[slave][place << split] if place < places else None)
            ctx.set(dut.lanes, lanes)
            ctx.set(dut.granularity, low + split)
            ctx.set(dut.read, {"index": index, "part": part})
            words = [word for slave in sums for word in slave]
            ctx.set(Value.cast(dut.i), sum(word << 32 * number for number, word in enumerate(words)))
            await ctx.tick().repeat(SumsReader.LATENCY)
            for have, want in zip(ctx.get(dut.o), wanted, strict=True):
                assert want is None or have == want

    simulate(dut, bench)
