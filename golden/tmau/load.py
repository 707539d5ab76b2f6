"""A tile-mode load: the bytes of a box in shared memory (tmau.md sections 3 and 5)."""

import numpy as np

from ..memory import Memory, memory_bytes
from ..numeric import round_tf32
from ..spec import Element
from .fill import fill_bytes
from .swizzle import swizzle
from .tile import footprint, walk

__all__ = ["load", "tile_bytes", "write_rows"]


def load(tmap, coords, gmem=None, smem=None, address=0):
    """Loads the box of ``tmap`` at ``coords`` into shared memory and returns the shared memory.

    Parameters
    ----------
    tmap : TensorMap
    coords : sequence of int
        Tensor coordinates of the box, innermost first; may lie outside the tensor.
    gmem : Memory or None
        Global memory. None takes the array that the map was made from.
    smem : uint8 array or None
        Shared memory, changed in place: only bytes of elements are written. None makes one of zeros that ends with the
        last row.
    address : int
        Destination in shared memory, a multiple of 128.

    Returns
    -------
    uint8 array
        ``smem``, one-dimensional.
    """
    if gmem is None:
        if tmap.array is None:
            raise ValueError("gmem must be given for a map that was not made from an array, not None")
        gmem = Memory(memory_bytes(tmap.array), "the array", base=tmap.address)
    if address < 0 or address % 128:
        raise ValueError(f"address must be a multiple of 128, not {address}")
    end = address + footprint(tmap)
    if smem is None:
        smem = np.zeros(end, np.uint8)
    elif not isinstance(smem, np.ndarray) or smem.dtype != np.uint8 or smem.ndim != 1 or not smem.flags.c_contiguous:
        raise TypeError(f"smem must be a contiguous one-dimensional uint8 array, not {smem!r}")
    if end > len(smem):
        raise ValueError(f"address {address} puts the end of the box at {end}, past the {len(smem)} bytes of smem")
    tile = walk(tmap, coords)
    write_rows(smem, tile_bytes(tmap, tile, gmem), address, tile.pitch, tmap.swizzle)
    return smem


def tile_bytes(tmap, tile, gmem):
    """The rows of ``tile`` as a uint8 array, rows by row bytes, fill included, not swizzled."""
    rows = fill_bytes(tmap, len(tile.inside), tile.row_bytes)
    if tile.inside.any():
        data = gmem.gather(tile.addresses[tile.inside], tile.stop - tile.start)
        if tmap.element == Element.TF32:
            data = round_tf32(data.view("<u4")).astype("<u4").view(np.uint8)
        rows[tile.inside, tile.start : tile.stop] = data
    return rows


def write_rows(smem, rows, address, pitch, mode):
    """Writes ``rows`` (a multiple of 16 bytes each) into ``smem`` from ``address`` on, ``pitch`` apart, swizzled."""
    chunks = np.arange(0, rows.shape[1], 16)
    targets = swizzle(address + pitch * np.arange(len(rows))[:, None] + chunks, mode)
    whole = len(smem) // 16 * 16  # no chunk lies in a ragged end
    smem[:whole].reshape(-1, 16)[targets // 16] = rows.reshape(len(rows), -1, 16)
