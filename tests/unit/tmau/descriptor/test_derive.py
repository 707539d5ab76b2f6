"""Derived constants that can be read here; random descriptors are compared in the test of the descriptor check."""

import pytest
from amaranth.hdl import Elaboratable, Module

from tilewright.golden import TensorMap
from tilewright.hw.tmau.descriptor.derive import Derivation
from tilewright.hw.tmau.descriptor.dimensions import DimensionReader
from tilewright.hw.tmau.descriptor.layouts import ListedLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate

PARAMS = TMAU_PRESETS["unit"]


class Bench(Elaboratable):
    """The derivation behind the reader that shows it a descriptor's dimensions."""

    def __init__(self):
        self.reader, self.derivation = DimensionReader(), Derivation(PARAMS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader, m.submodules.derivation = reader, derivation = self.reader, self.derivation
        m.d.comb += [
            reader.raw.eq(derivation.raw),
            reader.unit_log2.eq(derivation.unit_log2),
            derivation.dimension.eq(reader.dimension),
        ]
        return m


def derived(tmap):
    """Members of ``checked`` as a dictionary, after three passes; ``listed`` has a list for each member of a dimension,
    as the strobes brought it.
    """
    bench = elaborated(Bench)
    dut, out = bench.derivation, {}
    lists = dut.lists
    listed = {name: [None] * 5 for name in ListedLayout.AXIS + ListedLayout.ROW}

    async def check(ctx):
        ctx.set(dut.raw.as_value(), int.from_bytes(tmap.pack(), "little"))
        ctx.set(bench.reader.start, 1)
        await ctx.tick()
        ctx.set(bench.reader.start, 0)
        for _ in range(17):
            for names, strobe, number in (
                (ListedLayout.AXIS, lists.axis_stb, lists.axis),
                (ListedLayout.ROW, lists.row_stb, lists.row),
            ):
                for name in names if ctx.get(strobe) else ():
                    listed[name][ctx.get(number)] = ctx.get(lists.listed[name])
            await ctx.tick()
        checked = ctx.get(dut.checked)
        out.update({name: checked[name] for name in dict(checked.shape())} | {"listed": listed})

    simulate(bench, check)
    return out


def test_tile():
    got = derived(TensorMap(element="f16", size=(64, 10, 7), stride=(32, 1280), box=(16, 10, 5), traversal=(3, 1, 2)))
    assert got["listed"]["count"] == [16, 10, 3, 1, 1]
    assert got["listed"]["bytes"] == [32, 320, 960, 960, 960] and got["bytes"] == 960
    assert list(got["contiguous"])[:2] == [1, 0] and got["gap"] == 0
    assert got["listed"]["traversal"] == [0, 0, 1, 0, 0] and not got["gather"]
    assert got["footprint"] == 960


def test_rows_shorter_than_the_span_leave_gaps():
    got = derived(TensorMap(element="u8", size=(48, 4), stride=(48,), box=(48, 4), swizzle="64B"))
    assert (got["gapless"], got["gap"], got["footprint"]) == (0, 16, 256)
    assert not any(got["contiguous"])


def test_gathered_dimension():
    got = derived(TensorMap(element="f32", size=(64, 4), stride=(256,), box=(32, 4), traversal=(5, 1), gather0=True))
    assert got["gather"] and got["listed"]["count"][0] == 7 and got["listed"]["traversal"][0] == 4
    assert got["listed"]["bytes"][:2] == [28, 112] and not any(got["contiguous"])


def test_slices():
    got = derived(
        TensorMap(element="f16", interleave="32B", swizzle="32B", size=(9, 9, 4, 2), stride=(288, 2592, 10368),
                  box=(4, 3, 2, 2))
    )  # fmt: skip
    assert got["unit_log2"] == 5 and got["listed"]["count"] == [4, 3, 1, 2, 1], "one slice of C a command"
    assert got["bytes"] == 4 * 3 * 2 * 32


CONV = {"element": "f16", "mode": "im2col", "pixels": 10, "lower": (-1,), "upper": (2,)}


@pytest.mark.parametrize(
    ("tmap", "sizes", "strides"),
    [
        (
            TensorMap(**CONV, size=(24, 5, 3), stride=(64, 320), channels=8, traversal=(8, 2, 8)),
            [23, 4, 0, 0, 2],
            [2, 64, 0, 0, 320],
        ),
        (
            TensorMap(**CONV, size=(5, 3, 2), stride=(80, 240), channels=8, traversal=(2, 8, 8), interleave="16B"),
            [2, 4, 0, 0, 1],
            [80, 16, 0, 0, 240],
        ),
    ],
    ids=["channels first", "slices"],
)
def test_dimensions_of_a_convolution(tmap, sizes, strides):
    got = derived(tmap)
    listed = got["listed"]
    assert (listed["size"], listed["stride"], listed["traversal"]) == (sizes, strides, [0, 1, 0, 0, 7])
    assert listed["low"][1:4] == [-1, 0, 0] and listed["high"][1:4] == [7, 1, 1], "what is not there has one position"
    assert listed["count"][0] << got["unit_log2"] == 16 and got["bytes"] == got["footprint"] == 160
    corner = got["store_corner"]
    assert (corner.broken, corner.upper) == (1, 0)


def test_footprint_larger_than_shared_memory():
    got = derived(TensorMap(element="f64", size=(256,) * 5, stride=(2048,) * 4, box=(256,) * 5))
    assert got["too_large"]
