"""Functions of integers, bytes and predicates (docs/pe.md, "Arithmetic"); those of floats are in ``floats``.

Operands and results are uint32 arrays, an element each thread.
"""

import numpy as np

from tilewright.spec.arithmetic import FUNCTIONS, Function

from . import floats

__all__ = ["combine", "compare", "compute", "lookup_index", "replace_byte"]

_LIMITS = {"B": (-128, 127), "BU": (0, 255), "H": (-32768, 32767), "HU": (0, 65535)}
_MOST_QUOTIENT = 1023
_QUOTIENT_OF_ZERO = 0xFFFFFFFF


def compute(function, a, b, c, part):
    """The result of a function that writes a register and reads neither predicates nor the lookup memory."""
    if FUNCTIONS[function].unit == "f32":
        return floats.compute(function, a, b, c, part)
    if function in (Function.DIV, Function.REM):
        quotient, remainder = _divided(_signed(a), _signed(b))
        return _word(quotient if function == Function.DIV else remainder)
    return _word(_UNSIGNED[function](*(operand.astype(np.int64) for operand in (a, b, c)), part))


def compare(function, a, b):
    """The result, a bool array, of a comparison."""
    if FUNCTIONS[function].unit == "f32":
        return floats.compare(function, a, b)
    name = Function(function).name
    relation = _RELATIONS[name.removesuffix("U").lower()]
    return relation(a, b) if name.endswith("U") else relation(_signed(a), _signed(b))


def combine(function, p, q):
    """The result of a function of two predicates, bool arrays."""
    return {Function.PAND: p & q, Function.POR: p | q, Function.PXOR: p ^ q, Function.PANDN: p & ~q}[function]


def lookup_index(a, b, part, size):
    """The entry of a lookup memory with ``size`` entries that LOOKUP and LOOKB read."""
    return (_byte(a.astype(np.int64), part) + b) % size


def replace_byte(c, value, part):
    """``c`` with byte ``part`` replaced by the low byte of ``value``."""
    mask = np.uint32(0xFF << 8 * part)
    return c & ~mask | (value & np.uint32(0xFF)) << np.uint32(8 * part)


_RELATIONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _word(values):
    """Integers modulo 2^32."""
    return (values & 0xFFFFFFFF).astype(np.uint32)


def _signed(values, bits=32):
    """The low ``bits`` of integers in two's complement, as int64."""
    values = values.astype(np.int64) & (1 << bits) - 1
    return values - (values >> bits - 1 << bits)


def _byte(a, part):
    return a >> 8 * part & 0xFF


def _half(a, part):
    return a >> 16 * part & 0xFFFF


def _high_unsigned(a, b):
    """The high 32 bits of products below 2^64, without leaving 63 bits."""
    low = (a & 0xFFFF) * b
    return ((a >> 16) * b + (low >> 16)) >> 16


def _high_signed(a, b):
    """Of the signed numbers with the words ``a`` and ``b``: each negative one is its word less 2^32."""
    return _high_unsigned(a, b) - (a >> 31) * b - (b >> 31) * a


def _divided(a, b):
    """Quotients, rounded towards zero, and remainders, with a's sign; by zero −1 and a."""
    divisor = np.where(b == 0, 1, b)
    quotient = np.abs(a) // np.abs(divisor) * np.sign(a) * np.sign(divisor)
    return np.where(b == 0, -1, quotient), np.where(b == 0, a, a - quotient * divisor)


