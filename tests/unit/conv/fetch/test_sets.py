"""The order of requests of a convolution: how many, one a cycle, in pairs, and again for the same points."""

import pytest

from support.conv import conv_unit, conv_units
from support.conv_fetch import FetchArray, FetchGatherer, dense_job, make_path, run_jobs, start_job, wanted_sets
from support.selection import grid
from tilewright.spec.conv import CHANNELS_AT_ONCE, ConvOperation
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 22
PARAMS = conv_units("unit", "ecp5", "default", "wide", "one-slave", smem=16384)
#: Preset, granularity, channels; requests that two successive sets take, and so cycles.
RATES = {
    "a row is a request": ("default", 5, 32, 2),
    "pairs": ("default", 5, 64, 2),
    "three blocks": ("default", 5, 96, 2),
    "folded twice": ("default", 4, 32, 2),
    "folded four times": ("default", 3, 16, 4),
    "folded 16 times": ("default", 1, 2, 16),
    "small": ("ecp5", 4, 16, 2),
    "small pairs": ("ecp5", 4, 32, 2),
}


@pytest.mark.parametrize("name", RATES)
def test_a_request_a_cycle(name):
    """Exact numbers of requests, and no cycle without one as soon as the second tile has been walked."""
    preset, granularity, channels, requests = RATES[name]
    # With room for more sets than are under way at once.
    params = conv_unit(preset, 16384, feature_rows=64)
    job = dense_job(params, granularity, channels, operation=ConvOperation.CONVOLUTION)
    ((made, cycles, sets),) = run_jobs(params, [job])
    assert 2 * len(made) == requests * sets
    places = params.conv.units * params.conv.row_bytes >> granularity + params.place_pairs
    # The first place comes 1 cycle after the start, the first request 7 after the last place of the tile.
    assert cycles[0] == places + 8
    if places + 2 < requests * 9 * -(-channels >> granularity) // 2:
        assert cycles == list(range(cycles[0], cycles[0] + len(cycles)))


@grid(lambda preset: preset in ("unit", "default"), preset=PARAMS)
def test_pairs(preset):
    """Blocks of a whole row, an even and an odd number of them, the last one cut short; merged columns; two passes."""
    params = PARAMS[preset]
    row = params.conv.row_bytes
    shape = {"width": 5, "height": 2, "out_channels": CHANNELS_AT_ONCE * params.conv.slaves + 1}
    jobs = [
        dense_job(params, row.bit_length() - 1, channels, kernel=(3, 1), merge=merge, raster=raster, **shape)
        for channels, merge, raster in ((2 * row - 1, 1, 0), (2 * row + 3, 1, 1), (row // 2 + 5, 3, 1), (row - 2, 2, 0))
    ]
    run_jobs(params, jobs, "both")


BLOCKS = [(3, 24, 2 / 3), (3, 8, 0), (1, 5, 2 / 3), (4, 32, 1 / 2)]


@pytest.mark.parametrize(("granularity", "channels", "share"), BLOCKS)
def test_blocks_of_the_same_points(granularity, channels, share):
    """Of each set but the first one of its pixels, the gatherer is told that the same points have been asked for."""
    params = PARAMS["default"]
    path = elaborated(make_path, params)
    gatherer, array = FetchGatherer(path, SEED, 0.1, 0.2), FetchArray(path, SEED, 0.2)

    async def bench(ctx):
        for raster in (0, 1):
            fields, gatherer.smem = dense_job(params, granularity, channels, raster=raster, width=9)
            array.expected = [(*each, f"raster {raster}") for each in wanted_sets(fields, gatherer.smem, params)]
            await start_job(ctx, path, fields)
            while array.expected or array.held:
                await ctx.tick()

    simulate(path, bench, background=[gatherer.serve, array.watch_writes, array.serve])
    assert gatherer.again == share * len(gatherer.requests) and gatherer.requests
