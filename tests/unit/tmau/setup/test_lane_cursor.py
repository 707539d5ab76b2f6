"""The cursor visits rows, channels and batches where golden has them."""

import random

from tilewright.golden.spec import LaneLayout
from tilewright.golden.tmau.strides import lane_strides
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.lane_cursor import LaneCursor
from tilewright.sim.pysim.simulate import simulate

SEED = 20261121
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
