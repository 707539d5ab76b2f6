"""Rows of random jobs, as they lie in the first buffer or with the slaves, against the golden model's rows."""

from support.conv import conv_units
from support.conv_fetch import FETCH_MODES, FetchGatherer, dense_job, make_path, run_jobs, start_job
from support.conv_plan import plan_of
from support.selection import grid
from support.streams import pulse
from tilewright.golden.conv.job import parts_of
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.random.conv_jobs import random_jobs

SEED = 22
PARAMS = conv_units("unit", "ecp5", "default", "wide", "one-slave", "one-unit", smem=16384)


def some_jobs(params, seed, count):
    """Random jobs of at most so many requests."""
    jobs, conv = [], params.conv
    for job in random_jobs(seed, conv, 8 * count, most_macs=900,
                           smem_bytes=params.smem.size_bytes):  # fmt: skip
        plan = plan_of(job.fields, conv)
        requests = 1 + conv.units * conv.row_bytes // (params.lanes * min(16, plan.block_bytes))
        # The cycles of the array are sets, or as many for each channel of a slave.
        if (plan.fetch_cycles if plan.shape.operation.lanes else plan.mac_cycles * requests) <= 300:
            jobs.append((job.fields, job.smem))
    return jobs[:count]


@grid(lambda preset, mode: preset == "unit" or mode == "both", preset=PARAMS, mode=FETCH_MODES)
def test_random_jobs(preset, mode):
    run_jobs(PARAMS[preset], some_jobs(PARAMS[preset], f"{SEED} {preset} {mode}", 4), mode)


def test_only_bytes_of_x_are_read():
    """A tensor at the end of memory: what lies behind the ends of lines and pixels is not asked for."""
    params = PARAMS["unit"]
    for merge in (1, 3):
        fields, smem = dense_job(params, 3, 5, width=6, merge=merge)
        ((made, _, _),) = run_jobs(params, [(fields, smem)])
        x = parts_of(fields)["x"]
        assert {place for read in made for place in read} == set(range(x.address, x.end))


def test_late_release():
    """Without a release as many sets are asked for as there is room for, and a pair only if there is room for both."""
    params = PARAMS["unit"]
    path = elaborated(make_path, params)
    fields, smem = dense_job(params, 4, 48, kernel=(1, 1))
    gatherer = FetchGatherer(path, 0, 0, 0)
    gatherer.smem = smem

    async def release(ctx):
        await pulse(ctx, path.fetcher.release)
        await ctx.tick().repeat(20)

    async def bench(ctx):
        await start_job(ctx, path, fields)
        await ctx.tick().repeat(60)
        # Of four sets the first three are those of a tile: two, and one; the fourth would be the first of a pair.
        assert len(gatherer.requests) == 3
        await release(ctx)
        assert len(gatherer.requests) == 5
        await release(ctx)
        assert len(gatherer.requests) == 6

    simulate(path, bench, background=[gatherer.serve])
