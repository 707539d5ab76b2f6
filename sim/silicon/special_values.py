"""Numbers at which arithmetic goes wrong first, of every type that a reduction or a rounding load takes."""

from tilewright.golden.spec import Element

__all__ = ["special_values"]

_FLOATS = {Element.F16: (5, 10), Element.BF16: (8, 7), Element.F32: (8, 23)}  # bits of exponent and mantissa

#: Of the 13 bits that tf32 drops: a tie, beside an even and an odd last place, and its neighbours.
_TF32_TAILS = (0x1000, 0x3000, 0x0FFF, 0x1001)


def special_values(element):
    """Raw bits of some twenty numbers: zeros, subnormal numbers, ties, largest numbers, infinities, NaNs."""
    if element == Element.TF32:
        return [*_float_values(8, 23), *(base | tail for base in (0, 0x3F800000, 0x7F7FC000) for tail in _TF32_TAILS)]
    if element in _FLOATS:
        return _float_values(*_FLOATS[element])
    bits = 8 * element.bytes
    top, every = 1 << bits - 1, (1 << bits) - 1
    return [0, 1, 2, 3, top - 1, top, top + 1, every - 1, every, every // 3, every // 5]


def _float_values(exponent_bits, mantissa_bits):
    sign, last = 1 << exponent_bits + mantissa_bits, 1 << mantissa_bits
    infinity = sign - last
    one = infinity // 2 // last * last
    half_place = one - last * (mantissa_bits + 1)  # of one
    even_place = one + last * mantissa_bits  # above it, a half is half of the last place
    positive = [0, 1, last - 1, last, last + 1, half_place, one - last, one, one + 1, one + 2, even_place,
                even_place + 1, infinity - last - 1, infinity - 1, infinity]  # fmt: skip
    quiet = infinity | last >> 1
    return [*positive, *(sign | value for value in positive), infinity | 1, quiet, quiet | 5, sign | quiet | 3]
