"""Reading of sums: every transfer of every mode and fold, against the numbering that docs/architecture.md gives."""

import random

import pytest

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.array.read import SumsReader
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.sim.pysim.simulate import elaborated, simulate

SEED = 43
PARAMS = {
    "unit": ConvUnitParams(CONV_PRESETS["unit"]),
    "as-many": ConvUnitParams(CONV_PRESETS["unit"].replace(results=2)),
    "more": ConvUnitParams(CONV_PRESETS["unit"].replace(results=8)),
    "wide-rows": ConvUnitParams(CONV_PRESETS["unit"].replace(row_bytes=32, slaves=4, weight_bytes=2048)),
}


def wanted(params, job, read, sums):
    """What a transfer holds; None where it may be anything."""
    conv, (lanes, granularity) = params.conv, job
    fold = 16 * (1 << granularity) // conv.row_bytes  # sixteenths of a row that a point takes
    for number in range(conv.results):
        if lanes:
            yield sums[read["part"]][read["index"] + number]
            continue
        slave = (read["part"] * conv.results + number) % conv.slaves
        place = (read["index"] + number // conv.slaves) * fold
        yield sums[slave][place] if place < params.sums else None


@pytest.mark.parametrize("lanes", [0, 1], ids=["convolution", "lanes"])
@pytest.mark.parametrize("name", PARAMS)
def test_every_transfer(name, lanes):
    params, rng = PARAMS[name], random.Random(SEED)
    conv, dut = params.conv, elaborated(SumsReader, params)
    low = conv.row_bytes.bit_length() - 5
    groups = max(1, conv.results // conv.slaves)
    jobs = {}
    for granularity in range(low, low + 5):
        if lanes:
            elements = min(conv.row_bytes, params.sums)
            reads = [(index, part) for index in range(0, elements, conv.results) for part in range(conv.slaves)]
        else:
            places = conv.units * (conv.row_bytes >> granularity)
            parts = range(max(1, conv.slaves // conv.results))
            reads = [(index, part) for index in range(0, places, groups) for part in parts]
        jobs[lanes, granularity] = [{"index": index, "part": part} for index, part in reads]

    async def bench(ctx):
        for job, reads in jobs.items():  # the mode changes between tiles only
            ctx.set(dut.lanes, job[0])
            ctx.set(dut.granularity, job[1])
            pipe = []
            for read in [*reads, *[None] * SumsReader.LATENCY]:
                if len(pipe) == SumsReader.LATENCY:
                    check(ctx, job, *pipe.pop(0))
                sums = [[rng.getrandbits(32) for _ in range(params.sums)] for _ in range(conv.slaves)]
                ctx.set(dut.read, read or {})
                pipe.append((read, sums))
                if not params.sums_apart:
                    ctx.set(dut.i, sums)
                    await ctx.tick()
                    continue
                # The slaves answer in the next cycle.
                on = [ctx.get(dut.on[slave]) for slave in range(conv.slaves)]
                await ctx.tick()
                ctx.set(dut.i, [[value * (mask >> place & 1) for place, value in enumerate(row)]
                                for mask, row in zip(on, sums, strict=True)])  # fmt: skip

    def check(ctx, job, read, sums):
        for have, want in zip(ctx.get(dut.o), wanted(params, job, read, sums), strict=True):
            assert want is None or have == want, f"{job} {read}"

    simulate(dut, bench)
