"""Floating-point addition against the golden model, on corners and random numbers."""

import random

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from tilewright.golden.tmau.reduce import reduce
from tilewright.hw.reduce.floats import BF16, F16, F32, FloatAdder, FloatSums, unpack
from tilewright.spec import Element, Reduction
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import set_together


class Unpacked(Elaboratable):
    """``unpack`` between ports."""

    def __init__(self):
        self.value, self.format = Signal(32), Signal(2)

    def elaborate(self, platform):
        m = Module()
        self.parts = unpack(m, "part", (F32, F16, BF16), self.format, self.value, 8, 23)
        return m


def test_parts_of_numbers():
    dut = elaborated(Unpacked)
    table = [
        # format, value: sign, size, exponent, significand, nan, infinite
        (0, 0xBFC00000, (1, 0x3FC00000, 127, 0xC00000, 0, 0)),
        (0, 0x007FFFFF, (0, 0x007FFFFF, 1, 0, 0, 0)),  # flushed
        (0, 0x7F800000, (0, 0x7F800000, 255, 0x800000, 0, 1)),
        (1, 0xABCD3E00, (0, 0x3E00, 15, 0xC00000, 0, 0)),
        (1, 0x8001, (1, 1, 1, 1 << 13, 0, 0)),
        (1, 0x7C01, (0, 0x7C01, 31, 0x802000, 1, 0)),
        (2, 0x0001, (0, 1, 1, 1 << 16, 0, 0)),
        (2, 0xFF80, (1, 0x7F80, 255, 0x800000, 0, 1)),
    ]

    async def compare(ctx):
        for fmt, value, expected in table:
            ctx.set(dut.format, fmt)
            ctx.set(dut.value, value)
            parts = dut.parts
            signals = (parts.sign, parts.size, parts.exponent, parts.significand, parts.nan, parts.infinite)
            assert tuple(ctx.get(signal) for signal in signals) == expected, f"{fmt} {value:#x}"

    simulate(dut, compare)


SEED = 27
ELEMENTS = {F16: Element.F16, BF16: Element.BF16, F32: Element.F32}


def corners(fmt):
    """Zero, the smallest and largest subnormal and normal numbers, one, infinity, NaN; of either sign."""
    one = (1 << fmt.exponent - 1) - 1
    exponents = (0, 1, 2, one, (1 << fmt.exponent) - 2, (1 << fmt.exponent) - 1)
    mantissas = (0, 1, (1 << fmt.mantissa) - 1, 1 << fmt.mantissa - 1)
    return [
        sign << fmt.width - 1 | exponent << fmt.mantissa | mantissa
        for sign in (0, 1)
        for exponent in exponents
        for mantissa in mantissas
    ]


def operands(fmt, count):
    """All pairs of corners, then random pairs; half of these have exponents within the reach of alignment."""
    rng = np.random.default_rng(SEED)
    pairs = [(a, b) for a in corners(fmt) for b in corners(fmt)]
    reach = fmt.mantissa + 4
    for number in range(count):
        a, b = (int(word) for word in rng.integers(0, 1 << fmt.width, 2))
        if number % 2:
            exponent = (a >> fmt.mantissa) + int(rng.integers(-reach, reach + 1))
            top = (1 << fmt.exponent) - 1
            b &= ~(top << fmt.mantissa)
            b |= min(max(exponent & top, 0), top) << fmt.mantissa
        pairs.append((a, b))
    return pairs


def golden_sums(fmt, pairs):
    kind = f"<u{fmt.width // 8}"
    words = [np.array(column, kind).view(np.uint8) for column in zip(*pairs, strict=True)]
    return reduce(Reduction.ADD, ELEMENTS[fmt], *words).view(kind).tolist()


def run(formats, work):
    """Sends ``work``, triples of an index of formats and two operands, one a cycle with pauses; returns the sums."""
    dut = elaborated(FloatAdder, formats)
    rng = np.random.default_rng(SEED)
    sums = []

    async def testbench(ctx):
        for index, a, b in (*work, *[(0, 0, 0)] * dut.LATENCY):
            while rng.random() < 0.1:
                ctx.set(dut.enable, 0)
                await ctx.tick()
            set_together(ctx, (dut.enable, 1), (dut.format, index), (dut.a, a), (dut.b, b))
            await ctx.tick()
            sums.append(ctx.get(dut.o))

    simulate(dut, testbench, deadline=4 * len(work) + 100)
    return sums[dut.LATENCY - 1 :][: len(work)]


@pytest.mark.parametrize(
    ("formats", "fmt"),
    [
        ((F32, F16, BF16), F32),
        ((F32, F16, BF16), F16),
        ((F16, BF16), F16),
        ((F16, BF16), BF16),
        ((F32, F16, BF16), BF16),
    ],
    ids=["f32", "f16-in-32", "f16", "bf16", "bf16-in-32"],
)
def test_sums_of_one_format(formats, fmt):
    pairs = operands(fmt, 1500)
    sums = run(formats, [(formats.index(fmt), a, b) for a, b in pairs])
    for (a, b), result, expected in zip(pairs, sums, golden_sums(fmt, pairs), strict=True):
        assert result == expected, f"{a:#x} + {b:#x} is {expected:#x}, not {result:#x}"


def test_formats_in_any_order():
    formats = (F32, F16, BF16)
    rng = np.random.default_rng(SEED)
    work = []
    for _ in range(500):
        index = int(rng.integers(len(formats)))
        work.append((index, *(int(word) for word in rng.integers(0, 1 << formats[index].width, 2))))
    expected = [golden_sums(formats[index], [pair])[0] for index, *pair in work]
    assert run(formats, work) == expected


def test_bits_above_a_short_format_are_ignored():
    one = 0x3C00
    assert run((F32, F16, BF16), [(1, 0xABCD << 16 | one, 0x4321 << 16 | one)]) == [0x4000]


def test_refused_formats():
    with pytest.raises(ValueError, match=r"^formats must be at least two, not \[\]$"):
        FloatAdder([])


FLOATS = (Element.F16, Element.BF16, Element.F32)


def test_sums_of_three_types():
    dut = elaborated(FloatSums)
    rng = random.Random(SEED)
    work = [(rng.choice(FLOATS), rng.randbytes(16), rng.randbytes(16)) for _ in range(200)]
    results = []

    async def testbench(ctx):
        for element, old, source in (*work, *[(Element.F16, bytes(16), bytes(16))] * FloatSums.LATENCY):
            while rng.random() < 0.2:
                set_together(ctx, (dut.enable, 0), (dut.old, rng.getrandbits(128)), (dut.element, rng.getrandbits(4)))
                await ctx.tick()
            operands = ((dut.old, int.from_bytes(old, "little")), (dut.source, int.from_bytes(source, "little")))
            set_together(ctx, (dut.enable, 1), (dut.element, element), *operands)
            await ctx.tick()
            results.append(ctx.get(dut.o))

    print(f"seed {SEED}")
    simulate(dut, testbench, deadline=1000)
    for (element, *operands), result in zip(work, results[FloatSums.LATENCY - 1 :], strict=False):
        expected = reduce(Reduction.ADD, element, *(np.frombuffer(side, np.uint8) for side in operands))
        assert result == int.from_bytes(expected.tobytes(), "little"), (element, operands)
