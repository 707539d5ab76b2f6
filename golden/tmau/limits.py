"""Lower bounds of the cost of a transfer: bus words, rows, and lines of shared memory.

Specification: docs/tmau.md, "Memory side".
"""

from dataclasses import dataclass

import numpy as np

from tilewright.spec import COMMAND, LINE_BYTES

from ..arguments import integer, power_of_two
from .tile import walk
from .transfer import legal_offsets

__all__ = ["Limits", "limits"]

_ADDRESSES = COMMAND["smem"].range[1]


@dataclass(frozen=True)
class Limits:
    """Lower bounds of one transfer; each is also a number of cycles.

    Attributes
    ----------
    words : int
        Distinct bus words with a needed byte: each must cross the bus once.
    rows : int
        Rows of the box with bytes in the tensor: requests of an engine that reads row by row. If dimension 0 is
        gathered, every element or slice is a row.
    lines : int
        Written lines of shared memory.
    fill_lines : int
        Written lines without a byte of the tensor.
    """

    words: int
    rows: int
    lines: int
    fill_lines: int


def limits(tmap, coords, bus_bytes, address=0, addr_width=64, offsets=(0, 0, 0)):
    """The :class:`Limits` of a load of ``tmap`` at ``coords`` to shared-memory ``address``, with this bus width.

    A store has the same ``words``.
    """
    bus_bytes, address = power_of_two("bus_bytes", bus_bytes), integer("address", address, 0, _ADDRESSES)
    addr_width = integer("addr_width", addr_width, 1, 64)
    tile = walk(tmap, coords, addr_width, legal_offsets(tmap, offsets))
    starts = address + tile.places
    lines = _spans(starts, tile.run_bytes, LINE_BYTES)
    data_lines = _spans(starts[tile.inside] + tile.start, tile.stop - tile.start, LINE_BYTES)
    words = _spans(tile.addresses[tile.inside], tile.stop - tile.start, bus_bytes)
    return Limits(len(words), int(tile.inside.sum()), len(lines), len(lines) - len(data_lines))


def _spans(starts, count, unit):
    """Sorted numbers of the distinct blocks of ``unit`` bytes with one of ``count`` bytes from each of ``starts``."""
    if not len(starts) or not count:
        return np.zeros(0, np.uint64)
    starts = starts.astype(np.uint64)
    shift = np.uint64(unit.bit_length() - 1)
    first, last = starts >> shift, (starts + np.uint64(count - 1)) >> shift
    blocks = first[:, None] + np.arange(int((last - first).max()) + 1, dtype=np.uint64)
    return np.unique(blocks[blocks <= last[:, None]])
