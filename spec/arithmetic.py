"""Functions of the arithmetic of the processing engine (docs/pe.md, "Arithmetic")."""

from dataclasses import dataclass
from enum import IntEnum

from .fields import one_line

__all__ = ["FUNCTIONS", "UNITS", "Function", "FunctionInfo", "Operand", "units_of"]

#: Units that an engine may be built with, in the order of their bits in register ``params4``. The others need ``alu``.
UNITS = ("alu", "div", "f32", "lookup")


def units_of(units):
    """``units``, a list of some of ``UNITS``, as a tuple in their order; TypeError or ValueError otherwise."""
    if not isinstance(units, list | tuple):
        raise TypeError(f"units must be a list or tuple, not {one_line(units)}")
    if any(unit not in UNITS for unit in units):
        raise ValueError(f"units must be some of {', '.join(UNITS)}, not {one_line(units)}")
    if units and "alu" not in units:
        raise ValueError(f"units without alu, which the others need: {one_line(units)}")
    return tuple(unit for unit in UNITS if unit in units)


class Operand(IntEnum):
    """What operand b is."""

    REGISTER = 0  #: register ``rb`` of the thread
    IMMEDIATE = 1  #: ``imm``
    UNIFORM = 2  #: uniform register ``rb``


class Function(IntEnum):
    """What an arithmetic instruction computes; ``FUNCTIONS`` says from which operands."""

    MOV = 0  #: b
    ADD = 1  #: a + b modulo 2^32
    SUB = 2  #: a − b
    MUL = 3  #: the low 32 bits of a · b
    MULH = 4  #: the high 32 bits of a · b, both signed
    MULHU = 5  #: the high 32 bits of a · b, both unsigned
    MAD = 6  #: the low 32 bits of a · b + c
    MIN = 7  #: the smaller, signed
    MAX = 8
    MINU = 9  #: the smaller, unsigned
    MAXU = 10
    AND = 11
    OR = 12
    XOR = 13
    SHL = 14  #: a · 2^(b mod 32)
    SHR = 15  #: ⌊a / 2^(b mod 32)⌋, unsigned
    SAR = 16  #: the same, signed
    SEL = 17  #: a where predicate ``ps`` is true, else b
    SHFL = 18  #: a of the thread whose number differs in bit ``part``; the thread's own a if there is no such thread
    XB = 19  #: byte ``part`` of a, signed, plus b
    XBU = 20  #: byte ``part`` of a, unsigned, plus b
    XH = 21  #: half ``part`` of a, signed, plus b
    XHU = 22  #: half ``part`` of a, unsigned, plus b
    PACKB = 23  #: a and b, saturated to signed bytes, in half ``part``; half 0 of c below half 1, 0 above half 0
    PACKBU = 24  #: the same, a and b signed, saturated to unsigned bytes
    PACKH = 25  #: a and b, saturated to signed halves: b is the upper one
    PACKHU = 26  #: the same, a and b signed, saturated to unsigned halves
    ADD4 = 27  #: four sums of bytes, each modulo 2^8
    SUB4 = 28
    MIN4 = 29  #: the smaller of each two bytes, signed
    MAX4 = 30
    MINU4 = 31  #: unsigned
    MAXU4 = 32
    DP4 = 33  #: c + the sum of four products of bytes; ``part``: bit 0, b is unsigned; bit 1, a is unsigned
    # Comparisons: a predicate.
    EQ = 34
    NE = 35
    LT = 36
    LE = 37
    GT = 38
    GE = 39
    LTU = 40
    LEU = 41
    GTU = 42
    GEU = 43
    # Predicates ``ps`` and ``part``: a predicate.
    PAND = 44
    POR = 45
    PXOR = 46
    PANDN = 47  #: ps and not part
    # Unit ``lookup``.
    LOOKUP = 48  #: entry b + byte ``part`` of a of the lookup memory, modulo its size
    LOOKB = 49  #: c with byte ``part`` replaced by the low byte of the same entry
    # Unit ``div``.
    DIV = 50  #: as RISC-V: truncated; by zero −1; −2^31 / −1 = −2^31
    DIVU = 51  #: by zero 2^32 − 1
    REM = 52  #: by zero a; of −2^31 / −1 it is 0
    REMU = 53  #: by zero a
    QDIV = 54  #: ⌊(a · (c mod 1024) + ⌊b / 2⌋) / b⌋, all unsigned, at most 1023; by zero 1023
    # Unit ``f32``: IEEE 754 binary32, to nearest even, subnormals kept; every NaN that results is 0x7FC00000.
    FADD = 64
    FSUB = 65
    FMUL = 66
    FMA = 67  #: a · b + c, rounded once
    FMIN = 68  #: as RISC-V: −0 < +0; of a NaN and a number the number
    FMAX = 69
    FDIV = 70
    FSQRT = 71  #: of a
    # Conversions of a. A number beyond the range saturates, a NaN becomes the largest integer, as RISC-V says.
    FS = 72  #: from a signed integer, to nearest even
    FU = 73  #: from an unsigned integer
    SF = 74  #: to a signed integer, to nearest even
    SFZ = 75  #: truncated
    SFD = 76  #: rounded down
    UF = 77  #: to an unsigned integer, to nearest even
    UFZ = 78
    UFD = 79
    FH = 80  #: from half ``part``, fp16
    FBF = 81  #: from half ``part``, bf16
    HF = 82  #: c with half ``part`` replaced by a as fp16, to nearest even
    BFF = 83  #: c with half ``part`` replaced by a as bf16, to nearest even
    # Comparisons: a predicate. With a NaN, FNE is true and the others false.
    FEQ = 84
    FNE = 85
    FLT = 86
    FLE = 87
    FGT = 88
    FGE = 89


