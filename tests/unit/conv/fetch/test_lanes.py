"""Lane-private mode: rows of random jobs against the golden model's, and exact numbers of requests, one a cycle."""

import pytest

from support.conv import conv_units
from support.conv_fetch import FETCH_MODES, dense_job, run_jobs
from support.conv_plan import plan_of
from support.selection import grid
from tilewright.spec.conv import CHANNELS_AT_ONCE, ConvOperation
from tilewright.verify.random.conv_jobs import random_jobs

SEED = 49
PARAMS = conv_units("unit", "ecp5", "default", "wide", "one-slave", smem=16384)


def some_jobs(params, seed, count):
    """Random jobs of lane-private mode, of at most 300 requests."""
    jobs = random_jobs(seed, params.conv, 24 * count, most_macs=900, smem_bytes=params.smem.size_bytes)
    plans = [(job, plan_of(job.fields, params.conv)) for job in jobs]
    chosen = [job for job, plan in plans if plan.shape.operation.lanes and plan.fetch_cycles <= 300]
    return [(job.fields, job.smem) for job in chosen[:count]]


#: Preset, granularity, channels, and what else is given; whether lines stay.
LANES = {
    "a request for four points": ("default", 5, 64, {}, True),
    "a request for eight points": ("default", 4, 24, {"width": 50}, True),
    "less than a request": ("default", 5, 32, {"width": 3}, True),
    "folded 16 times": ("default", 1, 6, {"width": 60}, True),
    "pooling": ("ecp5", 4, 20, {"operation": ConvOperation.SUM_POOL}, True),
    "pairs of columns": ("default", 5, 40, {"stride": (2, 2), "kernel": (5, 3)}, True),
    "pairs of columns, all of them": ("ecp5", 4, 16, {"stride": (2, 1), "kernel": (4, 2)}, True),
    "no pairs": ("default", 5, 40, {"stride": (2, 2), "dilation": (2, 1)}, True),
    "words of one line": ("default", 5, 40, {"stride": (2, 3)}, False),
    "many rows of the kernel": ("default", 4, 16, {"kernel": (13, 5), "width": 9, "height": 2}, False),
}


@pytest.mark.parametrize("name", LANES)
def test_lanes(name):
    """As many requests as the golden model says, and no cycle without one: two passes' rows of the kernel have room."""
    preset, granularity, channels, others, keeps = LANES[name]
    params = PARAMS[preset]
    job = dense_job(params, granularity, channels, **{"operation": ConvOperation.DEPTHWISE} | others)
    ((made, cycles, _),) = run_jobs(params, [job])
    plan = plan_of(job[0], params.conv)
    assert plan.keeps_lines == keeps and len(made) == plan.fetch_cycles
    # The first request comes 8 cycles after the start.
    assert cycles == list(range(cycles[0], cycles[0] + len(cycles))) and cycles[0] == 8


@grid(lambda *case: case[0] == "unit" or case == ("default", "both"), preset=PARAMS, mode=FETCH_MODES)
def test_random_lanes(preset, mode):
    """Few words, so that lines wait for room."""
    params = PARAMS[preset]
    least = max(256, CHANNELS_AT_ONCE * 16 * params.lanes)
    for weight_bytes in (least, 4 * least):
        small = params.replace(conv=params.conv.replace(weight_bytes=weight_bytes))
        run_jobs(small, some_jobs(small, f"{SEED} {preset} {mode}", 3), mode)
