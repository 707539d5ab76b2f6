"""Division and square root in a pipeline: three bits of the result a stage."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.arithmetic import Function

from ...lib.logic import delay, named
from .steps import add, digit, shift_down, shift_up

__all__ = ["Divider"]

_BIAS = 127
#: Bits of a result that a stage computes; the stages that integers have before those of both.
_DIGITS, _INTEGER_STAGES, _STAGES = 3, 2, 9
#: Bits of a quotient or root of floats: two before the point, of which the first is zero.
_FLOAT_DIGITS = _DIGITS * _STAGES


class Divider(wiring.Component):
    """Quotients and remainders of integers, quotients and square roots of floats (docs/pe.md, "Arithmetic").

    Division does not restore: the divisor is subtracted from twice a remainder that is not negative, and added to twice
    one that is. A bit of the quotient says that the new remainder is not negative. A root is the quotient by itself:
    twice its bits so far take the place of the divisor, with a one below, or two ones if the remainder is negative.
    Three such steps are a stage.

    ====== ===================================== =============================================
    stage  integers                              floats
    ====== ===================================== =============================================
    1      magnitudes                            significands, shifted up by 0, 8 or 16 places
    2–3    6 bits of 33, of which the first is 0 shifted up by 0 to 7 places
    4–12   27 bits                               27 bits
    13     the remainder is restored             the remainder is restored: is there one?
    14     quotient or remainder                 shifted down, if the result is subnormal
    15     its sign                              rounded
    ====== ===================================== =============================================

    By zero, each bit of the quotient is one and the remainder is the dividend, as is specified.

    Latency: ``LATENCY`` cycles to ``o``, which is not registered. Throughput: one a cycle.

    Parameters
    ----------
    integers, floats : bool
        Whether it computes DIV, DIVU, REM, REMU, and FDIV, FSQRT; other results are undefined.
    """

    LATENCY = 3 + _STAGES + 2

    def __init__(self, *, integers, floats):
        if not integers and not floats:
            raise ValueError("a divider must be of integers, of floats, or of both")
        self._integers, self._floats = integers, floats
        #: Of a remainder with its sign: a root's is below 4, and has 25 places.
        self._width = 33 if integers else 28
        super().__init__(
            {
                "function": In(8),  # constant while operands are in the pipeline
                "a": In(32),
                "b": In(32),
                "o": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._decode(m)
        i, floats = self._magnitudes(m), None
        if self._floats:
            floats = self._register(m, "unpacked", self._unpack(m))
            floats = self._register(m, "shifted", self._shift_up(m, floats))
        i = self._register(m, "first", self._digits(m, i, None))
        results = self._digits(m, i, None)
        i = self._register(m, "begin", self._begin(m, floats, results) if floats else results)
        for stage in range(_STAGES):
            i = self._register(m, f"digits_{stage}", self._digits(m, i, _DIGITS * stage))
            if stage == 0:
                # The first digit of weight 1.
                result = self._exponent(m, floats, i.quotient[_DIGITS - 2]) if floats else None
        i = self._register(m, "restored", self._restore(m, i))
        i = self._register(m, "packed", self._pack(m, i, result))
        up = Mux(self._floating, i.guard & (i.number[0] | i.rest), i.negate)
        m.d.comb += self.o.eq(add(i.number, Cat(Const(0, 22), i.quiet, i.exponent, i.negative), up))
        return m

    def _decode(self, m):
        function = self.function
        floating = (function == Function.FDIV) | (function == Function.FSQRT)
        if self._integers and self._floats:
            self._floating = named(m, floating, "floating")
        else:
            self._floating = Const(self._floats, 1)
        self._root = named(m, (function == Function.FSQRT) & self._floats, "root")
        self._remains = named(m, (function == Function.REM) | (function == Function.REMU), "remains")
        self._signed = named(m, (function == Function.DIV) | (function == Function.REM), "signed")

    @staticmethod
    def _register(m, stage, results):
        return SimpleNamespace(**{name: delay(m, value, 1, name=f"{stage}_{name}") for name, value in results.items()})

    def _magnitudes(self, m):
        """Stage 1 of integers, with its registers. ``quotient`` is dividend above and quotient below."""
        if not self._integers:
            return SimpleNamespace(remainder=Const(0, 28), quotient=Const(0, _FLOAT_DIGITS), divisor=Const(0, 26))
        minus_a, minus_b = (named(m, self._signed & word[31], f"minus_{name}")
                            for name, word in (("a", self.a), ("b", self.b)))  # fmt: skip
        a, b = (((word ^ minus.replicate(32)) + minus)[:32] for word, minus in ((self.a, minus_a), (self.b, minus_b)))
        # A quotient by zero is -1 of any sign.
        negate = Mux(self._remains, minus_a, (minus_a ^ minus_b) & self.b.any())
        self._negate = delay(m, negate, self.LATENCY - 1, name="negate")
        words = self._register(m, "magnitudes", {"quotient": a, "divisor": b})
        return SimpleNamespace(remainder=Const(0, 33), quotient=Cat(words.quotient, 0), divisor=words.divisor)

    def _unpack(self, m):
        """Stage 1 of floats."""
        results = {}
        for name, word in (("a", self.a), ("b", self.b)):
            hidden, some = named(m, word[23:31].any(), f"hidden_{name}"), named(m, word[:23].any(), f"some_{name}")
            ones = named(m, word[23:31].all(), f"ones_{name}")
            significand = Cat(word[:23], hidden)
            high, middle = significand[16:].any(), significand[8:16].any()
            by_16, by_8 = named(m, ~high & ~middle, f"{name}_by_16"), named(m, ~high & middle, f"{name}_by_8")
            results |= {
                f"significand_{name}": Mux(by_16, significand << 16, Mux(by_8, significand << 8, significand))[:24],
                f"places_{name}": Cat(by_8, by_16),
                f"exponent_{name}": Cat(word[23] | ~hidden, word[24:31]),
                f"zero_{name}": ~hidden & ~some,
                f"infinite_{name}": ones & ~some,
                f"nan_{name}": ones & some,
                f"negative_{name}": word[31],
            }
        return results

    def _shift_up(self, m, i):
        """Stage 2 of floats; and what the result is if an operand is no number, zero or infinite."""
        root, results = self._root, {}
        for name in "ab":
            value = getattr(i, f"significand_{name}")
            by_4 = named(m, ~value[20:].any(), f"{name}_by_4")
            by_2 = named(m, ~Mux(by_4, value[18:20], value[22:]).any(), f"{name}_by_2")
            results |= {
                f"significand_{name}": shift_up(m, value, Cat(by_2, by_4), 2, name),
                f"places_{name}": Cat(by_2, by_4, getattr(i, f"places_{name}")),
            }
        nan = i.nan_a | Mux(root, i.negative_a & ~i.zero_a,
                            i.nan_b | (i.infinite_a & i.infinite_b) | (i.zero_a & i.zero_b))  # fmt: skip
        infinite = i.infinite_a | (i.zero_b & ~root)
        return results | {
            "exponent": (i.exponent_a + _BIAS - Mux(root, 0, i.exponent_b)).as_signed(),
            "odd": ~i.exponent_a[0],  # the exponent without bias
            "nan": nan,
            "infinite": infinite,
            "special": nan | infinite | i.zero_a | (i.infinite_b & ~root),
            "negative": ~nan & (i.negative_a ^ (i.negative_b & ~root)),
        }

    def _begin(self, m, floats, integers):
        """Stage 3 of floats: the first remainder is a quarter of the dividend or radicand.

        A divisor of 1 is bit 25, so that the last digit of a root is bit 0.
        """
        a, b = (Mux(value[23], value, value << 1)[:24] for value in (floats.significand_a, floats.significand_b))
        odd = named(m, self._root & (floats.odd ^ ~floats.significand_a[23]), "odd")
        floating = self._floating
        return {
            "remainder": Mux(floating, Mux(odd, a << 1, a)[:25], integers["remainder"])[: self._width],
            "quotient": Mux(floating, 0, integers["quotient"]),
            "divisor": Mux(floating, Cat(Const(0, 2), b), integers["divisor"]),
        }

    def _digits(self, m, i, first):
        """Three digits of the result; ``first`` is the number of the first one among those of floats."""
        remainder, quotient = i.remainder, i.quotient
        for number in range(_DIGITS):
            divisor = i.divisor
            if self._floats and first is not None:
                below = Const(1 << _FLOAT_DIGITS - 1 - first - number)
                so_far = Cat(below, remainder[-1], quotient[: first + number])
                divisor = Mux(self._root, so_far, divisor)
            remainder = digit(m, remainder, quotient[-1], divisor)
            quotient = Cat(~remainder[-1], quotient)[: len(quotient)]
        return {"remainder": remainder, "quotient": quotient, "divisor": i.divisor}

    def _exponent(self, m, i, leading):
        """The exponent, and what else becomes of a float, for stage 14.

        ``i`` are the registers after stage 2, ``leading`` the digit of weight 1, after stage 4.
        """
        root = self._root
        places = {name: Cat(~getattr(i, f"significand_{name}")[23], getattr(i, f"places_{name}")) for name in "ab"}
        exponent = delay(m, (i.exponent - places["a"])[:10].as_signed(), 1, name="exponent_a")
        exponent = (exponent + delay(m, Mux(root, 0, places["b"]), 1, name="places_b"))[:10].as_signed()
        exponent = delay(m, exponent, 1, name="exponent_b")
        exponent = delay(m, Mux(root, exponent >> 1, exponent - ~leading)[:10].as_signed(), 1, name="exponent")
        flags = delay(m, Cat(i.special, i.nan | i.infinite, i.nan, i.negative), 3, name="flags")
        special, ones, nan, negative = flags
        below = named(m, exponent < 1, "below")
        overflows = named(m, ~special & (exponent >= 255), "overflows")
        base = Mux(below, 0, exponent - 1)[:8]
        replaced = named(m, special | overflows, "replaced")
        results = {
            "replaced": replaced,
            "exponent": Mux(replaced, (ones | overflows).replicate(8), base),
            "quiet": nan,
            "negative": negative,
            "places": Mux(below, Mux(exponent < -30, 31, 1 - exponent), 0)[:5],
        }
        return SimpleNamespace(
            **{name: delay(m, value & self._floating.replicate(len(value)), _STAGES - 1, name=f"result_{name}")
               for name, value in results.items()}
        )  # fmt: skip

    def _restore(self, m, i):
        """Stage 13: the remainder that is not negative."""
        divisor = i.divisor
        if self._floats:
            divisor = Mux(self._root, Cat(1, i.quotient[:_FLOAT_DIGITS]), divisor)
        added = Cat(divisor, Const(0, self._width))[: self._width] & i.remainder[-1].replicate(self._width)
        return {"remainder": (i.remainder + added)[: self._width], "quotient": i.quotient}

    def _pack(self, m, i, result):
        """Stage 14: the number without its sign, an integer of which is inverted."""
        results = {name: Const(0) for name in ("guard", "rest", "negate", "quiet", "negative")}
        results["exponent"] = Const(0, 8)
        if self._integers:
            results["negate"] = self._negate
            integer = Mux(self._remains, i.remainder, i.quotient)[:32] ^ self._negate.replicate(32)
        if self._floats:
            digits = i.quotient[: _FLOAT_DIGITS - 1]
            value, lost = Mux(digits[-1], digits, digits << 1)[: len(digits)], i.remainder.any()
            for places, unit in ((Cat(result.places[4], 0), 16), (result.places[2:4], 4), (result.places[:2], 1)):
                value, gone = shift_down(m, value, places, unit)
                lost = lost | gone
            number = value[2:] & ~result.replaced.replicate(24)
            results |= {name: getattr(result, name) for name in ("exponent", "quiet", "negative")}
            results |= {"guard": value[1] & ~result.replaced, "rest": value[0] | lost}
        if not self._floats:
            number = integer
        elif self._integers:
            number = Mux(self._floating, number, integer)
        return results | {"number": Cat(number, Const(0, 32 - len(number)))}
