"""Number formats on raw bits."""

import numpy as np

__all__ = ["round_tf32"]

_DROPPED = 13  # mantissa bits of float32 that tf32 does not have
_EXPONENT = np.uint32(0x7F800000)
_MANTISSA = np.uint32(0x007FFFFF)
_NAN = np.uint32(0x7FFFE000)


def round_tf32(bits):
    """float32 ``bits`` (uint32) rounded to nearest even to ten mantissa bits; every NaN becomes 0x7FFFE000.

    A carry out of the mantissa goes into the exponent, so the largest finite numbers become infinite. Infinities stay.
    """
    bits = np.asarray(bits, np.uint32)
    special = (bits & _EXPONENT) == _EXPONENT
    odd = bits >> np.uint32(_DROPPED) & np.uint32(1)
    # No finite number overflows 32 bits here: the largest sum is 0xFF7FFFFF + 0x1000.
    rounded = (np.where(special, 0, bits) + np.uint32((1 << _DROPPED - 1) - 1) + odd) & np.uint32(
        -1 << _DROPPED & 0xFFFFFFFF
    )
    return np.where(special, np.where(bits & _MANTISSA, _NAN, bits), rounded).astype(np.uint32)
