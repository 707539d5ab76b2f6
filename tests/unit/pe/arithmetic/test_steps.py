"""Additions, shifts and digits of a division, on all values of few bits."""

import pytest
from amaranth.hdl import Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.hw.pe.arithmetic.steps import add, digit, shift_down, shift_up
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import set_together

WIDTH = 5


class Steps(wiring.Component):
    """Every step, of the same operands."""

    a: In(WIDTH)
    b: In(WIDTH)
    carry: In(1)
    total: Out(WIDTH)
    down: Out(WIDTH)
    lost: Out(1)
    up: Out(WIDTH)

    def elaborate(self, platform):
        m = Module()
        down, lost = shift_down(m, self.a, self.b[:2], 2)
        m.d.comb += [
            self.total.eq(add(self.a, self.b, self.carry)),
            self.down.eq(down),
            self.lost.eq(lost),
            self.up.eq(shift_up(m, self.a, self.b[:2], 2)),
        ]
        return m


def test_steps():
    dut, mask = elaborated(Steps), (1 << WIDTH) - 1

    async def testbench(ctx):
        for a in range(1 << WIDTH):
            for b in range(1 << WIDTH):
                places = 2 * (b % 4)
                for carry in (0, 1):
                    set_together(ctx, (dut.a, a), (dut.b, b), (dut.carry, carry))
                    assert ctx.get(dut.total) == a + b + carry & mask
                assert (ctx.get(dut.down), ctx.get(dut.lost)) == (a >> places, a % (1 << places) > 0)
                assert ctx.get(dut.up) == a << places & mask
                await ctx.tick()

    simulate(dut, testbench)


class Digits(wiring.Component):
    """A quotient of ``WIDTH`` bits, and the remainder if the last digit is one."""

    a: In(WIDTH)
    b: In(WIDTH)
    quotient: Out(WIDTH)
    remainder: Out(WIDTH)

    def elaborate(self, platform):
        m = Module()
        remainder = Const(0, WIDTH + 1)
        for place in reversed(range(WIDTH)):
            remainder = digit(m, remainder, self.a[place], self.b)
            m.d.comb += self.quotient[place].eq(~remainder[-1])
        m.d.comb += self.remainder.eq(remainder)
        return m


def test_digits():
    dut = elaborated(Digits)

    async def testbench(ctx):
        for a in range(1 << WIDTH):
            for b in range(1, 1 << WIDTH):
                set_together(ctx, (dut.a, a), (dut.b, b))
                assert ctx.get(dut.quotient) == a // b
                if a // b % 2:
                    assert ctx.get(dut.remainder) == a % b
                await ctx.tick()

    simulate(dut, testbench)


def test_unequal_widths():
    with pytest.raises(ValueError, match=r"^a and b must have the same number of bits, not 3 and 4$"):
        add(Signal(3), Signal(4), 0)
