"""What lies outside the shared window is swallowed, everything else passes as it came."""

import random

import pytest

from tilewright.hw.smem.layouts import LandedLayout, LineLayout
from tilewright.hw.tmau.load.shared_guard import SharedGuard
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]

#: confine, first and last line.
WINDOWS = {
    "none": (0, 9, 4),
    "middle": (1, 7, 20),
    "one line": (1, 13, 13),
    "everything": (1, 0, PARAMS.smem.rows - 1),
    "nothing": (1, 5, 4),
}


def random_payloads(rng, layout, count):
    return [layout.from_bits(rng.getrandbits(layout.as_shape().width)) for _ in range(count)]


@pytest.mark.parametrize("mode", ["none", "both"])
@pytest.mark.parametrize("window", WINDOWS)
def test_window(window, mode):
    dut = elaborated(SharedGuard, PARAMS)
    confine, first, last = WINDOWS[window]
    rng = random.Random(SEED)
    writes, landed = (random_payloads(rng, shape(PARAMS.smem), 120) for shape in (LineLayout, LandedLayout))

    def passes(row):
        return not confine or first <= row <= last

    expected = {
        "writes": [line for line in writes if passes(line.row)],
        "landed": [item for item in landed if passes(item.barrier // 128)],
    }
    came = {}

    async def windows(ctx):
        ctx.set(dut.windows, {"confine_shared": confine, "shared_first": first, "shared_last": last})

    def source(port, items):
        async def drive(ctx):
            await send(ctx, port, items, idle=STALL_MODES[mode]["idle"], seed=1)

        return drive

    def sink(name, port):
        async def take(ctx):
            came[name], _ = await receive(ctx, port, len(expected[name]), stall=STALL_MODES[mode]["stall"], seed=2)

        return take

    print(f"seed {SEED}")
    simulate(
        dut,
        windows,
        source(dut.writes, writes),
        source(dut.landed, landed),
        sink("writes", dut.guarded_writes),
        sink("landed", dut.guarded_landed),
        background=[watch_stream(dut.guarded_writes, "writes"), watch_stream(dut.guarded_landed, "landed")],
    )
    assert came == expected


def test_what_is_swallowed_does_not_wait():
    dut = elaborated(SharedGuard, PARAMS)

    async def run(ctx):
        ctx.set(dut.windows, {"confine_shared": 1, "shared_first": 3, "shared_last": 8})
        assert await send(ctx, dut.writes, [{"row": 2}, {"row": 9}]) == [0, 1]
        ctx.set(dut.writes.payload, {"row": 3})
        ctx.set(dut.writes.valid, 1)
        assert ctx.get(dut.guarded_writes.valid) and not ctx.get(dut.writes.ready)

    simulate(dut, run)
