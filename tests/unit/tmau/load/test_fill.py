"""TF32 rounding on raw bits, and masks of bytes."""

import random

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from tilewright.hw.tmau.load.fill import below, find_tf32, round_tf32
from tilewright.verify.pysim.simulate import elaborated, simulate

SEED = 14


def tf32(value):
    """By way of a double, which holds every sum exactly: adding and taking away 2^13 units rounds to nearest even."""
    number = np.uint32(value).view(np.float32)
    if np.isnan(number):
        return 0x7FFFE000
    if np.isinf(number) or number == 0:
        return value
    exponent = max(value >> 23 & 255, 1) - 127
    unit = np.float64(2.0) ** (exponent - 10)
    rounded = np.rint(np.float64(number) / unit) * unit
    with np.errstate(over="ignore"):
        return int(np.copysign(np.float32(abs(rounded)), number).view(np.uint32))


class Rounder(Elaboratable):
    """``round_tf32`` between ports."""

    def __init__(self):
        self.i, self.on, self.o = Signal(32), Signal(init=1), Signal(32)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(round_tf32(self.i, self.on, *find_tf32(self.i, self.on)))
        return m


def test_round_tf32():
    rng = random.Random(SEED)
    edges = [0x000, 0x001, 0xFFF, 0x1000, 0x1001, 0x1FFF]  # of the thirteen bits that go
    values = [
        sign << 31 | exponent << 23 | kept << 13 | low
        for sign in (0, 1)
        for exponent in (0, 1, 127, 254, 255)
        for kept in (0, 1, 2, 0x3FE, 0x3FF)
        for low in edges
    ]
    values += [rng.getrandbits(32) for _ in range(2000)]
    dut = elaborated(Rounder)

    async def compare(ctx):
        for value in values:
            ctx.set(dut.i, value)
            assert ctx.get(dut.o) == tf32(value), f"{value:#010x}"
        ctx.set(dut.on, 0)
        for value in values:
            ctx.set(dut.i, value)
            assert ctx.get(dut.o) == value

    simulate(dut, compare)


class Masker(Elaboratable):
    """``below`` between ports."""

    def __init__(self, flips, bits):
        self.limit, self.flips, self.o = Signal(bits), Signal(flips), Signal(16 << flips)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(below(m, self.limit, self.flips, "mask"))
        return m


@pytest.mark.parametrize(("flips", "bits"), [(0, 4), (1, 5), (2, 6), (3, 4), (3, 8)])
def test_bytes_below_a_limit(flips, bits):
    dut = elaborated(Masker, flips, bits)

    async def compare(ctx):
        for flip in range(1 << flips):
            for limit in range(1 << bits):
                ctx.set(dut.flips, flip)
                ctx.set(dut.limit, limit)
                assert ctx.get(dut.o) == sum(1 << (byte ^ 16 * flip) for byte in range(min(limit, 16 << flips)))

    simulate(dut, compare)
