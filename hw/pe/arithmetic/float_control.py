"""What the functions of unit ``f32`` choose in the data path of a lane."""

from enum import IntEnum

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.arithmetic import Function

from ...lib.logic import is_one_of, named

__all__ = ["Addend", "FloatControl", "FloatDecoder"]

_COMPARISONS = (Function.FEQ, Function.FNE, Function.FLT, Function.FLE, Function.FGT, Function.FGE)
_WIDENING, _NARROWING = (Function.FH, Function.FBF), (Function.HF, Function.BFF)
#: Functions of a · 1, with another power of two where the exponents of fp16 are concerned.
_ONE = (Function.FADD, Function.FSUB, *_COMPARISONS, *_WIDENING, *_NARROWING)
_FROM_INTEGERS = (Function.FS, Function.FU)
_UNSIGNED = (Function.UF, Function.UFZ, Function.UFD)
_TO_INTEGERS = (Function.SF, Function.SFZ, Function.SFD, *_UNSIGNED)


class Addend(IntEnum):
    """What is added to the product."""

    B = 0
    C = 1
    A = 2
    OTHER = 3  #: the integer a; or nothing, with a product


class FloatControl(data.Struct):
    """The choices of one function."""

    part: 1  # the half
    widens: 1  # a is a half of it
    narrows: 1  # the result is a half of c
    f16: 1  # that half is fp16, not bf16
    one: 1  # the factor is a power of two, not b
    multiplies: 1  # there is a product: otherwise it is zero
    addend: 2
    negates: 1  # the addend
    extreme: 1  # the addend is the smaller or larger one of a and b
    largest: 1
    from_integer: 1
    to_integer: 1
    signed: 1  # the integer
    truncates: 1
    floors: 1
    compares: 1
    # Comparisons that a sum of zero makes true, a negative one, a positive one.
    zero: 1
    negative: 1
    positive: 1


class FloatDecoder(wiring.Component):
    """Decodes a function of unit ``f32``; what it says of other functions is undefined. Combinational."""

    function: In(8)
    part: In(1)
    o: Out(FloatControl)

    def elaborate(self, platform):
        m = Module()
        code = named(m, self.function[:5], "code")

        def among(functions):
            return is_one_of(code, [function % 32 for function in functions])

        multiplies = among([Function.FMUL, Function.FMA, *_ONE])
        sums = among([Function.FADD, Function.FSUB, *_COMPARISONS])
        from_a = among(_TO_INTEGERS)
        addend = Mux(sums, Addend.B, Mux(among([Function.FMA]), Addend.C, Mux(from_a, Addend.A, Addend.OTHER)))
        m.d.comb += [
            self.o.part.eq(self.part),
            self.o.widens.eq(among(_WIDENING)),
            self.o.narrows.eq(among(_NARROWING)),
            self.o.f16.eq(among([Function.FH, Function.HF])),
            self.o.one.eq(among(_ONE)),
            self.o.multiplies.eq(multiplies),
            self.o.addend.eq(addend),
            self.o.negates.eq(among([Function.FSUB, *_COMPARISONS])),
            self.o.extreme.eq(among([Function.FMIN, Function.FMAX])),
            self.o.largest.eq(among([Function.FMAX])),
            self.o.from_integer.eq(among(_FROM_INTEGERS)),
            self.o.to_integer.eq(from_a),
            self.o.signed.eq(among([Function.FS, Function.SF, Function.SFZ, Function.SFD])),
            self.o.truncates.eq(among([Function.SFZ, Function.UFZ])),
            self.o.floors.eq(among([Function.SFD, Function.UFD])),
            self.o.compares.eq(among(_COMPARISONS)),
            self.o.zero.eq(among([Function.FEQ, Function.FLE, Function.FGE])),
            self.o.negative.eq(among([Function.FNE, Function.FLT, Function.FLE])),
            self.o.positive.eq(among([Function.FNE, Function.FGT, Function.FGE])),
        ]
        return m
