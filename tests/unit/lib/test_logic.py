"""Functions that build logic, against integer arithmetic."""

import random
from functools import partial
from itertools import product

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Const, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.lib.logic import (
    ceil_divide,
    delay,
    digit_product,
    is_one_of,
    lowest_set,
    mux_tree,
    rotate_bytes,
    shift_down,
)
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import run_pipeline

SEED = 20261123


def evaluate(build, widths, cases):
    """What ``build(m, *inputs)`` computes for each case, a tuple of input values."""
    m, results = Module(), []
    inputs = [Signal(width, name=f"input{number}") for number, width in enumerate(widths)]
    value = build(m, *inputs)
    o = Signal(len(value))
    m.d.comb += o.eq(value)

    async def testbench(ctx):
        for case in cases:
            for signal, number in zip(inputs, case, strict=True):
                ctx.set(signal, number)
            await ctx.delay(1e-9)
            results.append(ctx.get(o))

    simulate(m, testbench)
    return results


class Delayed(wiring.Component):
    i: In(signed(4))
    o: Out(signed(8))

    def __init__(self, cycles):
        super().__init__()
        self.LATENCY = cycles

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(delay(m, self.i, self.LATENCY, name="i"))
        return m


@pytest.mark.parametrize("cycles", [0, 1, 5])
def test_delay(cycles):
    values = [3, -8, 7, 0, -1, 5]
    results = run_pipeline(Delayed(cycles), [{"i": value} for value in values])
    assert [result["o"] for result in results] == values


@pytest.mark.parametrize("codes", [(5,), (0, 1), (0, 4), (0, 3, 4), (0, 2, 3, 4, 6), range(8)])
def test_mux_tree(codes):
    values = {code: Signal(8, init=10 + code) for code in codes}
    results = evaluate(lambda m, code: mux_tree(code, values), [3], [(code,) for code in codes])
    assert results == [10 + code for code in codes]


def test_mux_tree_of_shared_values():
    code, a, b = Signal(2), Signal(8), Signal(8)
    assert mux_tree(code, {0: a, 1: a, 3: a}) is a
    assert mux_tree(code, {0: a, 1: b}) is not a


@pytest.mark.parametrize("count", [2, 4, 8])
def test_lowest_set(count):
    cases = [(bits,) for bits in range(1, 1 << count)]
    results = evaluate(lambda m, bits: lowest_set(list(bits)), [count], cases)
    assert results == [(bits & -bits).bit_length() - 1 for (bits,) in cases]


@pytest.mark.parametrize("values", [(), (0,), (3, 5, 6), tuple(range(8))])
def test_is_one_of(values):
    results = evaluate(lambda m, code: is_one_of(code, values), [3], [(code,) for code in range(8)])
    assert results == [code in values for code in range(8)]


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("bits", [4, 5])
def test_rotate_bytes(bits, left):
    rng, count = random.Random(SEED), 1 << bits
    cases = [(rng.getrandbits(8 * count), distance) for distance in range(count)]
    results = evaluate(lambda m, value, distance: rotate_bytes(m, value, distance, left=left), [8 * count, bits], cases)
    for result, (value, distance) in zip(results, cases, strict=True):
        raw, cut = value.to_bytes(count, "little"), -distance % count if left else distance
        assert result.to_bytes(count, "little") == raw[cut:] + raw[:cut]


@pytest.mark.parametrize(("width", "bits", "unit"), [(12, 2, 1), (12, 4, 1), (12, 6, 1), (35, 3, 8), (1, 2, 1)])
def test_shift_down(width, bits, unit):
    rng = random.Random(SEED)
    numbers = [0, 1, 1 << width - 1, *(rng.getrandbits(width) for _ in range(20))]
    cases = list(product(numbers, range(1 << bits)))
    results = evaluate(lambda m, value, distance: shift_down(m, value, distance, unit=unit), [width, bits], cases)
    for result, (number, distance) in zip(results, cases, strict=True):
        shifted = number >> distance * unit
        assert result == shifted | (shifted << distance * unit != number)


@pytest.mark.parametrize("widths", [(6, 6), (1, 2), (3, 8), (7, 4)])
def test_digit_product(widths):
    cases = list(product(*(range(1 << width) for width in widths)))
    assert evaluate(digit_product, widths, cases) == [a * b for a, b in cases]
    assert len(digit_product(Module(), *map(Signal, widths))) == sum(widths)


def test_digit_product_of_an_odd_width():
    with pytest.raises(ValueError, match="b must have an even number of bits, not 5"):
        digit_product(Module(), Const(0, 6), Const(0, 5))


def test_ceil_divide():
    cases = list(product(range(257), range(8)))
    results = evaluate(lambda m, raised, t: ceil_divide(raised, t), [9, 3], [(n + t, t) for n, t in cases])
    assert results == [-(-n // (t + 1)) for n, t in cases]


@pytest.mark.parametrize("build", [shift_down, partial(rotate_bytes, left=True)], ids=["shift_down", "rotate_bytes"])
def test_text_grows_with_bits_and_not_with_every_stage(build):
    def text(width):
        m, value, distance = Module(), Signal(width), Signal(width.bit_length() - 4)
        o = Signal(width)
        m.d.comb += o.eq(build(m, value, distance))
        return len(rtlil.convert(m, ports=[value, distance, o]))

    assert text(128) < 6 * text(32)
