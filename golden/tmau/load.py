"""A load: the bytes of a box, or of the pixels of a convolution, in shared memory.

Specification: docs/tmau.md, "Tile mode" to "Fill and rounding".
"""

import numpy as np

from ..memory import Memory, memory_bytes
from ..numeric import round_tf32
from ..spec import Element
from .fill import fill_bytes
from .tile import footprint, walk

__all__ = ["array_memory", "check_shared", "load", "load_tile"]


def load(tmap, coords, gmem=None, smem=None, address=0, offsets=(0, 0, 0)):
    """Loads the box of ``tmap`` at ``coords``, or its pixels from there on, and returns the shared memory.

    Parameters
    ----------
    tmap : TensorMap
    coords : sequence of int
        Tensor coordinates of the start, innermost first. A box may lie outside the tensor.
    gmem : Memory or None
        Global memory. None takes the array that the map was made from.
    smem : uint8 array or None
        Shared memory, changed in place: only bytes of elements are written. None makes one of zeros that ends with the
        last row.
    address : int
        Destination in shared memory, a multiple of 128.
    offsets : sequence of int
        Of the filter tap, W H D; im2col only.

    Returns
    -------
    uint8 array
        ``smem``, one-dimensional.
    """
    gmem = array_memory(tmap) if gmem is None else gmem
    if smem is None:
        smem = np.zeros(max(address, 0) + footprint(tmap), np.uint8)
    check_shared(tmap, smem, address)
    load_tile(tmap, walk(tmap, coords, offsets=offsets), gmem, smem, address)
    return smem


def load_tile(tmap, tile, gmem, smem, address):
    """Writes the bytes of ``tile`` into ``smem``, fill included."""
    rows = fill_bytes(tmap, tile.linear_bytes(address))
    data = gmem.at(tile.global_bytes())
    if tmap.element == Element.TF32:
        data = round_tf32(data.view("<u4")).astype("<u4").view(np.uint8)
    rows[tile.inside, tile.start : tile.stop] = data
    smem[tile.shared_bytes(address, tmap.swizzle)] = rows


def array_memory(tmap):
    """Global memory that is nothing but the array that the map was made from, which must be there."""
    if tmap.array is None:
        raise ValueError("gmem must be given for a map that was not made from an array, not None")
    return Memory(memory_bytes(tmap.array), "the array", base=tmap.address)


def check_shared(tmap, smem, address):
    """Raises unless a transfer of ``tmap`` fits ``smem`` at ``address``."""
    if address < 0 or address % 128:
        raise ValueError(f"address must be a multiple of 128, not {address}")
    if not isinstance(smem, np.ndarray) or smem.dtype != np.uint8 or smem.ndim != 1 or not smem.flags.c_contiguous:
        raise TypeError(f"smem must be a contiguous one-dimensional uint8 array, not {smem!r}")
    end = address + footprint(tmap)
    if end > len(smem):
        raise ValueError(f"address {address} puts the end of the box at {end}, past the {len(smem)} bytes of smem")
