"""Every rule of a descriptor: one legal word, one change, one refusal that can be read here."""

import pytest
from amaranth.hdl import Elaboratable, Module

from tilewright.golden import TensorMap, check_word
from tilewright.golden.spec import DESCRIPTOR, Error
from tilewright.hw.tmau.descriptor.dimensions import DimensionReader
from tilewright.hw.tmau.descriptor.rules import DescriptorRules
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.simulate import elaborated, simulate

TILE = TensorMap(element="f16", size=(64, 8), stride=(128,), box=(16, 4))
CONV = TensorMap(
    element="f16",
    mode="im2col",
    size=(64, 9, 9, 2),
    stride=(128, 1152, 10368),
    lower=(-1, -1),
    upper=(-1, -1),
    channels=32,
    pixels=64,
)
SLICED = TensorMap(element="u8", interleave="32B", swizzle="32B", size=(9, 9, 4, 2), stride=(288, 2592, 10368),
                   box=(4, 4, 1, 1))  # fmt: skip
SLICED_CONV = TensorMap(element="f16", mode="im2col", interleave="16B", size=(9, 4, 2), stride=(160, 640), lower=(-2,),
                        upper=(-2,), channels=8, pixels=5)  # fmt: skip

#: Map, stored numbers that are changed, and what is wrong then: code, field, value.
BROKEN = {
    "version": (TILE, {"version": 2}, Error.VERSION, "version", 2),
    "no dimension": (TILE, {"rank": 0}, Error.RANK, "rank", 0),
    "sixth dimension": (TILE, {"rank": 6}, Error.RANK, "rank", 6),
    "two dimensions of a convolution": (TILE, {"mode": 1}, Error.RANK, "rank", 2),
    "two dimensions with slices": (TILE, {"interleave": 1}, Error.RANK, "rank", 2),
    "element": (TILE, {"element": 15}, Error.ELEMENT, "element", 15),
    "interleave": (SLICED, {"interleave": 3}, Error.INTERLEAVE, "interleave", 3),
    "fill": (TILE, {"fill": 3}, Error.FILL, "fill", 3),
    "nan of an integer": (SLICED, {"fill": 1}, Error.FILL, "fill", 1),
    "address": (TILE, {"address": 8}, Error.ADDRESS, "address", 8),
    "address of wide slices": (SLICED, {"address": 16}, Error.ADDRESS, "address", 16),
    "address of half an element": (TILE, {"unaligned": 1, "address": 3}, Error.ADDRESS, "address", 3),
    "stride": (TILE, {"stride": [136]}, Error.STRIDE, "stride", 136),
    "stride of half an element": (TILE, {"unaligned": 1, "stride": [131]}, Error.STRIDE, "stride", 131),
    "ragged row": (TILE, {"box": [14, 3]}, Error.BOX, "box", 14),
    "traversal": (TILE, {"traversal": [0, 8]}, Error.TRAVERSAL, "traversal", 8),
    "row longer than the span": (TILE, {"swizzle": 1, "box": [31, 3]}, Error.SWIZZLE, "swizzle", 1),
    "gathered row longer than the span": (
        TILE,
        {"swizzle": 1, "gather0": 1, "traversal": [7, 0], "box": [31, 3]},
        Error.SWIZZLE,
        "swizzle",
        1,
    ),
    "pixel longer than the span": (CONV, {"swizzle": 1}, Error.SWIZZLE, "swizzle", 1),
    "swizzle of wide slices": (SLICED, {"swizzle": 2}, Error.SWIZZLE, "swizzle", 2),
    "size of a dimension that is not there": (TILE, {"size": [63, 7, 1]}, Error.UNUSED, "size", 1),
    "stride of a dimension that is not there": (TILE, {"stride": [128, 16]}, Error.UNUSED, "stride", 16),
    "lower corner of more than eight bits": (CONV, {"lower": [0x80, 0]}, Error.CORNER, "lower", 0x80),
    "upper corner of more than eight bits": (CONV, {"upper": [0, 0xFF7F]}, Error.CORNER, "upper", 0xFF7F),
    "empty bounding box": (CONV, {"lower": [4, 0], "upper": [0xFFFB, 0]}, Error.CORNER, "upper", 0xFFFB),
    "empty bounding box of slices": (SLICED_CONV, {"lower": [4], "upper": [0xFFFB]}, Error.CORNER, "upper", 0xFFFB),
    "ragged pixel": (CONV, {"channels": 6}, Error.CHANNELS, "channels", 6),
    "pixel of two slices": (SLICED_CONV, {"channels": 15}, Error.CHANNELS, "channels", 15),
    "ragged slice": (SLICED_CONV, {"channels": 6, "unaligned": 1}, Error.CHANNELS, "channels", 6),
}
LEGAL = {
    "tile": (TILE, {}),
    "convolution": (CONV, {}),
    "slices": (SLICED, {}),
    "convolution of slices": (SLICED_CONV, {}),
    "ragged row where it may be": (TILE, {"unaligned": 1, "box": [2, 3], "address": 2, "stride": [130]}),
    "ragged pixel where it may be": (CONV, {"unaligned": 1, "channels": 6}),
    "box of a convolution": (CONV, {"box": [0, 1, 2, 3]}),
    "traversal of a dimension that ignores it": (TILE, {"traversal": [7, 0]}),
    "row of slices longer than the span": (SLICED, {"box": [255, 0, 0, 0]}),
    "unaligned slices": (SLICED, {"unaligned": 1, "address": 1, "stride": [1, 2, 3]}),
    "corner of sixteen bits": (SLICED_CONV, {"lower": [0x8000]}),
    "smallest bounding box": (CONV, {"lower": [4, 0], "upper": [0xFFFC, 0]}),
}


