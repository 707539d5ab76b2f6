"""Every rule of a descriptor: one legal word, one change, one refusal that can be read here."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib import data

from tilewright.golden import TensorMap, check_word
from tilewright.golden.tmau.tile import footprint
from tilewright.hw.tmau.descriptor.check import DescriptorCheck, DescriptorRules
from tilewright.hw.tmau.descriptor.dimensions import DimensionReader
from tilewright.hw.tmau.descriptor.layouts import ListedLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import DESCRIPTOR, Element, Error, Fill, Swizzle
from tilewright.spec.tmau_registers import FEATURES
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send
from tilewright.verify.pysim.tmau_neighbours import checked_payload, listed_payload
from tilewright.verify.random.maps import random_start

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


SEED = 20261121
#: Members that mean nothing if the transfer does not fit shared memory.
PRODUCTS = {"footprint", "bytes", "contiguous", "too_large"}


def tile_map(rng):
    """A legal map in tile mode without extensions, of any size."""
    element = rng.choice(list(Element))
    swizzle = rng.choice(list(Swizzle))
    rank = rng.randint(1, 5)
    row = 16 * rng.randint(1, (swizzle.span or 256 * element.bytes) // 16)
    fills = list(Fill) if element.is_float else [Fill.ZERO, Fill.CONSTANT]
    box = [min(row // element.bytes, 256), *(rng.choice([1, 2, 7, 256]) for _ in range(rank - 1))]
    stride, packed = [], box[0] * element.bytes
    for extent in box[1:]:
        # Half of the strides continue the dimension below without a gap.
        stride.append(packed if rng.random() < 0.5 and packed < 1 << 40 else 16 * rng.getrandbits(rng.randint(1, 36)))
        packed *= extent
    return TensorMap(
        element=element,
        size=[rng.randint(1, 1 << 32) for _ in range(rank)],
        stride=stride,
        box=box,
        traversal=[1, *(rng.choice([1, 1, 2, 3, 8]) for _ in range(rank - 1))],
        swizzle=swizzle,
        fill=rng.choice(fills),
        fill_constant=rng.getrandbits(32),
        address=16 * rng.getrandbits(44),
    )


def any_map(rng):
    """A legal small map of any mode."""
    return random_start(rng, first=0, end=1 << 20, most_bytes=4096).tmap


def words(rng, count):
    for index in range(count):
        tmap = rng.choice([tile_map, any_map, any_map])(rng)
        word = int.from_bytes(tmap.pack(), "little")
        if index % 3 == 1:  # one field of it at random
            field = rng.choice(DESCRIPTOR.fields)
            lsb = rng.choice(field.lsbs)
            word &= ~(((1 << field.width) - 1) << lsb)
            word |= rng.getrandbits(field.width) << lsb
        if index % 3 == 2:  # any bits at random
            for _ in range(rng.choice([1, 2, 500])):
                word ^= 1 << rng.randrange(1024)
        yield word


def plain(value):
    """Views, enumerations and truth values as numbers, lists and dictionaries."""
    if isinstance(value, data.Const):
        members = dict(value.shape())
        value = [value[key] for key in members] if 0 in members else {key: value[key] for key in members}
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return [plain(member) for member in value] if isinstance(value, list) else int(value)


def compare(checked, lists, tmap, params):
    expected = plain(checked_payload(tmap, params))
    too_large = footprint(tmap) > params.smem.size_bytes
    assert (checked["too_large"] or checked["footprint"] > params.smem.size_bytes) == too_large, tmap
    products = PRODUCTS if too_large else set()
    for name in expected.keys() - products:
        assert checked[name] == expected[name], (name, checked[name], expected[name], tmap)
    shapes = ListedLayout(params).members
    for number, (kept, dimension) in enumerate(zip(lists, listed_payload(tmap, params), strict=True)):
        for name in dimension.keys() - products:
            # What hardware has no bits for is zero.
            assert kept[name] == dimension[name] or not shapes[name].width, (number, name, tmap)


async def until_done(ctx, dut):
    """Waits 19 cycles after the last word; what dimensions have, each part of which comes once."""
    kept = [{} for _ in range(5)]
    for _ in range(18):
        assert not ctx.get(dut.done)
        lists = ctx.get(dut.lists)
        for names, strobe, number in (
            (ListedLayout.AXIS, lists.axis_stb, lists.axis),
            (ListedLayout.ROW, lists.row_stb, lists.row),
        ):
            for name in names if strobe else ():
                assert name not in kept[number]
                kept[number][name] = lists.listed[name]
        await ctx.tick()
    assert ctx.get(dut.done), "19 cycles after the last word"
    return kept


#: Features that hardware may lack, together.
MISSING = [
    tuple(FEATURES),
    *(
        pytest.param(names, marks=pytest.mark.long)
        for names in (
            ("im2col",),
            ("interleave",),
            ("unaligned",),
            ("gather",),
            ("swizzle",),
            ("tf32",),
            ("im2col", "gather"),
        )
    ),
]


@pytest.mark.parametrize("missing", MISSING, ids="-".join)
def test_words_for_fewer_features(missing):
    """Refusals of what is missing, and constants of the rest."""
    judge(TMAU_PRESETS["unit"].replace(features=[name for name in FEATURES if name not in missing]), 5)


@pytest.mark.parametrize(
    "preset", ["unit", *(pytest.param(name, marks=pytest.mark.long) for name in ("ecp5", "default", "full"))]
)
def test_words_are_judged_and_derived(preset):
    judge(TMAU_PRESETS[preset], 100)


def judge(params, least):
    """Compares 300 words, of which so many must be good."""
    dut = elaborated(DescriptorCheck, params)
    rng = random.Random(SEED)
    beats = DESCRIPTOR.bits // params.bus_width
    good = []

    async def check(ctx):
        for word in words(rng, 300):
            parts = [word >> i * params.bus_width & (1 << params.bus_width) - 1 for i in range(beats)]
            items = [{"data": part, "error": 0, "last": i == beats - 1} for i, part in enumerate(parts)]
            await send(ctx, dut.words, items, idle=0.2, seed=rng.getrandbits(32))
            lists = await until_done(ctx, dut)
            fault, refusal = ctx.get(dut.fault), check_word(word, params.features)
            if refusal:
                assert (Error(fault.code), fault.field) == refusal[:2], f"{word:#x}"
            else:
                assert fault.code == Error.NONE, f"{word:#x}"
                compare(plain(ctx.get(dut.checked)), lists, TensorMap.unpack(word.to_bytes(128, "little")), params)
                good.append(word)
            await ctx.tick()

    print(f"seed {SEED}")
    simulate(dut, check, deadline=20_000)
    assert len(good) >= least


def test_bus_error_is_reported_before_anything_else():
    params = TMAU_PRESETS["unit"]
    dut = elaborated(DescriptorCheck, params)

    async def check(ctx):
        for failing in range(8):
            items = [{"data": 0, "error": i == failing, "last": i == 7} for i in range(8)]
            await send(ctx, dut.words, items)
            await until_done(ctx, dut)
            assert ctx.get(dut.fault.code) == Error.DESCRIPTOR_READ
            await ctx.tick()

    simulate(dut, check)
