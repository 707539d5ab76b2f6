"""Floating point of one thread: a fused multiply-add that also converts, compares and chooses."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...lib.logic import delay, named
from .float_control import Addend, FloatControl
from .steps import add, shift_down, shift_up

__all__ = ["FloatLane"]

_BIAS = 127
#: Bits of a sum. The leading one of a product is at ``_TOP`` or one above; of an addend that is larger at ``_TOP``, and
#: a sum may have one place more. Below the 48 places of a product there are three: a smaller addend is lost in the
#: lowest one only where the product has a one above its lowest 23 places, as one of normal numbers or of one subnormal.
_WIDTH, _TOP = 52, 49
#: Places below the lowest one of a float with a leading one in bit 51: those that are rounded away.
_ROUNDED = 28
#: An integer has its highest bit at ``_TOP``: shifted by 10 places its lowest one is in the place of a float's.
_INTEGER_EXPONENT = _BIAS + 31
_INTEGER_SHIFT = 10
#: Exponent of a product as it is computed: no addition follows the one of the exponents of the factors.
_EXCESS = 128


def _unpack(word):
    """Whether the hidden bit is set, the exponent of the lowest bit's place, and the significand."""
    hidden = word[23:31].any()
    return hidden, Cat(word[23] | ~hidden, word[24:31]), Cat(word[:23], hidden)


