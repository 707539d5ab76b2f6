"""The descriptor check against golden: the same refusal for any word, and the constants of every good one."""

import random

import pytest
from amaranth.lib import data

from tilewright.golden import TensorMap, check_word
from tilewright.golden.spec import DESCRIPTOR, Element, Error, Fill, Mode, Swizzle
from tilewright.golden.spec.tmau.features import FEATURES
from tilewright.golden.tmau.tile import footprint
from tilewright.hw.tmau.descriptor.check import DescriptorCheck
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.pysim.payloads import checked_payload
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import send
from tilewright.sim.random.maps import random_start

SEED = 20261121
#: Members that mean nothing if the transfer does not fit shared memory.
PRODUCTS = {"footprint", "run_bytes", "contiguous", "too_large"}


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


def compare(checked, tmap, params):
    expected = plain(checked_payload(tmap, params))
    too_large = footprint(tmap) > params.smem.size_bytes
    assert (checked["too_large"] or checked["footprint"] > params.smem.size_bytes) == too_large, tmap
    if tmap.mode == Mode.IM2COL:
        checked["counts"][1:] = [0] * 4  # they mean nothing
    for name in expected.keys() - (PRODUCTS if too_large else set()):
        assert checked[name] == expected[name], (name, checked[name], expected[name], tmap)


DIMENSIONS, BOUNDS, ROWS = ("sizes", "strides", "traversals"), ("lows", "highs"), ("counts", "run_bytes")


async def until_done(ctx, dut):
    """Waits 19 cycles after the last word; what came with strobes, each of which comes once."""
    kept = {name: [None] * 5 for name in DIMENSIONS + ROWS} | {name: [None] * 3 for name in BOUNDS}

    def keep(names, strobes):
        for place in (place for place in range(strobes.bit_length()) if strobes >> place & 1):
            for name in names:
                assert kept[name][place] is None, name
                kept[name][place] = ctx.get(dut.checked[name][place])

    for _ in range(18):
        assert not ctx.get(dut.done)
        strobes = ctx.get(dut.dimension_stb)
        keep(DIMENSIONS, strobes)
        keep(BOUNDS, strobes >> 1 & 7)
        keep(ROWS, ctx.get(dut.row_stb))
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
            kept = await until_done(ctx, dut)
            fault, refusal = ctx.get(dut.fault), check_word(word, params.features)
            if refusal:
                assert (Error(fault.code), fault.field) == refusal[:2], f"{word:#x}"
            else:
                assert fault.code == Error.NONE, f"{word:#x}"
                compare(plain(ctx.get(dut.checked)) | kept, TensorMap.unpack(word.to_bytes(128, "little")), params)
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