def _short_quotient(a, b, c):
    quotient = (a * (c & _MOST_QUOTIENT) + b // 2) // np.where(b == 0, 1, b)
    return np.where(b == 0, _MOST_QUOTIENT, np.minimum(quotient, _MOST_QUOTIENT))


def _pack(kind, bits):
    """Two numbers, saturated, side by side in 2 · ``bits`` bits."""
    low, high = _LIMITS[kind]
    mask = (1 << bits) - 1

    def packed(a, b):
        return np.clip(_signed(a), low, high) & mask | (np.clip(_signed(b), low, high) & mask) << bits

    return packed


def _pack_bytes(kind):
    packed = _pack(kind, 8)
    return lambda a, b, c, part: packed(a, b) << 16 | c & 0xFFFF if part else packed(a, b)


def _bytewise(operation, *, signed):
    """A function of each two bytes, with the results modulo 2^8."""

    def of_bytes(a, b, c, part):
        result = 0
        for n in range(4):
            operands = [_signed(_byte(x, n), 8) if signed else _byte(x, n) for x in (a, b)]
            result = result | (operation(*operands) & 0xFF) << 8 * n
        return result

    return of_bytes


def _dot(a, b, c, part):
    total = c
    for n in range(4):
        x = _byte(a, n) if part & 2 else _signed(_byte(a, n), 8)
        y = _byte(b, n) if part & 1 else _signed(_byte(b, n), 8)
        total = total + x * y
    return total


_F = Function
#: Functions of int64 arrays that hold unsigned words; the result is taken modulo 2^32.
_UNSIGNED = {
    _F.MOV: lambda a, b, c, part: b,
    _F.ADD: lambda a, b, c, part: a + b,
    _F.SUB: lambda a, b, c, part: a - b,
    _F.MUL: lambda a, b, c, part: (a & 0xFFFF) * b + ((a >> 16) * (b & 0xFFFF) << 16),
    _F.MULH: lambda a, b, c, part: _high_signed(a, b),
    _F.MULHU: lambda a, b, c, part: _high_unsigned(a, b),
    _F.MAD: lambda a, b, c, part: _UNSIGNED[_F.MUL](a, b, c, part) + c,
    _F.MIN: lambda a, b, c, part: np.minimum(_signed(a), _signed(b)),
    _F.MAX: lambda a, b, c, part: np.maximum(_signed(a), _signed(b)),
    _F.MINU: lambda a, b, c, part: np.minimum(a, b),
    _F.MAXU: lambda a, b, c, part: np.maximum(a, b),
    _F.AND: lambda a, b, c, part: a & b,
    _F.OR: lambda a, b, c, part: a | b,
    _F.XOR: lambda a, b, c, part: a ^ b,
    _F.SHL: lambda a, b, c, part: a << b % 32,
    _F.SHR: lambda a, b, c, part: a >> b % 32,
    _F.SAR: lambda a, b, c, part: _signed(a) >> b % 32,
    _F.XB: lambda a, b, c, part: _signed(_byte(a, part), 8) + b,
    _F.XBU: lambda a, b, c, part: _byte(a, part) + b,
    _F.XH: lambda a, b, c, part: _signed(_half(a, part), 16) + b,
    _F.XHU: lambda a, b, c, part: _half(a, part) + b,
    _F.PACKB: _pack_bytes("B"),
    _F.PACKBU: _pack_bytes("BU"),
    _F.PACKH: lambda a, b, c, part: _pack("H", 16)(a, b),
    _F.PACKHU: lambda a, b, c, part: _pack("HU", 16)(a, b),
    _F.ADD4: _bytewise(np.add, signed=False),
    _F.SUB4: _bytewise(np.subtract, signed=False),
    _F.MIN4: _bytewise(np.minimum, signed=True),
    _F.MAX4: _bytewise(np.maximum, signed=True),
    _F.MINU4: _bytewise(np.minimum, signed=False),
    _F.MAXU4: _bytewise(np.maximum, signed=False),
    _F.DP4: _dot,
    _F.DIVU: lambda a, b, c, part: np.where(b == 0, _QUOTIENT_OF_ZERO, a // np.where(b == 0, 1, b)),
    _F.REMU: lambda a, b, c, part: np.where(b == 0, a, a % np.where(b == 0, 1, b)),
    _F.QDIV: lambda a, b, c, part: _short_quotient(a, b, c),
}
