"""Jobs from accumulators to shared memory: every byte of it against the golden model's post-processing."""

from functools import cache

import numpy as np
import pytest

from tilewright.golden.conv.placement import parts_of
from tilewright.golden.conv.results import add_residual, requantise
from tilewright.golden.spec.conv.job import ConvOperation, ConvOutput
from tilewright.golden.spec.conv.params import CONV_PRESETS, ConvParams
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.conv.result.results import Results
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.conv_results import ResultsWorld, results_plan
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import watch_stream
from tilewright.sim.random.conv_jobs import random_jobs

SMEM = SmemParams(16384)
#: Units by name: R less than NS, equal, more; of one slave; rows of elements of 16 bits.
UNITS = {
    "unit": ConvUnitParams(CONV_PRESETS["unit"], SMEM),
    "ecp5": ConvUnitParams(CONV_PRESETS["ecp5"], SMEM),
    "pairs": ConvUnitParams(ConvParams(16, 2, 2, feature_rows=8, weight_bytes=1024, results=4), SMEM),
    "one": ConvUnitParams(ConvParams(16, 1, 1, feature_rows=4, weight_bytes=1024, results=4), SMEM),
    "wide": ConvUnitParams(ConvParams(32, 4, 2, feature_rows=8, weight_bytes=1024, results=4), SMEM),
    "default": ConvUnitParams(CONV_PRESETS["default"], SMEM),
}
#: Probabilities of pauses: none, of one side, of all.
STALLS = {
    "none": {},
    "tiles": {"tiles": 0.8},
    "gather": {"gather": 0.6},
    "scatter": {"scatter": 0.6},
    "all": {"tiles": 0.3, "gather": 0.4, "scatter": 0.4},
}


@cache
def some_jobs(name, count, seed=0):
    return list(random_jobs(seed, UNITS[name].conv, count, most_macs=20000, smem_bytes=SMEM.size_bytes))


def some_accumulators(fields, seed):
    generator = np.random.default_rng(seed)
    points = fields["batch"] * fields["out_height"] * fields["out_width"]
    bits = generator.integers(4, 33, (points, fields["out_channels"]))
    return generator.integers(0, 1 << 32, bits.shape, np.uint64) >> (32 - bits).astype(np.uint64)


def number(bits, fields):
    return (bits ^ 0x80) - 0x80 if fields["output"] == ConvOutput.S8 else bits


def expected(fields, smem, accumulators):
    """Shared memory after the job."""
    smem = smem.copy()
    parts, acc = parts_of(fields), accumulators.astype(np.int64)
    table = parts["table"].view(smem, "<u4") if "table" in parts else None
    if fields["bias"] and fields["operation"] != ConvOperation.MAX_POOL:
        acc = acc + table[0::2].astype(np.int64) & 0xFFFFFFFF
    if ConvOutput(fields["output"]).quantised:
        clamp, last = (
            tuple(number(fields[prefix + name], fields) for name in ("minimum", "maximum")) for prefix in ("", "add_")
        )
        acc = requantise(acc, table[1::2], number(fields["y_zero"], fields), clamp)
        if fields["add"]:
            second = parts["addend"].view(smem, "u1").reshape(acc.shape).astype(np.int64)
            acc = add_residual(acc, number(second, fields), fields["ratio"], fields["offset"], last)
    y = parts["y"]
    made = y.view(smem, f"<u{y.item}")
    made[...] = (acc & (1 << 8 * y.item) - 1).astype(made.dtype).reshape(made.shape)
    return smem


async def run_job(ctx, dut, world, fields, smem, seed, *, check=True):
    """A job from its start to ``done``; the results that it said were written."""
    accumulators = some_accumulators(fields, seed)
    world.smem[:] = smem
    world.add_job(fields, accumulators)
    ctx.set(dut.plan, results_plan(fields, world.params))
    ctx.set(dut.start, 1)
    await ctx.tick()
    ctx.set(dut.start, 0)
    written, done = 0, 0
    while not done:
        _, _, done, count = await ctx.tick().sample(dut.done, dut.written)
        written += count
    wanted = expected(fields, smem, accumulators)
    wrong = np.flatnonzero(world.smem != wanted)
    assert not len(wrong), f"{fields}: byte {wrong[0]} (of {len(wrong)}), y {parts_of(fields)['y']}"
    assert written == accumulators.size


def run(name, jobs, *, seed=0, deadline=200_000, **options):
    dut = elaborated(Results, UNITS[name])
    world = ResultsWorld(dut, UNITS[name], seed=seed, **options)

    async def bench(ctx):
        for turn, (fields, smem) in enumerate(jobs):
            await run_job(ctx, dut, world, fields, smem, turn)
            if turn % 3:
                await ctx.tick()

    watched = [watch_stream(getattr(dut, port), port) for port in ("scatter", "table", "addend")]
    simulate(dut, bench, background=[*world.processes, *watched], deadline=deadline)
    return world


@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("name", ["unit", "ecp5", "pairs", "one", "wide"])
def test_random_jobs(name, stall):
    jobs = [(job.fields, job.smem) for job in some_jobs(name, 12, seed=list(STALLS).index(stall))]
    run(name, jobs, stall=STALLS[stall])
