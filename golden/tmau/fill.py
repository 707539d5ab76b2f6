"""What stands in the place of elements outside the tensor."""

import numpy as np

from ..spec import Fill

__all__ = ["fill_bytes", "fill_pattern"]

#: Every 16-bit half is 0x7FF7: a NaN in all float types of two bytes and more.
NAN_PATTERN = 0x7FF77FF7


def fill_pattern(tmap):
    """The 32-bit pattern, little-endian at every multiple of 4 of the shared-memory address."""
    return {Fill.ZERO: 0, Fill.NAN: NAN_PATTERN, Fill.CONSTANT: tmap.fill_constant}[tmap.fill]


def fill_bytes(tmap, rows, row_bytes):
    """A uint8 array of ``rows`` by ``row_bytes``, a multiple of 16, of nothing but fill."""
    return np.full((rows, row_bytes // 4), fill_pattern(tmap), "<u4").view(np.uint8)
