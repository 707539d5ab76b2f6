"""A load: the bytes of a box, or of the pixels of a convolution, in shared memory.

Specification: docs/tmau.md, "Tile mode" to "Fill and rounding".
"""

import math

import numpy as np

from ..memory import Memory, check_global, check_shared, memory_bytes
from ..numeric import round_tf32
from ..spec import Element
from .calls import load_command, prefetch_command, refuse_tensor
from .fill import fill_bytes
from .tile import footprint, walk

__all__ = ["array_memory", "load", "load_tile", "prefetch"]


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

    Raises
    ------
    CommandError
        If hardware would refuse the command, which is a ValueError with its error record.
    TypeError, ValueError
        If an argument is of the wrong kind, or no command could hold it.
    IndexError
        If ``gmem`` does not hold what is read.
    """
    command = load_command(tmap, coords, address, offsets)
    gmem = array_memory(tmap) if gmem is None else gmem
    check_global(gmem)
    if smem is None:
        refuse_tensor(command, tmap, math.inf)
        smem = np.zeros(command["smem"] + footprint(tmap), np.uint8)
    check_shared(smem)
    refuse_tensor(command, tmap, len(smem))
    load_tile(tmap, walk(tmap, coords, offsets=command["offsets"]), gmem, command["smem"], smem)
    return smem


def prefetch(tmap, coords, offsets=(0, 0, 0)):
    """Checks a load as a PREFETCH does, and moves nothing; arguments and errors are those of :func:`load`."""
    refuse_tensor(prefetch_command(tmap, coords, offsets), tmap, math.inf)


def load_tile(tmap, tile, gmem, address, smem):
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
