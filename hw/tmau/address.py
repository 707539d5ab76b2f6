"""Address generation: nested accumulators, one adder a dimension and no multiplier."""

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["AddressGenerator"]


class AddressGenerator(wiring.Component):
    """Global address of the walker's run: ``origin + Σ index[d] * stride[d]`` modulo 2^addr_width.

    Each dimension keeps the address at which its current round began. When dimension d advances, its accumulator and
    those of all dimensions inside it move on to the next round.

    Members
    -------
    load : 1, in
        Start at ``origin``; has priority over ``advance``.
    origin : unsigned(addr_width), in
        Address of the first run.
    strides : array of four unsigned(addr_width), in
        Bytes from one index of dimensions 1 to 4 to the next. Must hold from load to load.
    advance : 4, in
        One-hot: the dimension that advances; dimensions inside it start over.
    address : unsigned(addr_width), out
        Registered; follows ``load`` and ``advance`` by one cycle.
    """

    def __init__(self, *, addr_width):
        super().__init__(
            {
                "load": In(1),
                "origin": In(addr_width),
                "strides": In(data.ArrayLayout(addr_width, 4)),
                "advance": In(4),
                "address": Out(addr_width),
            }
        )
        self.rounds = [Signal(addr_width, name=f"round{d}") for d in range(4)]

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.address.eq(self.rounds[0])
        for d in range(4):
            with m.If(self.advance[d]):
                for inner in range(d + 1):
                    m.d.sync += self.rounds[inner].eq(self.rounds[d] + self.strides[d])
        with m.If(self.load):
            m.d.sync += [accumulator.eq(self.origin) for accumulator in self.rounds]
        return m