class FloatLane(wiring.Component):
    """The functions of unit ``f32`` but division and root, for one thread (docs/pe.md, "Arithmetic").

    All are a · b + c, rounded once. A sum is a · 1 + b, a product a · b + 0 with the zero of its sign. A half is
    multiplied by one or, for the other exponents of fp16, by 2^112 or 2^−112. An integer is an addend, or a sum that is
    rounded in a fixed place. A comparison looks at the sign of a − b. The larger of product and addend stays where it
    is; the other one is shifted down to it, and the sum is shifted up. No exponent is below that of subnormals, so that
    no shift down follows.

    ====== ============================================================
    cycle
    ====== ============================================================
    1      a half, or a; factors; comparison of a and b
    2      product; addend; distance of the exponents
    3      the smaller one is shifted down
    4      sum, and its magnitude
    5–6    it is shifted up, until its leading one or its exponent says so
    7      exponent; special values; rounding up or not
    8      rounded; the half is put into c
    ====== ============================================================

    Latency: ``LATENCY`` cycles. Throughput: one a cycle.
    """

    LATENCY = 8

    controls: In(data.ArrayLayout(FloatControl, LATENCY))  # of the function in each stage; 0: that of the operands
    a: In(32)
    b: In(32)
    c: In(32)
    o: Out(32)
    holds: Out(1)  # value of a comparison, together with ``o``

    def elaborate(self, platform):
        m = Module()
        i = None
        stages = (self._unpack, self._multiply, self._align, self._add, self._shift, self._normalize, self._decide)
        for number, make in enumerate(stages):
            stage, results = make.__name__[1:], make(m, self.controls[number], i)
            i = SimpleNamespace(**{name: delay(m, value, 1, name=f"{stage}_{name}") for name, value in results.items()})
        self._round(m, self.controls[7], i)
        return m

    def _unpack(self, m, control, _):
        """Stage 1."""
        half = Mux(control.part, self.a[16:], self.a[:16])
        f16 = Cat(Const(0, 13), half[:15], Const(0, 3), half[15])
        x = named(m, Mux(control.widens, Mux(control.f16, f16, Cat(Const(0, 16), half)), self.a), "x")
        (_, a_exponent, factor_a), (_, b_exponent, factor_b), (c_hidden, c_exponent, _) = (
            _unpack(word) for word in (x, self.b, self.c)
        )
        # The factor 1; from fp16 2^112, to fp16 2^-112.
        power = Mux(control.f16, Mux(control.widens, _BIAS + 112, _BIAS - 112), _BIAS)
        exponent = (a_exponent + Mux(control.one, power, b_exponent) + (_EXCESS - _BIAS))[:9]
        other = Mux(control.from_integer, _INTEGER_EXPONENT, 1)
        return {
            "a": x,
            "b": self.b,
            "c": self.c,
            "c_hidden": c_hidden,
            "factor_a": Mux(control.multiplies, factor_a, 0),
            "factor_b": Mux(control.one, 1 << 23, factor_b),
            "hidden_b": factor_b[23],
            "hidden_a": factor_a[23],
            "exponent": Mux(control.from_integer | control.to_integer, _INTEGER_EXPONENT + _EXCESS, exponent),
            "addend_exponent": _of(control.addend, b_exponent, c_exponent, a_exponent, other)[:8],
            "below": x[:31] < self.b[:31],
            "kept": Mux(control.part, self.c[:16], self.c[16:]),
        }

    def _multiply(self, m, control, i):
        """Stage 2."""
        a, b = self._classify(m, "a", i.a, control.widens & control.f16), self._classify(m, "b", i.b, 0)
        one, multiplies = control.one, control.multiplies
        a_below_b = Mux(i.a[31] ^ i.b[31], i.a[31], i.below ^ i.a[31])
        takes_a = named(m, b.nan | (~a.nan & (a_below_b ^ control.largest)), "takes_a")
        code = named(m, Mux(control.extreme, Mux(takes_a, Addend.A, Addend.B), control.addend), "addend_code")
        significands = (Cat(i.b[:23], i.hidden_b), Cat(i.c[:23], i.c_hidden), Cat(i.a[:23], i.hidden_a), i.a[8:])
        nothing = (control.addend == Addend.OTHER) & ~control.from_integer & ~control.extreme
        addend = Mux(nothing, 0, _of(code, *significands))
        exponents = (Cat(word[23] | ~hidden, word[24:31]) for word, hidden in
                     ((i.b, i.hidden_b), (i.c, i.c_hidden), (i.a, i.hidden_a)))  # fmt: skip
        minus = named(m, i.a[31] ^ (i.b[31] & ~one), "minus")
        sign = named(m, _of(code, i.b[31] ^ control.negates, i.c[31], i.a[31], multiplies & minus), "addend_sign")
        product_sign = Mux(multiplies, minus, Mux(control.from_integer, control.signed & i.a[31], sign))
        product_sign = Mux(control.to_integer, 0, product_sign)
        # The exponents' distance: its sign says that the addend is larger. Which of a and b is the addend of FMIN and
        # FMAX is known too late for it, and does not matter: there is no product.
        distance = Signal(10)
        m.d.comb += distance.eq(i.exponent - Cat(i.addend_exponent[:7], ~i.addend_exponent[7], i.addend_exponent[7]))
        zero = ~multiplies | a.zero | (b.zero & ~one)
        infinite = multiplies & (a.infinite | (b.infinite & ~one))
        invalid = (a.infinite & b.zero & ~one) | (a.zero & b.infinite & ~one)
        # From 2^31 or 2^32 on; infinities and NaNs have a larger exponent.
        exponent = i.a[23:31]
        large = exponent[7] & (exponent[5:7].any() | (exponent[1:5].all() & (exponent[0] | control.signed)))
        return {
            "product": i.factor_a * i.factor_b,
            "product_zero": zero,
            "product_sign": product_sign,
            "infinite": infinite,
            "nan": multiplies & (a.nan | (b.nan & ~one) | invalid),
            "addend": addend,
            "low_addend": Mux(control.from_integer, i.a[:8], 0),
            "addend_exponent": _of(code, *exponents, Const(1, 8)),
            "addend_sign": sign,
            "exponent": i.exponent,
            "distance": distance[:9],
            "larger": (distance[9] | zero) & ~control.from_integer & ~control.to_integer,
            "saturates": large | (i.a[31] & ~control.signed),
            "maximum": ~i.a[31] | a.nan,
            "kept": i.kept,
        }

    @staticmethod
    def _classify(m, name, word, is_f16):
        some, hidden = named(m, word[:23].any(), f"{name}_some"), word[23:31].any()
        ones = named(m, word[23:28].all() & (word[28:31].all() | is_f16), f"{name}_ones")
        return SimpleNamespace(zero=~some & ~hidden, infinite=ones & ~some, nan=named(m, ones & some, f"{name}_nan"))

    def _align(self, m, control, i):
        """Stage 3."""
        addend = Cat(i.low_addend, i.addend)
        # Places 1 to 49; a product that is smaller is a place lower, for the complement of its distance.
        source = Mux(i.larger, Cat(Const(0, 1), i.product), Cat(Const(0, 17), addend))
        places = named(m, i.distance ^ i.larger.replicate(9), "places")
        # A product of the larger exponent has fewer places; only a sum of subnormals has more below it.
        far = named(m, places[6:].any() | (places[5] & i.larger), "far")
        value, lost = source, []
        for low in (4, 2, 0):
            value, gone = shift_down(m, value, places[low : low + 2], 1 << low)
            lost.append(gone)
        some = named(m, i.addend[:23].any(), "addend_some")
        anything = Mux(i.larger, ~i.product_zero, some | i.addend[23])
        sticky = Mux(far, anything, Cat(lost).any())
        specials = self._specials(m, control, i, some)
        return specials | {
            "large": Mux(i.larger, Cat(Const(0, 23), i.addend, Const(0, 1)), i.product),
            "small": Cat(sticky, Mux(far, 0, value)),
            "subtract": i.product_sign ^ i.addend_sign,
            "exponent": Mux(i.larger, i.addend_exponent, Cat(i.exponent[:7], ~i.exponent[7], i.exponent[7:].all())),
            "kept": i.kept,
        }

    @staticmethod
    def _specials(m, control, i, some):
        """Stage 3: what the sum does not say, as the bits of a result. The sign is that of the larger operand."""
        ones = named(m, i.addend_exponent.all(), "addend_ones")
        addend_infinite = named(m, ones & ~some, "addend_infinite")
        differ = i.infinite & addend_infinite & (i.product_sign ^ i.addend_sign) & ~control.compares
        nan = named(m, i.nan | (ones & some) | differ, "is_nan")
        to_integer, maximum = control.to_integer, i.maximum
        special = named(m, Mux(to_integer, i.saturates, nan | i.infinite | addend_infinite), "is_special")
        of_product = i.infinite | ~(addend_infinite | i.larger)
        negative = ~nan & Mux(of_product, i.product_sign, i.addend_sign)
        return {
            "special": special,
            "negative": Mux(to_integer, i.saturates & (maximum ^ control.signed), negative),
            "special_exponent": ~to_integer | maximum,
            "special_quiet": special & Mux(to_integer, maximum, nan),
            "special_low": special & to_integer & maximum,
        }

    @staticmethod
    def _passed(i):
        names = ("special", "special_exponent", "special_quiet", "special_low", "subtract", "kept")
        return {name: getattr(i, name) for name in names}

    def _add(self, m, control, i):
        """Stage 4."""
        # An integer is signed: it has more of its sign above.
        above = i.subtract & ~control.from_integer
        large = Cat(Const(0, 3), i.large, Const(0, 2))
        small = Cat(i.small ^ i.subtract.replicate(_TOP + 1), above.replicate(3))
        total = named(m, add(large, small, i.subtract), "total")
        minus = named(m, total[-1] & ~control.to_integer, "minus")
        return self._passed(i) | {
            "size": ((total ^ minus.replicate(_WIDTH + 1)) + minus)[:_WIDTH],
            "negative": i.negative ^ (minus & ~i.special),
            # Places that the leading one may move up, to bit 51, before the exponent is 1: it is 2 more there.
            "limit": (i.exponent + 1)[:9],
        }

    def _shift(self, m, control, i):
        """Stage 5: by 0, 16, 32 or 48 places; bits that no later shift brings to the result become one."""
        size, limit, may = i.size, i.limit, ~control.to_integer
        unlimited = i.limit[6:].any()
        by_32 = named(m, ~size[20:].any() & (unlimited | limit[5]) & may, "by_32")
        free = unlimited | (limit[5] & ~by_32)
        top = Mux(by_32, size[4:20].any(), size[36:].any())
        by_16 = named(m, ~top & (free | limit[4]) & may, "by_16")
        step = Cat(by_16, by_32)
        kept = _ROUNDED - 16
        value = shift_up(m, size, step, 16)
        return self._passed(i) | {
            "value": value[kept:],
            "rest": ~step.any() & size[:kept].any(),
            "negative": i.negative,
            "limit": limit,
            "free": free | (limit[4] & ~by_16),
            "coarse": step,
        }

    def _normalize(self, m, control, i):
        """Stage 6: by 0 to 15 places."""
        value, limit, integer = i.value, i.limit, control.to_integer
        top = len(value)

        def zero(count, moved):
            return ~value[top - count - moved : top - moved].any()

        by_8 = named(m, integer | (zero(8, 0) & (i.free | limit[3])), "by_8")
        free = i.free | (limit[3] & ~by_8)
        by_4 = named(m, ~integer & Mux(by_8, zero(4, 8) & (i.free | limit[2]),
                                       zero(4, 0) & (i.free | limit[3] | limit[2])), "by_4")  # fmt: skip
        free = free | (limit[2] & ~by_4)
        step = Cat(by_4, by_8)
        moved = named(m, shift_up(m, value, step, 4), "moved")
        by_2 = named(m, integer | (~moved[-2:].any() & (free | limit[1])), "by_2")
        free = free | (limit[1] & ~by_2)
        by_1 = named(m, ~integer & ~Mux(by_2, moved[-3], moved[-1]) & (free | limit[0]), "by_1")
        fine = Cat(by_1, by_2)
        number = shift_up(m, moved, fine, 1)
        # 15 places are below the guard. Of the lowest 12, a shift by four brings four to the 3 above, and so on.
        low, high = ([word[first : last - unit * number].any() for number in range(3)]
                     for word, first, last, unit in ((value, 0, 12, 4), (moved, 12, 15, 1)))  # fmt: skip
        rest = i.rest | Mux(by_8, ~by_4 & low[2], Mux(by_4, low[1], low[0]))
        rest = rest | Mux(by_2, ~by_1 & high[2], Mux(by_1, high[1], high[0]))
        # Eight places more of an integer, which are shifted by ten.
        more = value[top - _INTEGER_SHIFT : top - 2] & integer.replicate(8)
        return self._passed(i) | {
            "number": Cat(number[-24:], more),
            "guard": number[-25],
            "rest": rest,
            "negative": i.negative,
            "limit": limit,
            "places": Cat(by_1, by_2, by_4, by_8, i.coarse),
        }

    def _decide(self, m, control, i):
        """Stage 7: the exponent without the hidden bit, special values, whether to round up."""
        base = named(m, (i.limit - i.places)[:9], "base")
        # Without a leading one the number is subnormal, and the base is zero; or it is zero, and the base is not used.
        normal = named(m, i.number[23] & ~control.to_integer, "normal")
        overflows = Mux(control.f16 & control.narrows, base[5:].any() | base[1:5].all(), base[8] | base[1:8].all())
        special = named(m, i.special | (overflows & normal), "replaced")
        inexact = named(m, i.guard | i.rest, "inexact")
        zero = named(m, ~(i.number[:24].any() | inexact), "zero")
        nan = i.special_quiet
        holds = ~nan & Mux(zero, control.zero, Mux(i.negative, control.negative, control.positive))
        # To a half, the places below it are added to ones, and to a one if the last place of the half is odd.
        last = Mux(control.f16, i.number[13], i.number[16])
        up = Mux(control.narrows, last | inexact, i.guard & (i.number[0] | i.rest))
        up = Mux(control.truncates, i.subtract & inexact, ~control.floors & up)
        exponent = Cat(Mux(special, ~i.special | i.special_exponent, bit & normal) for bit in base[:8])
        return {
            "number": Mux(special, 0, i.number),
            "up": ~special & up,
            "exponent": exponent,
            "negative": i.negative & (i.special | ~(zero & i.subtract)),
            "quiet": i.special_quiet,
            "ones": i.special_low,
            "ones_bf16": i.special_low | (control.narrows & ~control.f16 & ~special),
            "ones_f16": i.special_low | (control.narrows & ~special),
            "holds": holds | (nan & control.negative & control.positive),
            "kept": i.kept,
        }

    def _round(self, m, control, i):
        """Stage 8: the hidden bit and a carry out of the mantissa increment the exponent."""
        low = Cat(i.ones_f16.replicate(12), i.ones_bf16.replicate(3), i.ones.replicate(7))
        total = named(m, add(i.number, Cat(low, i.quiet, i.exponent, i.negative), i.up), "total")
        half = Mux(control.f16, Cat(total[13:28], total[31]), total[16:])
        halves = Cat(Mux(control.part, i.kept, half), Mux(control.part, half, i.kept))
        m.d.sync += [self.o.eq(Mux(control.narrows, halves, total)), self.holds.eq(i.holds)]


def _of(code, b, c, a, other):
    """What an ``Addend`` selects."""
    return Mux(code[1], Mux(code[0], other, a), Mux(code[0], c, b))
