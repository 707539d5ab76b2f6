"""Floating-point addition against the golden model, on corners and random numbers."""

import numpy as np
import pytest

from tilewright.golden.tmau.reduce import reduce
from tilewright.hw.reduce.floats import BF16, F16, F32, FloatAdder
from tilewright.spec import Element, Reduction
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import set_together

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


def test_refused_formats():
    with pytest.raises(ValueError, match=r"^formats must be at least two, not \[\]$"):
        FloatAdder([])
