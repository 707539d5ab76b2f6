"""Choices of every function of unit ``f32``."""

from amaranth.lib import data

from support.pe_floats import COMPARISONS, CONVERSIONS, FLOATS
from tilewright.hw.pe.arithmetic.float_control import Addend, FloatControl, FloatDecoder
from tilewright.spec.arithmetic import Function
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import set_together

F = Function
ADDENDS = {F.FADD: Addend.B, F.FSUB: Addend.B, F.FMA: Addend.C} | dict.fromkeys(COMPARISONS, Addend.B)
SIGNS = {F.FEQ: (0, 1, 0), F.FNE: (1, 0, 1), F.FLT: (1, 0, 0), F.FLE: (1, 1, 0), F.FGT: (0, 0, 1), F.FGE: (0, 1, 1)}


def choices(function):
    """The members that are not zero, from the function's name."""
    name = function.name
    to_integer = function in CONVERSIONS and name[0] in "SU"
    from_integer = function in (F.FS, F.FU)
    halves = {"widens": name in ("FH", "FBF"), "narrows": name in ("HF", "BFF"), "f16": name in ("FH", "HF")}
    one = any(halves.values()) or function in (F.FADD, F.FSUB, *COMPARISONS)
    negative, zero, positive = SIGNS.get(function, (0, 0, 0))
    return halves | {
        "one": one,
        "multiplies": one or function in (F.FMUL, F.FMA),
        "addend": ADDENDS.get(function, Addend.A if to_integer else Addend.OTHER),
        "negates": function in (F.FSUB, *COMPARISONS),
        "extreme": function in (F.FMIN, F.FMAX),
        "largest": function == F.FMAX,
        "from_integer": from_integer,
        "to_integer": to_integer,
        "signed": (from_integer or to_integer) and "S" in name,
        "truncates": to_integer and name.endswith("Z"),
        "floors": to_integer and name.endswith("D"),
        "compares": function in COMPARISONS,
        "zero": zero,
        "negative": negative,
        "positive": positive,
    }


def test_every_function():
    dut = elaborated(FloatDecoder)

    async def testbench(ctx):
        for function in FLOATS + COMPARISONS:
            if function in (F.FDIV, F.FSQRT):
                continue
            for part in (0, 1):
                set_together(ctx, (dut.function, function), (dut.part, part))
                expected = choices(function) | {"part": part}
                assert set(expected) == {name for name, _ in data.Layout.cast(FloatControl)}
                came = ctx.get(dut.o)
                assert {name: getattr(came, name) for name in expected} == expected, function.name
                await ctx.tick()

    simulate(dut, testbench)
