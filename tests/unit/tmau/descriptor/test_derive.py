"""Derived constants of one tensor; those of random descriptors are compared in the test of the descriptor check."""

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
