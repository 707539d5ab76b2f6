"""The walk of a tile: which bytes of global memory it takes, and where its rows lie (tmau.md section 3)."""

import math
import operator
from dataclasses import dataclass

import numpy as np

from .descriptor import unsupported
from .tensor_map import DescriptorError

__all__ = ["Tile", "counts", "footprint", "pitch", "row_bytes", "tx_bytes", "walk"]


def counts(tmap):
    """Elements that a command takes in each dimension: ceil(box / traversal). Traversal of dimension 0 is ignored."""
    return (tmap.box[0], *(-(-box // step) for box, step in zip(tmap.box[1:], tmap.traversal[1:], strict=True)))


def row_bytes(tmap):
    """Bytes of a row (dimension 0) of the box."""
    return tmap.box[0] * tmap.element.bytes


def pitch(tmap):
    """Bytes from row to row in shared memory."""
    return max(row_bytes(tmap), tmap.swizzle.span)


def footprint(tmap):
    """Bytes of shared memory from the first row to the end of the last one's pitch."""
    return math.prod(counts(tmap)[1:]) * pitch(tmap)


def tx_bytes(tmap):
    """Bytes that a transfer counts on its barrier: fill included, gaps not."""
    return math.prod(counts(tmap)) * tmap.element.bytes


@dataclass(frozen=True)
class Tile:
    """One box, row by row in the order in which it is laid down.

    Attributes
    ----------
    inside : bool array
        Whether a row has bytes in the tensor.
    addresses : uint64 array
        Global address of the first byte of each row that lies in the tensor; meaningless where not ``inside``.
    start, stop : int
        The bytes of every inside row that lie in the tensor.
    row_bytes, pitch : int
        Bytes of a row, and from row to row in shared memory.
    """

    inside: np.ndarray
    addresses: np.ndarray
    start: int
    stop: int
    row_bytes: int
    pitch: int


def walk(tmap, coords, addr_width=64):
    """The :class:`Tile` of ``tmap`` at ``coords`` (innermost first). Addresses wrap modulo 2^addr_width.

    DescriptorError with code UNSUPPORTED for what is not built yet.
    """
    for violation in unsupported(tmap):
        raise DescriptorError(*violation)
    if len(coords) != tmap.rank:
        raise ValueError(f"coords must have {tmap.rank} entries for rank {tmap.rank}, not {len(coords)}")
    coords = [operator.index(coord) for coord in coords]
    for coord in coords:
        if not -(1 << 31) <= coord < 1 << 31:
            raise ValueError(f"coords must be -2^31 to 2^31 - 1, not {coord}")

    e = tmap.element.bytes
    # The part of dimension 0 that is inside is one interval, because its step is 1.
    first = min(max(-coords[0], 0), tmap.box[0])
    last = min(max(tmap.size[0] - coords[0], first), tmap.box[0])

    inside = np.full(1, last > first)
    addresses = np.full(1, tmap.address + max(coords[0], 0) * e & (1 << 64) - 1, np.uint64)
    for d, count in enumerate(counts(tmap)[1:], 1):
        x = coords[d] + np.arange(count) * tmap.traversal[d]
        # uint64 wraps, also for coordinates outside the tensor, whose addresses nobody uses.
        offsets = x.astype(np.uint64) * np.uint64(tmap.stride[d - 1])
        addresses = (offsets[:, None] + addresses).ravel()
        inside = ((x >= 0) & (x < tmap.size[d]))[:, None] & inside
        inside = inside.ravel()
    if addr_width < 64:
        addresses &= np.uint64((1 << addr_width) - 1)
    return Tile(inside, addresses, first * e, last * e, row_bytes(tmap), pitch(tmap))
