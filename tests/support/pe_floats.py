"""Functions of unit ``f32`` one at a time, from exact integers and fractions; and operands for them."""

from fractions import Fraction
from math import floor, isqrt

import numpy as np

from tilewright.golden.pe.floats import compare, compute
from tilewright.spec.arithmetic import FUNCTIONS, Function

__all__ = ["COMPARISONS", "CONVERSIONS", "CORNERS", "FLOATS", "PIPELINED", "exact", "golden", "operands"]

#: Functions of unit ``f32``: those that write a register, and among them conversions; those that write a predicate.
FLOATS = tuple(each for each, info in FUNCTIONS.items() if info.unit == "f32" and not info.predicate)
CONVERSIONS = tuple(each for each in FLOATS if Function.FS <= each <= Function.BFF)
COMPARISONS = tuple(each for each, info in FUNCTIONS.items() if info.unit == "f32" and info.predicate)
#: Those that every thread computes each cycle.
PIPELINED = tuple(each for each in FLOATS + COMPARISONS if each not in (Function.FDIV, Function.FSQRT))

_F32, _F16, _BF16 = (8, 23), (5, 10), (8, 7)
_MINUS = 1 << 31


def _corners():
    one_sided = {
        0, 1, 2, 3, 0x00400000, 0x007FFFFE, 0x007FFFFF,  # zero and subnormals
        0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x0C000000,  # the smallest normal numbers
        0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FBFFFFF, 0x3FC00000, 0x40200000,
        0x4B7FFFFF, 0x4B800000, 0x4B800001, 0x4AFFFFFF,  # the last halves and odd integers
        0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF, 0x4F800000,  # limits of integers
        0x33000000, 0x33000001, 0x33800000, 0x387FE000, 0x387FF000, 0x38800000,  # limits of fp16
        0x477FE000, 0x477FEFFF, 0x477FF000, 0x47800000, 0x3F801000, 0x3F803000, 0x3F808000, 0x3F818000,
        0x7F7F7FFF, 0x7F7F8000, 0x7F7FFFFE, 0x7F7FFFFF,  # the largest numbers, also of bf16
        0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF,  # infinity, NaNs
    }  # fmt: skip
    return sorted(one_sided | {word | _MINUS for word in one_sided})


#: Raw bits of every class and of the limits between classes, of binary32 and of the formats it is converted to.
CORNERS = np.array(_corners(), np.uint32)

#: Numbers among which all triples are tried.
_FEW = (0, 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0x3F800001, 0x3F7FFFFF, 0x7F7FFFFF, 0x7F800000, 0x7FA00000)


def operands(rng, function, count):
    """Corners and ``count`` random operands of a function.

    All pairs of corners (of one operand, corners in both halves); all triples of a few; random bits; random numbers
    whose exponents are near each other, and a third one near the negative product of two, so that sums cancel; products
    and quotients near the smallest numbers.

    Returns
    -------
    a, b, c, part : ndarrays of one length
    """
    reads = FUNCTIONS[function].operands
    if reads == "abc":
        few = np.array([word | sign for word in _FEW for sign in (0, _MINUS)], np.uint32)
        fixed = [each.reshape(-1) for each in np.meshgrid(few, few, few)]
    elif "b" in reads:
        fixed = [each.reshape(-1) for each in np.meshgrid(CORNERS, CORNERS)]
        fixed.append(np.zeros_like(fixed[0]))
    else:
        halves = np.concatenate([CORNERS, CORNERS << np.uint32(16) | CORNERS >> np.uint32(16)])
        fixed = [halves, np.zeros_like(halves), halves[::-1]]
    small = count // 5 if "b" in reads else 0
    chosen = [fixed, _related(rng, *(_random(rng, count - small) for _ in range(3)))]
    chosen.append(_smallest(rng, *(_random(rng, small) for _ in range(3)), function == Function.FDIV))
    parts = rng.integers(0, 2, len(fixed[0]) + count, dtype=np.uint32)
    return *(np.concatenate(columns) for columns in zip(*chosen, strict=True)), parts


def _random(rng, count):
    return rng.integers(0, 1 << 32, count, dtype=np.uint32)


