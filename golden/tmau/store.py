"""A store or reduction: the bytes of a box, or of pixels, from shared memory into global memory.

Specification: docs/tmau.md, "Stores and reductions".
"""

import math

import numpy as np

from ..memory import check_global, check_shared
from ..spec import Reduction
from .calls import refuse_tensor, store_command
from .fill import fill_bytes
from .load import array_memory
from .reduce import reduce
from .tile import walk

__all__ = ["combine", "store", "store_tile"]


def store(tmap, coords, smem, gmem=None, address=0, reduction="none", fill=False):
    """Stores the box of ``tmap`` at ``coords``, or its pixels from there on, and returns the global memory.

    Parameters
    ----------
    tmap : TensorMap
    coords : sequence of int
        Tensor coordinates of the start, innermost first. What lies outside the tensor is dropped.
    smem : uint8 array or None
        Shared memory; None with ``fill``.
    gmem : Memory or None
        Global memory, changed in place. None takes the array that the map was made from, which must be writable.
    address : int
        Source in shared memory, a multiple of 128.
    reduction : Reduction or str
        What becomes of the destination: ``"add"``, ``"min"`` …; the source itself if it is ``"none"``.
    fill : bool
        The source is the fill of the map, not shared memory.

    Returns
    -------
    Memory
        ``gmem``.

    Raises
    ------
    CommandError, TypeError, ValueError, IndexError
        As of ``load``.
    """
    command = store_command(tmap, coords, address, reduction, fill)
    gmem = array_memory(tmap) if gmem is None else gmem
    check_global(gmem)
    if not fill:
        check_shared(smem, written=False)
    refuse_tensor(command, tmap, math.inf if fill else len(smem))
    store_tile(tmap, walk(tmap, coords), gmem, smem, command["smem"], command["reduction"], fill=fill)
    return gmem


def store_tile(tmap, tile, gmem, smem, address, reduction=Reduction.NONE, *, fill=False):
    """Writes the bytes of ``tile`` that lie in the tensor, run after run; those outside ``gmem`` are lost."""
    targets = tile.global_bytes()
    if fill:
        source = fill_bytes(tmap, targets)
    else:
        source = smem[tile.shared_bytes(address, tmap.swizzle)][tile.inside, tile.start : tile.stop]
    combine(gmem, targets, source, reduction, tmap.element)


def combine(gmem, targets, source, reduction, element):
    """Writes or reduces ``source`` into ``gmem`` at ``targets``, arrays of runs by bytes; what lies outside is lost.

    Runs may overlap: they are taken in order.
    """
    held = gmem.holds(targets, 1)
    if reduction == Reduction.NONE:
        gmem.put(targets[held], source[held])  # of equal addresses the last one stays
        return
    elements = held.reshape(len(targets), targets.shape[1] // element.bytes, element.bytes)
    whole = elements.all(axis=2).repeat(element.bytes, axis=1)
    distinct = len(np.unique(targets)) == targets.size
    for runs in [slice(None)] if distinct else range(len(targets)):
        addresses = targets[runs][whole[runs]]
        gmem.put(addresses, reduce(reduction, element, gmem.at(addresses), source[runs][whole[runs]]))
