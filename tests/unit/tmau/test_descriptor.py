"""The descriptor check against the rules of the golden model, and its derived constants against plain arithmetic."""

import random

import pytest

from tilewright.golden import TensorMap, check_word
from tilewright.golden.spec import DESCRIPTOR, Element, Error, Fill, Swizzle
from tilewright.hw.tmau.descriptor import DescriptorCheck
from tilewright.hw.tmau.params import PRESETS
from tilewright.sim.pysim import simulate
from tilewright.sim.streams import send

SEED = 20261121


def legal_word(rng):
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
    tmap = TensorMap(
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
    return int.from_bytes(tmap.pack(), "little")


def words(rng, count):
    for index in range(count):
        word = legal_word(rng)
        if index % 3 == 1:  # one field of it at random
            field = rng.choice(DESCRIPTOR.fields)
            lsb = rng.choice(field.lsbs)
            word &= ~(((1 << field.width) - 1) << lsb)
            word |= rng.getrandbits(field.width) << lsb
        if index % 3 == 2:  # any bits at random
            for _ in range(rng.choice([1, 2, 500])):
                word ^= 1 << rng.randrange(1024)
        yield word


def derived(word, smem_bytes):
    """What a legal descriptor comes down to."""
    values = DESCRIPTOR.unpack(word)
    element = Element(values["element"])
    steps = [1, *values["traversal"][1:]]
    counts = [-(-box // step) for box, step in zip(values["box"], steps, strict=True)]
    row = counts[0] * element.bytes
    pitch = max(row, Swizzle(values["swizzle"]).span)
    run, footprint = [row], pitch
    for count in counts[1:]:
        run.append(run[-1] * count)
        footprint *= count
    gapless = pitch == row
    contiguous = [gapless and steps[k + 1] == 1 and values["stride"][k] == run[k] for k in range(4)]
    return counts, run, pitch, footprint, gapless, contiguous


@pytest.mark.parametrize("preset", ["unit", "ecp5", "default", "full"])
def test_words_are_judged_and_derived(preset):
    params = PRESETS[preset]
    dut = DescriptorCheck(params)
    rng = random.Random(SEED)
    beats = DESCRIPTOR.bits // params.bus_width

    async def check(ctx):
        for word in words(rng, 300):
            parts = [word >> i * params.bus_width & (1 << params.bus_width) - 1 for i in range(beats)]
            items = [{"data": part, "error": 0, "last": i == beats - 1} for i, part in enumerate(parts)]
            await send(ctx, dut.words, items, idle=0.2, seed=rng.getrandbits(32))
            for _ in range(2):
                assert not ctx.get(dut.done)
                await ctx.tick()
            assert ctx.get(dut.done), "three cycles after the last word"
            fault, checked = ctx.get(dut.fault), ctx.get(dut.checked)
            refusal = check_word(word)
            if refusal:
                assert (Error(fault.code), fault.field, fault.value) == refusal, f"{word:#x}"
            else:
                assert fault.code == Error.NONE, f"{word:#x}"
                counts, run, pitch, footprint, gapless, contiguous = derived(word, params.smem.size_bytes)
                assert list(checked.counts) == counts
                assert checked.pitch == pitch and checked.gapless == gapless
                assert (checked.too_large or checked.footprint > params.smem.size_bytes) == (
                    footprint > params.smem.size_bytes
                )
                if footprint <= params.smem.size_bytes:  # of a larger one only its refusal matters
                    assert list(checked.contiguous) == contiguous
                    assert list(checked.run_bytes) == run and checked.footprint == footprint
            await ctx.tick()

    print(f"seed {SEED}")
    simulate(dut, check, deadline=20_000)


def test_bus_error_is_reported_before_anything_else():
    params = PRESETS["unit"]
    dut = DescriptorCheck(params)

    async def check(ctx):
        for failing in range(8):
            items = [{"data": 0, "error": i == failing, "last": i == 7} for i in range(8)]
            await send(ctx, dut.words, items)
            await ctx.tick().repeat(2)
            assert ctx.get(dut.done) and ctx.get(dut.fault.code) == Error.DESCRIPTOR_READ
            await ctx.tick()

    simulate(dut, check)
