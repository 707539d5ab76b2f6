"""Reductions, element by element and bit by bit: what a destination becomes (docs/tmau.md, "Stores and reductions")."""

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

#: Float types -> exponent bits, mantissa bits, whether sums have subnormal numbers.
_FLOATS = {Element.F16: (5, 10, True), Element.BF16: (8, 7, True), Element.F32: (8, 23, False)}

_SIGNED = {Element.S32, Element.S64}

#: Bits below the last place of a sum's larger operand. Enough to shift the smaller one without a loss wherever a
#: difference may cancel leading bits, and few enough for 24 bits and a carry above them to fit a float64.
_EXTRA = 27

_HALF_NAN = 0x7FFF  # of a minimum or maximum of two NaNs


def is_legal(op, element):
    """Whether the reduction ``op`` is defined for elements of type ``element``; NONE is not a reduction."""
    return element in _LEGAL.get(op, ())


def reduce(op, element, old, source):
    """What the destination ``old`` becomes.

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
        If the operation is not defined for the element type, or the shapes are not as they must be.
    """
    if not is_legal(op, element):
        raise ValueError(f"{Reduction(op).name} is not defined for {Element(element).name}")
    old, source = (np.ascontiguousarray(operand, np.uint8) for operand in (old, source))
    if old.shape != source.shape:
        raise ValueError(f"old and source must have one shape, not {old.shape} and {source.shape}")
    if not old.ndim or old.shape[-1] % element.bytes:
        raise ValueError(f"the last axis must hold whole elements of {element.bytes} bytes, not shape {old.shape}")

    words = np.dtype(f"<u{element.bytes}")
    old_words, source_words = old.view(words), source.view(words)
    if op == Reduction.ADD and element in _FLOATS:
        new = _float_add(old_words, source_words, *_FLOATS[element])
    elif element in _FLOATS:
        new = _float_choice(op, old_words, source_words, _FLOATS[element])
    else:
        new = _integer(op, old_words, source_words, element in _SIGNED)
    return new.astype(words).view(np.uint8)


def _integer(op, old, source, signed):
    """All operations on integers; sums wrap."""
    if op in (Reduction.MIN, Reduction.MAX) and signed:
        old, source = (words.view(f"<i{words.itemsize}") for words in (old, source))
    one = old.dtype.type(1)
    match op:
        case Reduction.ADD:
            return old + source
        case Reduction.MIN:
            return np.minimum(old, source)
        case Reduction.MAX:
            return np.maximum(old, source)
        case Reduction.INC:
            return np.where(old >= source, 0, old + one)
        case Reduction.DEC:
            return np.where((old == 0) | (old > source), source, old - one)
        case Reduction.AND:
            return old & source
        case Reduction.OR:
            return old | source
        case Reduction.XOR:
            return old ^ source


def _float_choice(op, old, source, kind):
    """The smaller or larger of two 16-bit floats; a NaN is neither, and -0 is smaller than +0."""
    exponent, mantissa, _ = kind
    infinity = (1 << exponent) - 1 << mantissa

    def order(words):
        """Integers in the order of the numbers: magnitudes count up from +0 and down from -0, which is -1."""
        magnitude = (words & 0x7FFF).astype(np.int32)
        return np.where(words >> 15, ~magnitude, magnitude)

    smaller = order(old) < order(source)
    chosen = np.where(smaller == (op == Reduction.MIN), old, source)
    old_nan, source_nan = ((words & 0x7FFF) > infinity for words in (old, source))
    chosen = np.where(old_nan, source, np.where(source_nan, old, chosen))
    return np.where(old_nan & source_nan, _HALF_NAN, chosen)


def _float_add(old, source, exponent_bits, mantissa_bits, subnormal):
    """The sum, rounded once to nearest even, in integers alone.

    Both numbers become multiples of 2^-_EXTRA of the last place of the larger exponent; what of the smaller number is
    below that sets its last bit, which is far below where the sum is rounded.
    """
    top = (1 << exponent_bits) - 1
    infinity = top << mantissa_bits
    sign_bit = infinity + (1 << mantissa_bits)
    old, source = old.astype(np.int64), source.astype(np.int64)

    def parts(words):
        """Exponent as of the smallest normal number for subnormals, and significand, flushed where sums are."""
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
    dropped = np.maximum(field - exponent + _EXTRA, 1)  # never less, but for zero
    kept, rest, half = size >> dropped, size & (1 << dropped) - 1, 1 << dropped - 1
    kept += (rest > half) | ((rest == half) & (kept & 1 == 1))
    # The hidden one counts the exponent up, and so does a carry out of the mantissa.
    number = np.minimum((field - 1 << mantissa_bits) + kept, infinity)
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
