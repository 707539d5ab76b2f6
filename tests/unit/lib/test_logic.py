"""Delays: any number of cycles, none included, and signs are kept."""

import random

import pytest
from amaranth import Const, Signal
from amaranth import Module as ChoiceModule
from amaranth import Module as ProductModule
from amaranth import Module as ShiftModule
from amaranth.hdl import Module, signed
from amaranth.hdl import Signal as RotateSignal
from amaranth.hdl import Signal as TableSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.lib.logic import (
    CeilDivider,
    chosen,
    delay,
    digit_product,
    is_one_of,
    masked,
    rotate_bytes,
    shift_down,
)
from tilewright.verify.pysim.simulate import simulate
from tilewright.verify.pysim.streams import run_pipeline


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
def test_every_code(codes):
    m = ChoiceModule()
    code, o = Signal(3), Signal(8)
    m.d.comb += o.eq(chosen(code, {number: Signal(8, init=10 + number) for number in codes}))

    async def testbench(ctx):
        for number in codes:
            ctx.set(code, number)
            assert ctx.get(o) == 10 + number

    simulate(m, testbench)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_masked(count):
    m = ChoiceModule()
    code, o = Signal(3), Signal(8)
    m.d.comb += o.eq(masked(m, code, [Signal(8, init=10 + number) for number in range(count)], "on"))

    async def testbench(ctx):
        for number in range(count):
            ctx.set(code, number)
            assert ctx.get(o) == 10 + number

    simulate(m, testbench)


def test_codes_of_one_value_are_not_told_apart():
    code, one, other = Signal(2), Signal(8), Signal(8)
    assert chosen(code, {0: one, 1: one, 3: one}) is one
    assert chosen(code, {0: one, 1: other}) is not one


@pytest.mark.parametrize("values", [(), (0,), (3, 5, 6), tuple(range(8))])
def test_true_of_the_values_alone(values):
    m = Module()
    code, result = TableSignal(3), TableSignal()
    m.d.comb += result.eq(is_one_of(code, values))

    async def check(ctx):
        for number in range(8):
            ctx.set(code, number)
            assert ctx.get(result) == (number in values)

    simulate(m, check)


SEED = 1


@pytest.mark.parametrize("complemented", [False, True])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("bits", [4, 5])
def test_every_distance(bits, left, complemented):
    m, count = Module(), 1 << bits
    value, distance, rotated = RotateSignal(8 * count), RotateSignal(bits), RotateSignal(8 * count)
    complement = ~distance if complemented else None
    m.d.comb += rotated.eq(rotate_bytes(m, value, distance, left=left, complement=complement))
    rng = random.Random(SEED)

    async def check(ctx):
        for places in range(count):
            raw = rng.randbytes(count)
            ctx.set(value, int.from_bytes(raw, "little"))
            ctx.set(distance, places)
            await ctx.delay(1e-9)
            cut = -places % count if left else places
            assert ctx.get(rotated).to_bytes(count, "little") == raw[cut:] + raw[:cut]

    simulate(m, check)


SHIFT_SEED = 20261123


@pytest.mark.parametrize(("width", "bits", "unit"), [(12, 2, 1), (12, 4, 1), (12, 6, 1), (35, 3, 8), (1, 2, 1)])
def test_shift_every_distance(width, bits, unit):
    m = ShiftModule()
    value, distance, o = Signal(width), Signal(bits), Signal(width)
    m.d.comb += o.eq(shift_down(m, value, distance, unit=unit))
    rng = random.Random(SHIFT_SEED)
    numbers = [0, 1, 1 << width - 1, *(rng.getrandbits(width) for _ in range(20))]

    async def testbench(ctx):
        for number in numbers:
            ctx.set(value, number)
            for places in range(1 << bits):
                ctx.set(distance, places)
                kept = number >> places * unit
                assert ctx.get(o) == kept | (kept << places * unit != number)

    print(f"seed {SHIFT_SEED}")
    simulate(m, testbench)


@pytest.mark.parametrize("widths", [(6, 6), (1, 2), (3, 8), (7, 4)])
def test_every_product(widths):
    m = ProductModule()
    a, b = (Signal(width) for width in widths)
    product = digit_product(m, a, b)
    assert len(product) == sum(widths)

    async def testbench(ctx):
        for first in range(1 << len(a)):
            ctx.set(a, first)
            for second in range(1 << len(b)):
                ctx.set(b, second)
                assert ctx.get(product) == first * second

    simulate(m, testbench)


def test_widths():
    with pytest.raises(ValueError, match="b must have an even number of bits, not 5"):
        digit_product(ProductModule(), Const(0, 6), Const(0, 5))


def test_every_quotient():
    dut = CeilDivider()

    async def check(ctx):
        for t in range(1, 9):
            ctx.set(dut.t, t - 1)
            for n in range(257):
                ctx.set(dut.more, n + t - 1)
                assert ctx.get(dut.o) == -(-n // t), f"ceil({n} / {t})"

    simulate(dut, check)
