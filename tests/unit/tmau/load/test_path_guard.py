"""What lies outside the shared window is swallowed, everything else passes as it came."""

import random

import pytest
from amaranth.hdl import unsigned

from tilewright.hw.smem.layouts import LandedLayout
from tilewright.hw.tmau.load.path import SharedGuard
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]

#: Shape of an item, and its row.
KINDS = {
    "rows": (unsigned(PARAMS.smem.row_width), lambda row: row),
    "landed": (LandedLayout(PARAMS.smem), lambda landed: landed.barrier[7:], True),
}

#: confine, first and last line.
WINDOWS = {
    "none": (0, 9, 4),
    "middle": (1, 7, 20),
    "one line": (1, 13, 13),
    "everything": (1, 0, PARAMS.smem.rows - 1),
    "nothing": (1, 5, 4),
}


def random_items(kind, rng, count):
    if kind == "rows":
        return [rng.randrange(PARAMS.smem.rows) for _ in range(count)]
    layout = LandedLayout(PARAMS.smem)
    return [layout.from_bits(rng.getrandbits(layout.as_shape().width)) for _ in range(count)]


@pytest.mark.parametrize("mode", STALL_MODES)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", KINDS)
def test_window(kind, window, mode):
    dut = elaborated(SharedGuard, PARAMS, *KINDS[kind])
    confine, first, last = WINDOWS[window]
    items = random_items(kind, random.Random(SEED), 120)

    def passes(item):
        row = item if kind == "rows" else item.barrier // 128
        return not confine or first <= row <= last

    expected = [item for item in items if passes(item)]
    came = []

    async def source(ctx):
        ctx.set(dut.windows, {"confine_shared": confine, "shared_first": first, "shared_last": last})
        await send(ctx, dut.i, items, idle=STALL_MODES[mode]["idle"], seed=1)

    async def sink(ctx):
        came.extend((await receive(ctx, dut.o, len(expected), stall=STALL_MODES[mode]["stall"], seed=2))[0])

    print(f"seed {SEED}")
    simulate(dut, source, sink, background=[watch_stream(dut.o)])
    assert came == expected


def test_latency_one_and_full_rate():
    dut = elaborated(SharedGuard, PARAMS, *KINDS["rows"])
    result = {}

    async def source(ctx):
        result["sent"] = await send(ctx, dut.i, range(30))

    async def sink(ctx):
        result["came"] = await receive(ctx, dut.o, 30)

    simulate(dut, source, sink)
    assert result["sent"] == list(range(30))
    assert result["came"] == (list(range(30)), list(range(1, 31)))


def test_late_items_are_accepted_as_they_leave():
    dut = elaborated(SharedGuard, PARAMS, *KINDS["landed"])
    result = {}

    async def source(ctx):
        ctx.set(dut.windows, {"confine_shared": 1, "shared_first": 0, "shared_last": 3})
        result["sent"] = await send(ctx, dut.i, [{"barrier": 128 * row, "bytes": 9} for row in (2, 4, 3)])

    async def sink(ctx):
        await ctx.tick().repeat(5)
        result["came"] = (await receive(ctx, dut.o, 2))[1]

    simulate(dut, source, sink)
    assert result["came"] == [0, 4]
    assert result["sent"] == [5, 7, 9]


def test_what_is_swallowed_does_not_wait():
    dut = elaborated(SharedGuard, PARAMS, *KINDS["rows"])

    async def run(ctx):
        ctx.set(dut.windows, {"confine_shared": 1, "shared_first": 3, "shared_last": 8})
        assert await send(ctx, dut.i, [2, 9, 3]) == [0, 1, 2]
        ctx.set(dut.i.payload, 4)
        ctx.set(dut.i.valid, 1)
        assert ctx.get(dut.o.valid) and not ctx.get(dut.i.ready)

    simulate(dut, run)
