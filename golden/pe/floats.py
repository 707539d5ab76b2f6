"""Functions of unit ``f32`` of the processing engine (docs/pe.md, "Arithmetic"), many at once, on raw bits.

Numpy's binary32 is that of IEEE 754, subnormals included: it computes all but the fused product. A NaN of any bits is
an operand; 0x7FC00000 is the only one that results.
"""

import numpy as np

from tilewright.spec.arithmetic import Function

__all__ = ["compare", "compute"]

_NAN = 0x7FC00000
_NAN_F16, _NAN_BF16 = 0x7E00, 0x7FC0

_ARITHMETIC = {Function.FADD: np.add, Function.FSUB: np.subtract, Function.FMUL: np.multiply, Function.FDIV: np.divide}
_COMPARISONS = {
    Function.FEQ: np.equal,
    Function.FNE: np.not_equal,
    Function.FLT: np.less,
    Function.FLE: np.less_equal,
    Function.FGT: np.greater,
    Function.FGE: np.greater_equal,
}
#: Functions to integers: how they round, and the type.
_TO_INTEGERS = {
    Function.SF: (np.rint, np.int32),
    Function.SFZ: (np.trunc, np.int32),
    Function.SFD: (np.floor, np.int32),
    Function.UF: (np.rint, np.uint32),
    Function.UFZ: (np.trunc, np.uint32),
    Function.UFD: (np.floor, np.uint32),
}


def compute(function, a, b=0, c=0, part=0):
    """What ``function`` writes to a register.

    Parameters
    ----------
    function : Function
        Of unit ``f32``, not a comparison.
    a, b, c : array_like of shapes that can be broadcast
        Registers, raw 32 bits; those that the function does not read do not matter.
    part : array_like of int
        0 or 1: the half, for conversions from and to 16 bits.

    Returns
    -------
    ndarray of uint32

    Raises
    ------
    ValueError
        If the function is another one.
    """
    a, b, c, part = _alike(a, b, c, part)
    with np.errstate(all="ignore"):
        if function in _ARITHMETIC:
            return _bits(_ARITHMETIC[function](_floats(a), _floats(b)))
        if function in _TO_INTEGERS:
            return _integers(_floats(a), *_TO_INTEGERS[function])
        match function:
            case Function.FMA:
                return _bits(_fused(*(_floats(words) for words in (a, b, c))))
            case Function.FMIN | Function.FMAX:
                return _extreme(a, b, function == Function.FMAX)
            case Function.FSQRT:
                return _bits(np.sqrt(_floats(a)))
            case Function.FS:
                return _bits(a.astype(np.int32).astype(np.float64))
            case Function.FU:
                return _bits(a.astype(np.float64))
            case Function.FH:
                return _bits(_half(a, part).astype(np.uint16).view(np.float16))
            case Function.FBF:
                return _bits(_floats(_half(a, part) << np.uint32(16)))
            case Function.HF:
                return _with_half(c, part, _f16(a))
            case Function.BFF:
                return _with_half(c, part, _bf16(a))
    raise ValueError(f"the function must be one of unit f32 that writes a register, not {function!r}")


def compare(function, a, b):
    """The predicates that a comparison writes.

    Parameters
    ----------
    function : Function
        ``FEQ`` to ``FGE``.
    a, b : array_like of shapes that can be broadcast
        Registers, raw 32 bits.

    Returns
    -------
    ndarray of bool

    Raises
    ------
    ValueError
        If the function is another one.
    """
    if function not in _COMPARISONS:
        raise ValueError(f"the function must be a comparison of floats, not {function!r}")
    a, b = _alike(a, b)
    with np.errstate(all="ignore"):  # a signalling NaN is an operand like any other
        return _COMPARISONS[function](_floats(a), _floats(b))


def _alike(*operands):
    """Words as arrays of one shape; a number goes with any."""
    words = [np.asarray(operand, np.uint32) for operand in operands]
    # Of the threads of an engine, which have one shape, numpy would take longer than for the function itself.
    if all(each.shape in ((), words[0].shape) for each in words):
        return words
    return np.broadcast_arrays(*words)


def _floats(words):
    return np.ascontiguousarray(words).view(np.float32).reshape(words.shape)


def _bits(numbers):
    """Numbers, rounded to binary32 if they are wider, as raw bits."""
    numbers = np.asarray(numbers)
    words = np.asarray(numbers.astype(np.float32)).view(np.uint32)
    return np.where(np.isnan(numbers), np.uint32(_NAN), words)


def _fused(a, b, c):
    """``a`` · ``b`` + ``c`` as a binary64 that rounds to binary32 as the exact sum does.

    The product of 48 bits is exact in binary64, and so are the sum and its error together. Rounded to odd, the sum of
    53 bits keeps on which side of a tie of 24 bits the exact one is.
    """
    a, b, c = (np.asarray(each, np.float64) for each in (a, b, c))
    product = a * b
    total = product + c
    shadow = total - product
    error = (product - (total - shadow)) + (c - shadow)
    words = np.asarray(total).view(np.int64)
    moved = words + np.where((error > 0) == (total > 0), 1, -1)
    inexact_even = np.isfinite(total) & (error != 0) & (words & 1 == 0)
    return np.where(inexact_even, moved, words).view(np.float64)


def _extreme(a, b, largest):
    """The smaller or larger one, −0 below +0; of a NaN and a number the number."""
    x, y = _floats(a), _floats(b)
    # As integers, floats are ordered like numbers of sign and magnitude.
    first, second = (np.where(words >> 31 == 1, ~words, words | np.uint32(1 << 31)) for words in (a, b))
    takes_a = np.isnan(y) | (~np.isnan(x) & ((first > second) == largest))
    return np.where(np.isnan(x) & np.isnan(y), np.uint32(_NAN), np.where(takes_a, a, b))


def _integers(numbers, rounded, kind):
    """Numbers as integers of a type: rounded, saturated, the largest one for a NaN."""
    limits = np.iinfo(kind)
    # In binary64 all integers of 32 bits are exact.
    whole = rounded(numbers.astype(np.float64))
    whole = np.clip(np.where(np.isnan(whole), limits.max, whole), limits.min, limits.max)
    return whole.astype(np.int64).astype(np.uint32)


def _half(words, part):
    return words >> (np.uint32(16) * part) & np.uint32(0xFFFF)


def _with_half(words, part, half):
    shift = np.uint32(16) * part
    return words & ~(np.uint32(0xFFFF) << shift) | half.astype(np.uint32) << shift


def _f16(words):
    numbers = _floats(words)
    halves = np.asarray(numbers.astype(np.float16)).view(np.uint16)
    return np.where(np.isnan(numbers), np.uint16(_NAN_F16), halves)


def _bf16(words):
    """To nearest even: half of the last place is added, a little less where a tie would round an even number up."""
    nearest = (words.astype(np.uint64) + np.uint64(0x7FFF) + (words >> np.uint32(16) & np.uint32(1))) >> np.uint64(16)
    return np.where(np.isnan(_floats(words)), np.uint16(_NAN_BF16), nearest.astype(np.uint16))