@dataclass(frozen=True)
class FunctionInfo:
    """What a function needs.

    Attributes
    ----------
    operands : str
        Those of "abc" that it reads. Fields of the others must be zero.
    unit : str
        Of ``UNITS``.
    parts : int
        ``part`` must be below; 1 if it is not used.
    predicate : bool
        The result is predicate ``rd``, not a register.
    selects : bool
        It reads predicate ``ps``.
    """

    operands: str = "ab"
    unit: str = "alu"
    parts: int = 1
    predicate: bool = False
    selects: bool = False


def _infos():
    named = {
        "MOV": {"operands": "b"},
        "SEL": {"selects": True},
        "SHFL": {"operands": "a", "parts": 8},
        "MAD": {"operands": "abc"},
        "DP4": {"operands": "abc", "parts": 4},
        "XB": {"parts": 4}, "XBU": {"parts": 4}, "XH": {"parts": 2}, "XHU": {"parts": 2},
        "PACKB": {"operands": "abc", "parts": 2}, "PACKBU": {"operands": "abc", "parts": 2},
        "LOOKUP": {"parts": 4}, "LOOKB": {"operands": "abc", "parts": 4},
        "QDIV": {"operands": "abc"}, "FMA": {"operands": "abc"},
        "FH": {"operands": "a", "parts": 2}, "FBF": {"operands": "a", "parts": 2},
        "HF": {"operands": "ac", "parts": 2}, "BFF": {"operands": "ac", "parts": 2},
    }  # fmt: skip
    named |= {name: {"operands": "a"} for name in ("FSQRT", "FS", "FU", "SF", "SFZ", "SFD", "UF", "UFZ", "UFD")}
    named |= {name: {"operands": "", "parts": 8, "selects": True} for name in ("PAND", "POR", "PXOR", "PANDN")}
    for function in Function:
        unit = "f32" if function >= Function.FADD else "div" if function >= Function.DIV else "alu"
        if function in (Function.LOOKUP, Function.LOOKB):
            unit = "lookup"
        predicate = Function.EQ <= function <= Function.PANDN or function >= Function.FEQ
        yield function, FunctionInfo(unit=unit, predicate=predicate, **named.get(function.name, {}))


#: What each function needs.
FUNCTIONS = dict(_infos())
