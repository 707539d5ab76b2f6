"""Bus errors: the addresses in their records, and the bytes that failed transfers leave open.

Specification: docs/tmau.md, "Bus errors".
"""

from typing import NamedTuple

import numpy as np

from tilewright.spec import PAGE_BYTES, Element, Error, Reduction

from ..memory import whole_elements

__all__ = ["BusError", "failed_read", "failed_write", "loaded", "write_global"]


class BusError(NamedTuple):
    """An error record without tag and field. Hardware may report one of ``others`` instead of ``address``."""

    code: Error
    address: int
    others: range = range(0)


def failed_read(gmem, addresses, bus_bytes):
    """The :class:`BusError` of the first of the byte ``addresses``, in this order, outside ``gmem``; or None.

    Its address is the address of the bus word.
    """
    failing = addresses[~gmem.holds(addresses, 1)]
    return BusError(Error.READ, int(failing[0]) & -bus_bytes) if failing.size else None


def failed_write(gmem, addresses, bus_bytes):
    """The same of written bytes. ``others`` are the words of the stretch before the failing one."""
    failing = np.flatnonzero(~gmem.holds(addresses, 1))
    if not failing.size:
        return None
    written = addresses[: failing[0] + 1]
    first, last = (int(written[place]) & -bus_bytes for place in (_stretch_starts(written)[-1], -1))
    return BusError(Error.WRITE, last, range(first, last, bus_bytes))


def loaded(tmap, tile, gmem):
    """Which bytes of a load are open: bools of runs by their bytes; None if none is."""
    if not gmem.open_bytes:
        return None
    marks = np.zeros((len(tile.inside), tile.run_bytes), bool)
    source = gmem.open_bytes.at(gmem.places(tile.global_bytes()))
    marks[tile.inside, tile.start : tile.stop] = (
        whole_elements(source, tmap.element.bytes) if tmap.element == Element.TF32 else source
    )
    return marks


def write_global(gmem, targets, carry_out, marks=None, reduction=Reduction.NONE, element=None):
    """Lets ``carry_out()`` write or reduce at ``targets``, and notes which bytes of ``gmem`` are open afterwards.

    Parameters
    ----------
    gmem : Memory
        Bytes outside are lost.
    targets : uint64 array of runs by bytes
        Addresses, in the order of the walk.
    carry_out : callable
    marks : bool array or None
        Of the same shape: which bytes of the source are open.
    reduction : Reduction
    element : Element or None
        Of a reduction.
    """
    inside = gmem.holds(targets, 1)
    if reduction == Reduction.NONE:
        carry_out()
        gmem.open_bytes.write(gmem.places(targets[inside]), None if marks is None else marks[inside])
        return
    size = element.bytes
    elements = targets.reshape(-1, size)
    whole = inside.reshape(-1, size).all(axis=1)
    in_failing = _in_failing_stretches(targets.ravel(), inside.ravel()).reshape(-1, size).any(axis=1)
    doubtful = elements[whole & in_failing]
    before = gmem.at(doubtful)
    carry_out()
    if gmem.open_bytes or marks is not None:
        sources = np.zeros(elements.shape, bool) if marks is None else marks.reshape(-1, size)
        _combine(gmem, elements[whole], sources[whole], size)
    if len(doubtful):
        first, counts = np.unique(doubtful[:, 0], return_counts=True)
        places, once = gmem.places(doubtful), np.isin(doubtful[:, 0], first[counts == 1])
        gmem.open_bytes.choose(places[once], before[once])
        gmem.open_bytes.spoil(places[~once])


def _combine(gmem, elements, sources, size):
    """Marks reduced elements; an element that is reduced several times is open if any of its sources is."""
    first, inverse = np.unique(elements[:, 0], return_inverse=True)
    marks = np.zeros(len(first), bool)
    np.logical_or.at(marks, inverse, sources.any(axis=1))
    places = gmem.places(first[:, None] + np.arange(size, dtype=np.uint64))
    gmem.open_bytes.write(places, marks[:, None].repeat(size, axis=1), size)


def _in_failing_stretches(addresses, inside):
    """Which bytes, in the order of writing, lie in a stretch with a byte that is not ``inside`` memory."""
    if inside.all():
        return np.zeros(len(inside), bool)
    starts = _stretch_starts(addresses)
    failing = np.logical_or.reduceat(~inside, starts)
    return failing.repeat(np.diff(starts, append=len(inside)))


def _stretch_starts(addresses):
    """Indices where stretches begin in a sequence of byte addresses that is not empty."""
    return np.concatenate([[0], np.flatnonzero((np.diff(addresses) != 1) | (addresses[1:] % PAGE_BYTES == 0)) + 1])
