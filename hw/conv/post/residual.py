"""Sums of two numbers of 8 bits, each with its factor."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .clamp import Clamp, widened
from .fused import FusedMultiplyAdd, unpacked

__all__ = ["ResidualAdder"]


class ResidualAdder(wiring.Component):
    """One lane of residual addition (docs/conv.md, "Requantisation").

    The inner sum is that of the second operand alone, so that it can be made while the first one is requantised.

    Latency: ``LATENCY`` cycles from the first operand. Throughput: one a cycle; nothing stalls it.

    Members
    -------
    second : In(8)
        The operand in memory.
    first : In(8)
        The requantised one, ``FIRST`` cycles later.
    is_signed : In(1)
        Operands and results are signed. This and the following are to hold while results are under way.
    first_ratio, second_ratio : In(32)
        binary32 factors, finite.
    offset : In(32)
        binary32, finite.
    minimum, maximum : In(8)
        ``minimum`` is the lesser one, or they are equal.
    o : Out(8)
    """

    FIRST = FusedMultiplyAdd.LATENCY - FusedMultiplyAdd.ADDEND
    LATENCY = FusedMultiplyAdd.LATENCY + Clamp.LATENCY

    second: In(8)
    first: In(8)
    is_signed: In(1)
    first_ratio: In(32)
    second_ratio: In(32)
    offset: In(32)
    minimum: In(8)
    maximum: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = FusedMultiplyAdd()
        m.submodules.outer = outer = FusedMultiplyAdd()
        m.submodules.clamp = clamp = Clamp()
        m.d.comb += [
            inner.factor.eq(widened(self.is_signed, self.second)),
            inner.ratio.eq(self.second_ratio),
            *(inner.addend[name].eq(value) for name, value in unpacked(self.offset).items()),
            outer.factor.eq(widened(self.is_signed, self.first)),
            outer.ratio.eq(self.first_ratio),
            outer.addend.eq(inner.o),
            clamp.size.eq(outer.o.significand),
            clamp.places.eq(outer.o.places),
            clamp.negative.eq(outer.o.negative),
            clamp.infinite.eq(outer.o.infinite),
            clamp.is_signed.eq(self.is_signed),
            clamp.minimum.eq(self.minimum),
            clamp.maximum.eq(self.maximum),
            self.o.eq(clamp.o),
        ]
        return m
