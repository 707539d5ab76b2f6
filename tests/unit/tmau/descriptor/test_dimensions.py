"""Dimensions of a descriptor, one a cycle: each three times, each in its place."""

import pytest
from amaranth.hdl import Elaboratable, Module

from tilewright.golden import TensorMap
from tilewright.golden.tmau.tile import extent, unit_bytes
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


class Bench(Elaboratable):
    """The sum behind the reader that shows it a descriptor's dimensions."""

    def __init__(self):
        self.reader, self.extent = DimensionReader(), Extent()

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader, m.submodules.extent = reader, total = self.reader, self.extent
        m.d.comb += [
            total.dimension.eq(reader.dimension),
            total.unit_log2.eq(reader.unit_log2),
            total.address.eq(reader.raw.address),
        ]
        return m


def lasts(*tmaps):
    """What comes of one after the other, without a reset in between."""
    bench = elaborated(Bench)
    dut, found = bench.extent, []

    async def check(ctx):
        for tmap in tmaps:
            ctx.set(bench.reader.raw.as_value(), int.from_bytes(tmap.pack(), "little"))
            ctx.set(bench.reader.unit_log2, unit_bytes(tmap).bit_length() - 1)
            ctx.set(bench.reader.start, 1)
            await ctx.tick()
            ctx.set(bench.reader.start, 0)
            await ctx.tick().until(dut.dimension.passes[2] & dut.dimension.at[4])
            await ctx.tick()
            first = ctx.get(dut.last)
            await ctx.tick().repeat(3)
            assert ctx.get(dut.last) == first, "it holds"
            found.append(first)

    simulate(bench, check)
    return found


SMALL = TensorMap(element="f16", size=(64, 10, 7), stride=(32, 1280), box=(16, 10, 5))
SLICES = TensorMap(element="f16", interleave="32B", swizzle="32B", size=(9, 9, 4, 2), stride=(288, 2592, 10368),
                   box=(4, 3, 2, 2))  # fmt: skip
UNALIGNED = TensorMap(element="u8", unaligned=True, size=(3, 5), stride=(7,), box=(3, 5), address=13)
MOST = TensorMap(element="f64", size=(1 << 32,) * 5, stride=((1 << 40) - 16,) * 4, box=(2,) * 5, address=(1 << 64) - 16)


@pytest.mark.parametrize(
    ("tmap", "last"),
    [
        (SMALL, 6 * 1280 + 9 * 32 + 127),
        (SLICES, 8 * 32 + 8 * 288 + 3 * 2592 + 10368 + 31),
        (UNALIGNED, 13 + 2 + 4 * 7),
        (MOST, (1 << 64) - 16 + 4 * ((1 << 32) - 1) * ((1 << 40) - 16) + (1 << 35) - 1),
    ],
    ids=["small", "slices", "unaligned", "most"],
)
def test_last_byte(tmap, last):
    assert lasts(tmap) == [last] == [tmap.address + extent(tmap) - 1]


def test_one_after_the_other():
    tmaps = [MOST, SMALL, UNALIGNED, SLICES]
    assert lasts(*tmaps) == [tmap.address + extent(tmap) - 1 for tmap in tmaps]
