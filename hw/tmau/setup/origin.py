"""Where a walk begins: products of positions and strides, and their sum."""

from amaranth import Module, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["OriginSum"]

_LIMB = 17  # what a multiplier of an FPGA takes as an unsigned factor


class OriginSum(wiring.Component):
    """Adds up products, one a cycle, modulo 2^addr_width. Two stages: products of limbs, then their sum.

    Parameters
    ----------
    addr_width : int
        Bits of an address.

    Members
    -------
    step : In(1)
        Everything moves on.
    position : In(signed(34))
    stride : In(min(40, addr_width))
        Factors of the next product.
    none : In(1)
        The product is to be zero.
    start : In(1)
        The product is the first one of a sum, which begins at ``address``.
    address : In(addr_width)
    sum : Out(addr_width)
        With the products up to the one whose factors were there before the last step.
    """

    def __init__(self, *, addr_width):
        self._width = addr_width
        self._stride_width = min(40, addr_width)
        super().__init__(
            {
                "step": In(1),
                "position": In(signed(34)),
                "stride": In(self._stride_width),
                "none": In(1),
                "start": In(1),
                "address": In(addr_width),
                "sum": Out(addr_width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        total = Signal(self._width)  # without the products at hand
        places = {}  # products by the bit that they begin at
        for i, position in enumerate((self.position[:_LIMB], self.position[_LIMB:].as_signed())):
            for j in range(0, self._stride_width, _LIMB):
                stride = self.stride[j : j + _LIMB]
                place = _LIMB * i + j
                if place < self._width:
                    shape = signed(2 * _LIMB) if i else unsigned(2 * _LIMB)
                    product = Signal(shape, name=f"product{i}_{j // _LIMB}")
                    places.setdefault(place, []).append(product)
                    with m.If(self.step):
                        m.d.sync += product.eq(position * stride)
                        with m.If(self.none):
                            m.d.sync += product.eq(0)
        addends = [product << place for place, products in places.items() for product in products]
        m.d.comb += self.sum.eq(sum(addends, total))
        with m.If(self.step):
            m.d.sync += total.eq(self.sum)
            with m.If(self.start):
                m.d.sync += total.eq(self.address)
        return m
