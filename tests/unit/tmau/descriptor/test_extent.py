"""The end of a tensor: small ones that can be read here, and the largest."""

import pytest
from amaranth.hdl import Elaboratable, Module

from tilewright.golden import TensorMap
from tilewright.golden.tmau.tile import extent, unit_bytes
from tilewright.hw.tmau.descriptor.dimensions import DimensionReader
from tilewright.hw.tmau.descriptor.extent import Extent
from tilewright.sim.pysim.simulate import elaborated, simulate


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