def _related(rng, a, b, c):
    """Random words of which each quarter is related in another way."""
    count = len(a)
    quarter = rng.integers(0, 4, count)
    a_exponent, b_exponent = (words >> np.uint32(23) & np.uint32(0xFF) for words in (a, b))
    reach = rng.integers(-27, 28, count)
    # b near a, for sums of two; c near a · b, for the fused one.
    b_near = np.clip(a_exponent.astype(np.int64) + reach, 0, 255).astype(np.uint32)
    b = np.where(quarter == 1, b & np.uint32(0x807FFFFF) | b_near << np.uint32(23), b)
    c_near = np.clip(a_exponent.astype(np.int64) + b_exponent - 127 + 2 * reach, 0, 255).astype(np.uint32)
    c = np.where(quarter == 2, c & np.uint32(0x807FFFFF) | c_near << np.uint32(23), c)
    # Short mantissas, for ties and for sums of zero; and the rounded product with the other sign.
    short = np.uint32(0xFFFFFFFF) << rng.integers(8, 23, count).astype(np.uint32)
    a, b, c = (np.where(quarter == 3, words & short, words) for words in (a, b, c))
    with np.errstate(all="ignore"):
        product = (a.view(np.float32) * b.view(np.float32)).view(np.uint32)
    near = product ^ np.uint32(_MINUS) ^ rng.integers(0, 4, count).astype(np.uint32)
    c = np.where((quarter == 3) & (reach % 2 == 0), near, c)
    # Exponents in the middle, so that most products and sums are numbers.
    middle = rng.integers(0, 2, count) == 1
    bias = rng.integers(96, 160, count).astype(np.uint32)
    a = np.where(middle & (quarter != 3), a & np.uint32(0x807FFFFF) | bias << np.uint32(23), a)
    return a, b, c


def _smallest(rng, a, b, c, quotient):
    """Products or quotients of random words near the smallest numbers, of factors and divisors with few bits.

    Exact ones are among them, of which only bits that a subnormal result has no place for are lost.
    """
    count = len(a)
    a_exponent = rng.integers(1, 127, count)
    target = rng.integers(-26, 3, count)
    b_exponent = np.clip(a_exponent + 127 - target if quotient else 127 - a_exponent + target, 1, 254)
    few = np.uint32(0xFFFFFFFF) << rng.integers(20, 24, count).astype(np.uint32)
    a, b = (words & np.uint32(0x807FFFFF) | exponent.astype(np.uint32) << np.uint32(23)
            for words, exponent in ((a, a_exponent), (b & (few | np.uint32(_MINUS)), b_exponent)))  # fmt: skip
    return a, b, c & (np.uint32(_MINUS) | rng.integers(0, 4, count, dtype=np.uint32))


def golden(function, a, b, c, part):
    """Results of the golden model: raw bits, or values of a comparison."""
    return compare(function, a, b) if function in COMPARISONS else compute(function, a, b, c, part)


def exact(function, a, b, c, part):
    """The result of one function: raw bits, or a bool of a comparison."""
    a, b, c, part = (int(word) for word in (a, b, c, part))
    name = function.name
    if name in ("FS", "FU"):
        number = a - (1 << 32) if name == "FS" and a & _MINUS else a
        return _rounded(number < 0, abs(number), 0, *_F32)
    if name in ("FH", "FBF"):
        return _widened(a >> 16 * part & 0xFFFF, _F16 if name == "FH" else _BF16)
    if name in ("HF", "BFF"):
        return _narrowed(a, _F16 if name == "HF" else _BF16) << 16 * part | c & 0xFFFF << 16 * (1 - part)
    x, y, z = (_Number(word, *_F32) for word in (a, b, c))
    if function in COMPARISONS:
        return _compared(name, x, y)
    if name[0] in "SU":
        return _integer(name, x)
    return {"FMIN": _extreme, "FMAX": _extreme, "FDIV": _quotient, "FSQRT": _root}.get(name, _sum)(name, x, y, z)


class _Number:
    """(−1)^negative · size · 2^low, of a format."""

    def __init__(self, bits, exponent_bits, mantissa_bits):
        top = (1 << exponent_bits) - 1
        exponent, mantissa = bits >> mantissa_bits & top, bits & (1 << mantissa_bits) - 1
        self.bits, self.negative = bits, bool(bits >> exponent_bits + mantissa_bits)
        self.nan, self.infinite = exponent == top and mantissa > 0, exponent == top and mantissa == 0
        self.size = mantissa | (exponent > 0) << mantissa_bits
        self.low = max(exponent, 1) - (top >> 1) - mantissa_bits

    @property
    def value(self):
        size = self.size << 400 if self.infinite else self.size
        value = Fraction(size) * Fraction(2) ** self.low
        return -value if self.negative else value


def _infinity(negative, exponent_bits, mantissa_bits):
    return ((negative << exponent_bits) + (1 << exponent_bits) - 1) << mantissa_bits


