"""The multiplier of a thread: words, four pairs of bytes, and shifts."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...lib.logic import delay

__all__ = ["Multiplier"]


class Multiplier(wiring.Component):
    """Products of one thread: MUL, MULH, MULHU, MAD, DP4, and shifts, which are products with a power of two.

    Four multipliers of 17 bits: of the halves of both factors, or of four pairs of bytes.

    Latency: ``LATENCY`` cycles, the last of them combinational. Throughput: one a cycle.
    """

    LATENCY = 4

    def __init__(self):
        super().__init__(
            {
                "bytes": In(1),  # four products of bytes
                "a_signed": In(1),
                "b_signed": In(1),
                "high": In(1),  # with ``o``: the high half of the product
                "packed": In(1),  # with ``o``: ``bytes``
                "adds": In(1),  # with ``c``
                "a": In(32),
                "b": In(32),
                "c": In(32),  # two cycles after ``a``
                "o": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()

        def byte(value, n, is_signed):
            part = value.word_select(n, 8)
            return Cat(part, (part[7] & is_signed).replicate(9))

        def halves(value, is_signed):
            return Cat(value[:16], Const(0, 1)), Cat(value[16:], value[31] & is_signed)

        a_low, a_high = halves(self.a, self.a_signed)
        b_low, b_high = halves(self.b, self.b_signed)
        # Two of the multipliers have their bytes in the same place as their halves.
        pairs = ((a_low, b_low, 0), (a_high, b_low, 1), (a_low, b_high, 3), (a_high, b_high, 2))
        products = []
        for number, (a, b, n) in enumerate(pairs):
            factors = [Signal(signed(17), name=f"{name}{number}", reset_less=True) for name in "ab"]
            product = Signal(signed(34), name=f"product{number}", reset_less=True)
            m.d.sync += [
                factors[0].eq(Mux(self.bytes, byte(self.a, n, self.a_signed), a)),
                factors[1].eq(Mux(self.bytes, byte(self.b, n, self.b_signed), b)),
                product.eq(factors[0] * factors[1]),
            ]
            products.append(product)
        is_packed = delay(m, self.bytes, 2, name="is_packed")
        first, second, third, fourth = products
        middle = Signal(signed(36), reset_less=True)
        low, high = Signal(32, reset_less=True), Signal(32, reset_less=True)
        total, below = Signal(48, reset_less=True), Signal(16, reset_less=True)
        m.d.sync += [
            middle.eq(second + third + Mux(is_packed, fourth[:18].as_signed(), 0)),
            low.eq(first + Mux(self.adds, self.c, 0)),
            high.eq(fourth),
            total.eq(Mux(delay(m, is_packed, 1, name="was_packed"), low, Cat(low[16:], high)) + middle),
            below.eq(low),
        ]
        m.d.comb += self.o.eq(Mux(self.high, total[16:], Mux(self.packed, total[:32], Cat(below, total[:16]))))
        return m
