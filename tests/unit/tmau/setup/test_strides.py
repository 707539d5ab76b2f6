"""Strides in lanes: the page's own numbers, and hardware against golden, one tensor a cycle."""

import random

import pytest

from tilewright.golden.tmau.lanes import lane_strides
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.strides import LaneCursor, StrideCalculator
from tilewright.spec import LaneLayout
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 20261121
LATENCY = 6


@pytest.mark.parametrize(("start", "channel", "batch"), [(0, 32, 32), (2, 32, 64)])
def test_numbers_of_the_page(start, channel, batch):
    """fp16 (2, 3, 4, 5), ``eu_bytes`` 64, four lanes: strides in elements."""
    strides = lane_strides((5, 4, 3, 2), 2, start, 4, 64, LaneLayout.ALIGNED)
    assert (strides.channel // 2, strides.batch // 2) == (channel, batch)


def test_global_memory_is_contiguous():
    strides = lane_strides((2, 3, 2, 2), 1, 0, 1, 1, LaneLayout.GLOBAL)
    assert strides == (2, 6, 12, 24)


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


PARAMS = TMAU_PRESETS["unit"]
SMEM = PARAMS.smem.size_bytes


def test_every_piece():
    dut = LaneCursor(PARAMS)
    rng = random.Random(SEED)

    async def walk(ctx, shape, start, lanes_log2, layout, base):
        lanes = 1 << lanes_log2
        _, height, channels, batches = shape
        strides = lane_strides(shape, 2, start, lanes, 8, layout)
        assert base + strides.bytes <= SMEM >> lanes_log2
        ctx.set(dut.strides, strides._asdict())
        for name, value in (("lanes_log2", lanes_log2), ("start_lane", start), ("base", base), ("start", 1)):
            ctx.set(getattr(dut, name), value)
        await ctx.tick()
        ctx.set(dut.start, 0)
        for n in range(batches):
            for c in range(channels):
                for h in range(height):
                    slot, lane = divmod(start + c, lanes)
                    offset = base + n * strides.batch + slot * strides.channel + h * strides.row
                    assert ctx.get(dut.address) == lane * (SMEM >> lanes_log2) + offset
                    if rng.random() < 0.3:
                        await ctx.tick()
                    ctx.set(dut.next_channel, h == height - 1)
                    ctx.set(dut.next_batch, h == height - 1 and c == channels - 1)
                    ctx.set(dut.step, 1)
                    await ctx.tick()
                    ctx.set(dut.step, 0)

    async def run(ctx):
        for _ in range(30):
            lanes_log2 = rng.randrange(7)
            layout = rng.choice([LaneLayout.ALIGNED, LaneLayout.COMPACT, LaneLayout.ROW_ALIGNED])
            lanes = 1 << lanes_log2
            shape = [rng.randint(1, 3), rng.randint(1, 2), rng.randint(1, min(2 * lanes, 9)), 1 if lanes > 32 else 2]
            base = 0 if lanes > 8 else 8 * rng.randrange(4)
            await walk(ctx, shape, rng.randrange(lanes), lanes_log2, layout, base)

    print(f"seed {SEED}")
    simulate(dut, run)