def changed(tmap, changes):
    word = int.from_bytes(tmap.pack(), "little")
    for name, stored in changes.items():
        field = DESCRIPTOR[name]
        for lsb, number in zip(field.lsbs, stored if field.count else [stored], strict=False):
            word = word & ~(((1 << field.width) - 1) << lsb) | number << lsb
    return word


class Judge(Elaboratable):
    """The rules behind the reader that shows them a descriptor's dimensions."""

    def __init__(self):
        self.reader, self.rules = DimensionReader(), DescriptorRules(TMAU_PRESETS["unit"])

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader, m.submodules.rules = self.reader, self.rules
        m.d.comb += [self.reader.raw.eq(self.rules.raw), self.rules.dimension.eq(self.reader.dimension)]
        return m


def refusal(word, **inputs):
    judge = elaborated(Judge)
    dut, found = judge.rules, []

    async def check(ctx):
        ctx.set(dut.raw.as_value(), word)
        for name, value in inputs.items():
            ctx.set(getattr(dut, name), value)
        ctx.set(judge.reader.start, 1)
        await ctx.tick()
        ctx.set(judge.reader.start, 0)
        await ctx.tick().until(dut.dimension.passes[0] & dut.dimension.at[4])
        await ctx.tick().repeat(2)
        fault = ctx.get(dut.fault)
        found.append((Error(fault.code), fault.field))

    simulate(judge, check)
    return found[0]


@pytest.mark.parametrize("case", BROKEN)
def test_broken_rule(case):
    tmap, changes, code, field, value = BROKEN[case]
    word = changed(tmap, changes)
    assert refusal(word) == (code, DESCRIPTOR.index(field))
    assert check_word(word) == (code, DESCRIPTOR.index(field), value)


@pytest.mark.parametrize("case", LEGAL)
def test_legal_word(case):
    word = changed(*LEGAL[case])
    assert refusal(word)[0] == Error.NONE
    assert check_word(word) is None


def test_what_came_with_the_words():
    word = changed(TILE, {"version": 9})
    assert refusal(word, read_error=1, reserved=1) == (Error.DESCRIPTOR_READ, 0)
    assert refusal(changed(TILE, {"rank": 0}), reserved=1) == (Error.RESERVED, 0)