def _nan(exponent_bits, mantissa_bits):
    return _infinity(0, exponent_bits, mantissa_bits) | 1 << mantissa_bits - 1


def _rounded(negative, size, low, exponent_bits, mantissa_bits, more=False):
    """``size`` · 2^``low``, and a little more, to nearest even: the candidates are ``size`` without its lowest bits."""
    bias = (1 << exponent_bits - 1) - 1
    last = max(low + size.bit_length() - 1 - mantissa_bits, 1 - bias - mantissa_bits)
    # Twice the number in units of its last place, and whether there is more.
    twice = size << low - last + 1 if low - last + 1 >= 0 else size >> last - low - 1
    more = more or (low - last + 1 < 0 and size & (1 << last - low - 1) - 1 > 0)
    mantissa = twice >> 1
    if twice & 1 and (more or mantissa & 1):
        mantissa += 1
    bits = (last - (1 - bias - mantissa_bits) << mantissa_bits) + mantissa if size else 0
    top = (1 << exponent_bits) - 1 << mantissa_bits
    return min(bits, top) | negative << exponent_bits + mantissa_bits


def _widened(half, fmt):
    x = _Number(half, *fmt)
    if x.nan:
        return _nan(*_F32)
    return _infinity(x.negative, *_F32) if x.infinite else _rounded(x.negative, x.size, x.low, *_F32)


def _narrowed(word, fmt):
    x = _Number(word, *_F32)
    if x.nan:
        return _nan(*fmt)
    return _infinity(x.negative, *fmt) if x.infinite else _rounded(x.negative, x.size, x.low, *fmt)


def _sum(name, x, y, z):
    """a + b, a − b, a · b, a · b + c, from x · y + z or x · y."""
    if name in ("FADD", "FSUB"):
        x, y, z = x, _Number(0x3F800000, *_F32), _Number(y.bits ^ (_MINUS if name == "FSUB" else 0), *_F32)
    negative, size, low = x.negative ^ y.negative, x.size * y.size, x.low + y.low
    infinite = x.infinite or y.infinite
    if x.nan or y.nan or (infinite and not (x.size and y.size)):
        return _nan(*_F32)
    if name == "FMUL":
        return _infinity(negative, *_F32) if infinite else _rounded(negative, size, low, *_F32)
    if z.nan or (infinite and z.infinite and negative != z.negative):
        return _nan(*_F32)
    if infinite or z.infinite:
        return _infinity(negative if infinite else z.negative, *_F32)
    last = min(low, z.low)
    total = (-1) ** negative * (size << low - last) + (-1) ** z.negative * (z.size << z.low - last)
    return _rounded(total < 0 or (total == 0 and negative and z.negative), abs(total), last, *_F32)


def _quotient(_, x, y, __):
    negative = x.negative ^ y.negative
    if x.nan or y.nan or (x.infinite and y.infinite) or (not x.size and not y.size):
        return _nan(*_F32)
    if x.infinite or not y.size:
        return _infinity(negative, *_F32)
    if y.infinite:
        return negative << 31
    # 64 places of the quotient.
    quotient, rest = divmod(x.size << 64, y.size)
    return _rounded(negative, quotient, x.low - y.low - 64, *_F32, more=rest > 0)


def _root(_, x, __, ___):
    if x.nan or (x.negative and x.size):
        return _nan(*_F32)
    if x.infinite or not x.size:
        return x.bits
    size, low = x.size << 64 + x.low % 2, x.low - 64 - x.low % 2
    root = isqrt(size)
    return _rounded(False, root, low // 2, *_F32, more=root * root < size)


def _extreme(name, x, y, _):
    if x.nan or y.nan:
        return _nan(*_F32) if x.nan and y.nan else (y if x.nan else x).bits
    first, second = ((each.value, not each.negative) for each in (x, y))
    return (x if (first < second) == (name == "FMIN") else y).bits


def _integer(name, x):
    low, high = (-(1 << 31), (1 << 31) - 1) if name[0] == "S" else (0, (1 << 32) - 1)
    if x.nan:
        return high & 0xFFFFFFFF
    rounded = {"": round, "Z": int, "D": floor}[name[2:]](x.value)
    return max(low, min(high, rounded)) & 0xFFFFFFFF


def _compared(name, x, y):
    if x.nan or y.nan:
        return name == "FNE"
    x, y = x.value, y.value
    return {"FEQ": x == y, "FNE": x != y, "FLT": x < y, "FLE": x <= y, "FGT": x > y, "FGE": x >= y}[name]
