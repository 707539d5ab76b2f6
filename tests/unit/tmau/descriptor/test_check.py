"""The descriptor check against golden: the same refusal for any word, and the constants of every good one.

Each rule has its cases in tests/integration/tmau/test_errors.py.
"""

import random

from amaranth.lib import data

from support.selection import cases
from support.tmau_neighbours import checked_payload, listed_payload
from tilewright.golden import TensorMap, check_word
from tilewright.golden.tmau.tile import footprint
from tilewright.hw.tmau.descriptor.check import DescriptorCheck
from tilewright.hw.tmau.descriptor.layouts import ListedLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import DESCRIPTOR, Element, Error, Fill, Swizzle
from tilewright.spec.tmau_registers import FEATURES
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send
from tilewright.verify.random.maps import random_start

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
MISSING = [(name,) for name in ("im2col", "interleave", "unaligned", "gather", "swizzle", "tf32")]


@cases("missing", [tuple(FEATURES)], [*MISSING, ("im2col", "gather")], ids="-".join)
def test_words_for_fewer_features(missing):
    """Refusals of what is missing, and constants of the rest."""
    judge(TMAU_PRESETS["unit"].replace(features=[name for name in FEATURES if name not in missing]), 5)


@cases("preset", ["unit"], ["ecp5", "default", "full"])
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
