"""Reductions, element by element and bit by bit: the new value of a destination.

Specification: docs/tmau.md, "Stores and reductions".
"""

from functools import partial

import numpy as np

from tilewright.spec import Element, Reduction

__all__ = ["is_legal", "reduce"]

_WORDS = {Element.U32, Element.S32, Element.U64, Element.S64}
_HALVES = {Element.F16, Element.BF16}

#: Element types of each operation.
_LEGAL = {
    Reduction.ADD: _HALVES | {Element.U32, Element.S32, Element.U64, Element.F32},
    Reduction.MIN: _HALVES | _WORDS,
    Reduction.MAX: _HALVES | _WORDS,
    Reduction.INC: {Element.U32},
    Reduction.DEC: {Element.U32},
    Reduction.AND: _WORDS,
    Reduction.OR: _WORDS,
    Reduction.XOR: _WORDS,
}

#: Operations on integers, of the old value and the source; sums wrap.
_INTEGER = {
    Reduction.ADD: np.add,
    Reduction.MIN: np.minimum,
    Reduction.MAX: np.maximum,
    Reduction.INC: lambda old, source: np.where(old >= source, 0, old + 1),
    Reduction.DEC: lambda old, source: np.where((old == 0) | (old > source), source, old - 1),
    Reduction.AND: np.bitwise_and,
    Reduction.OR: np.bitwise_or,
    Reduction.XOR: np.bitwise_xor,
}

#: Float types -> exponent bits, mantissa bits, whether sums have subnormal numbers.
_FLOATS = {Element.F16: (5, 10, True), Element.BF16: (8, 7, True), Element.F32: (8, 23, False)}

#: Bits below the last place of a sum's larger operand: enough to shift the smaller operand without loss wherever a
#: difference may cancel leading bits, and few enough that 24 bits and a carry above them fit a float64.
_EXTRA = 27

_HALF_NAN = 0x7FFF  # minimum or maximum of two NaNs


def is_legal(op, element):
    """Whether the reduction ``op`` is defined for elements of type ``element``; NONE is not a reduction."""
    return element in _LEGAL.get(op, ())


def reduce(op, element, old, source):
    """The new value of the destination ``old``.

    Parameters
    ----------
    op : Reduction
    element : Element
    old, source : array of uint8
        Of one shape; the last axis holds whole elements.

    Returns
    -------
    array of uint8
        A new one, of the same shape.

    Raises
    ------
    ValueError
        If the operation is not defined for the element type, or the shapes are wrong.
    """
    if not is_legal(op, element):
        raise ValueError(f"{Reduction(op).name} is not defined for {Element(element).name}")
    old, source = (np.ascontiguousarray(operand, np.uint8) for operand in (old, source))
    if old.shape != source.shape:
        raise ValueError(f"old and source must have one shape, not {old.shape} and {source.shape}")
    if not old.ndim or old.shape[-1] % element.bytes:
        raise ValueError(f"the last axis must hold whole elements of {element.bytes} bytes, not shape {old.shape}")

    words = np.dtype(f"<u{element.bytes}")
    if element in _FLOATS:
        operation = _float_add if op == Reduction.ADD else partial(_float_choice, op)
        new = operation(old.view(words), source.view(words), *_FLOATS[element])
    else:
        signed = element in (Element.S32, Element.S64) and op in (Reduction.MIN, Reduction.MAX)
        numbers = np.dtype(f"<i{element.bytes}") if signed else words
        new = _INTEGER[op](old.view(numbers), source.view(numbers))
    return new.astype(words).view(np.uint8)


def _float_choice(op, old, source, exponent_bits, mantissa_bits, _):
    """The smaller or larger of two 16-bit floats; of a number and a NaN the number, and -0 is smaller than +0."""
    infinity = (1 << exponent_bits) - 1 << mantissa_bits

    def order(words):
        """Integers in the order of the numbers: magnitudes count up from +0 and down from -0, which is -1."""
        magnitude = (words & 0x7FFF).astype(np.int32)
        return np.where(words >> 15, ~magnitude, magnitude)

    chosen = np.where((order(old) < order(source)) == (op == Reduction.MIN), old, source)
    old_nan, source_nan = ((words & 0x7FFF) > infinity for words in (old, source))
    chosen = np.where(old_nan, source, np.where(source_nan, old, chosen))
    return np.where(old_nan & source_nan, _HALF_NAN, chosen)


def _float_add(old, source, exponent_bits, mantissa_bits, subnormal):
    """The sum, rounded once to nearest even, in integers alone.

    Both numbers become multiples of 2^-_EXTRA of the last place of the larger exponent; lower bits of the smaller
    number set its last bit, which is far below the rounding position of the sum.
    """
    top = (1 << exponent_bits) - 1
    infinity = top << mantissa_bits
    sign_bit = infinity + (1 << mantissa_bits)
    old, source = old.astype(np.int64), source.astype(np.int64)

    def parts(words):
        """Exponent, for subnormals that of the smallest normal number, and significand, flushed where sums are."""
        exponent, mantissa = words >> mantissa_bits & top, words & (1 << mantissa_bits) - 1
        hidden = exponent != 0
        significand = mantissa + (hidden.astype(np.int64) << mantissa_bits)
        return np.maximum(exponent, 1), significand * (hidden | subnormal)

    (old_exponent, old_significand), (source_exponent, source_significand) = parts(old), parts(source)
    exponent = np.maximum(old_exponent, source_exponent)

    def aligned(words, own_exponent, significand):
        wide, distance = significand << _EXTRA, np.minimum(exponent - own_exponent, 62)
        shifted = wide >> distance
        shifted |= (shifted << distance) != wide
        return np.where(words & sign_bit, -shifted, shifted)

    total = aligned(old, old_exponent, old_significand) + aligned(source, source_exponent, source_significand)
    size = np.abs(total)

    length = np.frexp(size.astype(np.float64))[1]  # of the number in bits: exact, as it fits a float64
    leading = exponent + length - 1 - (mantissa_bits + _EXTRA)  # exponent of the leading one
    field = np.where(total == 0, 1, np.maximum(leading, 1))
    dropped = np.maximum(field - exponent + _EXTRA, 1)  # never less, except for zero
    mantissa, rest, half = size >> dropped, size & (1 << dropped) - 1, 1 << dropped - 1
    mantissa += (rest > half) | ((rest == half) & (mantissa & 1 == 1))
    # The hidden one, and a carry out of the mantissa, increment the exponent.
    number = np.minimum((field - 1 << mantissa_bits) + mantissa, infinity)
    if not subnormal:
        number = np.where(number >> mantissa_bits, number, 0)
    negative = np.where(total == 0, old & source & sign_bit != 0, total < 0)
    number |= np.where(negative, sign_bit, 0)

    old_size, source_size = old & ~sign_bit, source & ~sign_bit
    both_infinite = (old_size == infinity) & (source_size == infinity)
    nan = (old_size > infinity) | (source_size > infinity) | (both_infinite & (old != source))
    infinite = np.where(old_size == infinity, old, source)
    number = np.where((old_size == infinity) | (source_size == infinity), infinite, number)
    return np.where(nan, sign_bit - 1, number)
