"""Dimensions of a descriptor, one a cycle: each three times, each in its place."""

import pytest
from amaranth.hdl import Module

from tilewright.golden import TensorMap
from tilewright.hw.tmau.descriptor.dimensions import DimensionReader, Extent
from tilewright.verify.pysim.simulate import elaborated, simulate

CONV = {"element": "f16", "mode": "im2col", "channels": 8, "pixels": 10}
TILE = TensorMap(element="f32", size=(64, 10, 7), stride=(256, 2560), box=(16, 9, 5), traversal=(3, 1, 2))
#: A map, and for each dimension its place in the order of the walk.
MAPS = {
    "tile": (TILE, [0, 1, 2, 3, 4]),
    "W": (TensorMap(**CONV, size=(24, 5, 3), stride=(64, 320), lower=(-1,), upper=(2,)), [0, 1, 4, 2, 3]),
    "W, H": (
        TensorMap(**CONV, size=(24, 5, 6, 3), stride=(64, 320, 1920), lower=(-1, -2), upper=(2, 3)),
        [0, 1, 2, 4, 3],
    ),
    "W, H, D": (
        TensorMap(**CONV, size=(24, 5, 6, 7, 3), stride=(64, 320, 1920, 13440), lower=(-1, -2, -3), upper=(2, 3, 4)),
        [0, 1, 2, 3, 4],
    ),
    "W of slices": (
        TensorMap(**CONV, interleave="16B", size=(5, 3, 2), stride=(80, 240), lower=(-1,), upper=(2,)),
        [1, 0, 4, 2, 3],
    ),
    "W, H of slices": (
        TensorMap(**CONV, interleave="16B", size=(5, 6, 3, 2), stride=(80, 480, 1440), lower=(-1, -2), upper=(2, 3)),
        [1, 2, 0, 4, 3],
    ),
    "W, H, D of slices": (
        TensorMap(**CONV, interleave="16B", size=(5, 6, 7, 3, 2), stride=(80, 480, 3360, 10080), lower=(-1, -2, -3),
                  upper=(2, 3, 4)),
        [1, 2, 3, 0, 4],
    ),
}  # fmt: skip


def shown(tmap):
    """What is shown from the cycle after the strobe on until there is nothing more."""
    dut, seen = elaborated(DimensionReader), []

    async def run(ctx):
        ctx.set(dut.raw.as_value(), int.from_bytes(tmap.pack(), "little"))
        ctx.set(dut.unit_log2, 2)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        assert not ctx.get(dut.dimension.passes)
        for _ in range(16):
            await ctx.tick()
            seen.append(ctx.get(dut.dimension))
        for _ in range(10):
            assert not ctx.get(dut.dimension.passes)
            await ctx.tick()

    simulate(dut, run)
    assert not seen.pop().passes
    return seen


@pytest.mark.parametrize("name", MAPS)
def test_three_passes(name):
    tmap, places = MAPS[name]
    seen = shown(tmap)
    assert [(item.passes, item.at) for item in seen] == [(1 << n, 1 << d) for n in range(3) for d in range(5)]
    unused = [0] * (5 - tmap.rank)
    lower, upper = (dict(zip((1, 2, 3), corners or (), strict=False)) for corners in (tmap.lower, tmap.upper))
    for item, d in zip(seen, [*range(5)] * 3, strict=True):
        assert item.place == 1 << places[d] and item.used == (d < tmap.rank)
        assert item.size == [*(size - 1 for size in tmap.size), *unused][d]
        stride = [4, *tmap.stride, *unused][d]
        assert item.stride == stride
        assert item.part == stride >> {1: 28, 2: 14, 4: 0}[item.passes] & 0x3FFF
        assert item.traversal == [*(step - 1 for step in tmap.traversal), *unused][d]
        assert (item.lower, item.upper) == (lower.get(places[d], 0), upper.get(places[d], 0))
        if tmap is TILE:
            assert item.box == [15, 8, 4, 0, 0][d]


FAR = TensorMap(element="f32", size=(64, 1 << 20, 9), stride=(1 << 30, (1 << 40) - 16), box=(16, 9, 5))


def test_address_of_the_last_byte():
    """For units of 1 to 32 bytes, one descriptor after another."""
    m = Module()
    m.submodules.reader, m.submodules.extent = reader, extent = DimensionReader(), Extent()
    m.d.comb += [
        extent.dimension.eq(reader.dimension),
        extent.unit_log2.eq(reader.unit_log2),
        extent.address.eq(reader.raw.address),
    ]

    async def run(ctx):
        for number, tmap in enumerate([TILE, FAR] * 6):
            unit = number % 6
            ctx.set(reader.raw.as_value(), int.from_bytes(tmap.pack(), "little"))
            ctx.set(reader.raw.address, address := 0x1234_5678_9000 + number)
            ctx.set(reader.unit_log2, unit)
            ctx.set(reader.start, 1)
            await ctx.tick()
            ctx.set(reader.start, 0)
            await ctx.tick().repeat(17)
            steps = zip(tmap.size, [1 << unit, *tmap.stride], strict=True)
            assert (
                ctx.get(extent.last) == address + sum((size - 1) * stride for size, stride in steps) + (1 << unit) - 1
            )

    simulate(m, run)
