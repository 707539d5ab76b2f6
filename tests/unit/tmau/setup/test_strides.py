"""Strides in lanes against golden, one tensor a cycle; tests of the setup show where the cursor goes."""

import random

import pytest

from tilewright.golden.tmau.lanes import lane_strides
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.strides import StrideCalculator
from tilewright.spec import LaneLayout
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 20261121
LATENCY = 6


def random_tensor(rng):
    big = rng.random() < 0.2
    shape = [rng.randint(1, rng.choice([4, 40, 65536] if big else [1, 3, 9])) for _ in range(4)]
    return shape, rng.randrange(4), rng.randrange(8), rng.randrange(7), rng.randrange(256), rng.randrange(4)


@pytest.mark.parametrize("preset", ["unit", "full"])
def test_hardware_is_golden(preset):
    params = TMAU_PRESETS[preset]
    dut = elaborated(StrideCalculator, params)
    rng = random.Random(SEED)
    tensors = [random_tensor(rng) for _ in range(600)]
    limit = 1 << params.smem.addr_width
    large = []

    async def run(ctx):
        for cycle in range(len(tensors) + LATENCY):
            if cycle >= LATENCY:
                shape, element, eu, lanes, start, layout = tensors[cycle - LATENCY]
                wanted = lane_strides(shape, 1 << element, start, 1 << lanes, 1 << eu, LaneLayout(layout))
                got = ctx.get(dut.o)
                if wanted.bytes >= 2 * limit:
                    assert got.too_large
                    large.append(wanted)
                else:
                    assert (got.row, got.channel, got.batch, got.bytes, got.too_large) == (*wanted, 0)
            if cycle < len(tensors):
                shape, element, eu, lanes, start, layout = tensors[cycle]
                is_global = layout == LaneLayout.GLOBAL
                ctx.set(
                    dut.i,
                    {
                        "sizes": [size - 1 for size in shape],
                        "element_log2": element,
                        "eu_log2": eu,
                        "lanes_log2": 0 if is_global else lanes,
                        "start_lane": 0 if is_global else start,
                        "layout": layout,
                    },
                )
            await ctx.tick()

    print(f"seed {SEED}")
    simulate(dut, run)
    assert 20 < len(large) < 500
