"""What stands in the place of elements outside the tensor."""

import numpy as np

from ..spec import NAN_FILL, Fill

__all__ = ["fill_bytes", "fill_pattern"]


def fill_pattern(tmap):
    """The 32-bit pattern, little-endian at every multiple of 4."""
    return {Fill.ZERO: 0, Fill.NAN: NAN_FILL, Fill.CONSTANT: tmap.fill_constant}[tmap.fill]


def fill_bytes(tmap, addresses):
    """The fill at each of ``addresses``, as a uint8 array of the same shape."""
    pattern = np.array([fill_pattern(tmap)], "<u4").view(np.uint8)
    return pattern[np.asarray(addresses) % 4]
