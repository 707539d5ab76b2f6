"""The multiplier of a thread: words, four pairs of bytes, and shifts."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...lib.logic import delay
from .steps import add

__all__ = ["Multiplier"]


class Multiplier(wiring.Component):
    """Products of one thread: MUL, MULH, MULHU, MAD, DP4, and shifts, which are products with a power of two.

    Four multipliers: of the halves of both factors, or of four pairs of bytes. Then each byte is the upper one of a
    half, so all four products are 2^16 times as large, and have their signs where those of halves are.

    Latency: ``LATENCY`` cycles to ``low`` and ``high``, which are registers. Throughput: one a cycle.
    """

    LATENCY = 6

    def __init__(self):
        super().__init__(
            {
                "bytes": In(1),  # four products of bytes; their sum is at ``high``
                "a_signed": In(1),
                "b_signed": In(1),
                "shifts": In(1),  # the factor is a power of two: 2^n, n the low five bits of ``b``
                "right": In(1),  # with ``shifts``: 2^(32 − n) instead
                "a": In(32),
                "b": In(32),
                # A cycle after ``a``:
                "adds": In(1),  # c to a product of words
                "adds_to_bytes": In(1),  # c to the sum
                "c": In(32),
                "low": Out(32),
                "high": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        a, b, packed = self.a, self.b, self.bytes
        power, beyond = self._power(m)
        factor = Mux(self.shifts, power, b)
        # Halves of both factors, lower byte, upper byte and sign: all that differs between the two products of a half.
        a_low, a_high = (self._lower(m, a[n:], f"a{n}") for n in (0, 16))
        b_low, b_high = (self._lower(m, factor[n:], f"b{n}") for n in (0, 16))
        a_sign, b_sign = (
            lambda bit, is_half=0: self.a_signed & bit & (packed | is_half),
            lambda bit, is_half=0: self.b_signed & bit & (packed | is_half),
        )
        pairs = (
            ((a_low, a[8:16], a_sign(a[15])), (b_low, factor[8:16], b_sign(b[15]))),
            (
                (a_high, Mux(packed, a[16:24], a[24:]), a_sign(Mux(packed, a[23], a[31]), 1)),
                (b_low, Mux(packed, b[16:24], factor[8:16]), b_sign(b[23])),
            ),
            (
                (a_low, Mux(packed, a[:8], a[8:16]), a_sign(a[7])),
                (b_high, Mux(packed, b[:8], factor[24:]), b_sign(Mux(packed, b[7], b[31]), 1)),
            ),
            ((a_high, a[24:], a_sign(a[31], 1)), (b_high, factor[24:], b_sign(b[31], 1))),
        )
        # A product is added to what the ones before it give, so later ones have their factors later.
        products = []
        for number, (pair, late) in enumerate(zip(pairs, (0, 0, 1, 2), strict=True)):
            factors = []
            for name, (lower, upper, sign) in zip("ab", pair, strict=True):
                rest = Cat(upper, sign)
                if name == "b" and number >= 2:
                    rest = Cat(upper, sign | beyond, sign)  # 2^32
                rest = delay(m, rest, 1, name=f"{name}{number}_upper")
                factors.append(delay(m, Cat(lower, rest), late, name=f"{name}{number}").as_signed())
            product = Signal(signed(sum(map(len, factors))), name=f"product{number}", reset_less=True)
            m.d.sync += product.eq(factors[0] * factors[1])
            products.append(product)
        self._add(m, products)
        return m

    def _power(self, m):
        """The factor of a shift below 2^32, and whether it is 2^32, which a shift by 0 to the right needs."""
        count = self.b[:5]
        places = Signal(5)
        m.d.comb += places.eq(Mux(self.right, -count, count))
        units, eights = Signal(8), Signal(4)
        beyond = self.shifts & self.right & (count == 0)
        m.d.comb += [
            *(units[n].eq(places[:3] == n) for n in range(8)),
            *(eights[n].eq(places[3:] == n) for n in range(4)),
        ]
        power = Cat(units & eights[n].replicate(8) for n in range(4))
        return Cat(power[0] & ~beyond, power[1:]), beyond

    def _lower(self, m, half, name):
        """The lower byte of a half, registered; 0 if bytes are multiplied."""
        lower = Signal(8, name=f"{name}_lower", reset_less=True)
        m.d.sync += lower.eq(half[:8])
        with m.If(self.bytes):
            m.d.sync += lower.eq(0)
        return lower

    def _add(self, m, products):
        """Cycles 2 to 5: the sum of the products and of ``c``."""
        first, second, third, fourth = products
        to_words, to_bytes = (Signal(32, name=name, reset_less=True) for name in ("c_words", "c_bytes"))
        m.d.sync += [to_words.eq(self.c), to_bytes.eq(self.c)]
        with m.If(~self.adds):
            m.d.sync += to_words.eq(0)
        with m.If(~self.adds_to_bytes):
            m.d.sync += to_bytes.eq(0)
        low, of_bytes = Signal(signed(35), reset_less=True), Signal(signed(35), reset_less=True)
        with_c, middle = Signal(signed(48), reset_less=True), Signal(signed(48), reset_less=True)
        high = Signal(signed(36), reset_less=True)
        low_late = delay(m, low[:32], 2, name="low_late", resets=True)
        packed = delay(m, self.bytes, 5, name="packed")
        m.d.sync += [
            # In cycle 2.
            low.eq(first + to_words),
            with_c.eq(second + Cat(Const(0, 16), to_bytes).as_signed()),
            # In cycle 3. Products of bytes are of one size, so the first is added to the last.
            of_bytes.eq(low),
            middle.eq(third + with_c),
            # In cycle 4.
            high.eq(fourth + of_bytes),
        ]
        with m.If(~delay(m, self.bytes, 3, name="packed_early")):
            m.d.sync += of_bytes.eq(0)
        # In cycle 5. Of bytes, what is below their products does not count.
        upper = Mux(packed, Cat(high[16:], high[-1].replicate(12)), high[:32])
        total, late = Signal(48, reset_less=True), delay(m, middle, 1, name="middle_late")
        m.d.sync += total.eq(add(late, Cat(low_late[16:], upper), Const(0, 1)))
        m.d.comb += [
            self.low.eq(Cat(delay(m, low_late[:16], 1, name="lowest", resets=True), total[:16])),
            self.high.eq(total[16:]),
        ]
