"""Where a tensor ends: the sum of the products of sizes and strides, with one small multiplier."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .dimensions import PART, DimensionLayout

__all__ = ["Extent"]

_SUM = 75  # address, unit and four products of 72 bits


class Extent(wiring.Component):
    """Adds up the bytes from a tensor's address to its last byte.

    Each pass multiplies the sizes by one part of the strides, the most significant part first, and moves the sum up in
    between. The unit of dimension 0 is among the strides.

    Members
    -------
    dimension : In(DimensionLayout)
    address : In(64)
        Of the tensor.
    unit_log2 : In(3)
        Log2 of the bytes of a unit.
    last : Out(75)
        Address of the last byte, without wrap; valid from two cycles after the last dimension of the last pass until
        the next descriptor.
    """

    dimension: In(DimensionLayout())
    address: In(64)
    unit_log2: In(3)
    last: Out(_SUM)

    def elaborate(self, platform):
        m = Module()
        seen, first = self.dimension, self.dimension.at[0]
        product, total = Signal(32 + PART), Signal(_SUM)
        tail = Signal(5)
        begins, moves = Signal(), Signal()  # what the dimension before this one asked for
        # Sizes are stored minus one: what is missing is the rest of one unit, where the product of units has zeros.
        with m.If(seen.passes[2] & first):
            m.d.comb += tail.eq((1 << self.unit_log2) - 1)
        m.d.sync += [
            begins.eq(seen.passes[0] & first),
            moves.eq((seen.passes[1] | seen.passes[2]) & first),
            product.eq(seen.size * seen.part | tail),
            total.eq(Mux(moves, total << PART, total) + product),
        ]
        with m.If(~seen.passes.any()):
            m.d.sync += product.eq(0)
        with m.If(begins):
            m.d.sync += total.eq(0)
        m.d.comb += self.last.eq(total + self.address)
        return m
