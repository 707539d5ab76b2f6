"""Which step has to follow which: from the bytes that they touch (docs/network.md, "The program")."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from ..lower.places import BLOCK
from .steps import Jobs, Load

__all__ = ["Fence", "Streams", "streams_of"]

_NONE = -1


@dataclass(eq=False)
class Fence:
    """A load of nothing that lands when the sources of a store have been read."""

    store: int
    layer: int = 0


@dataclass(frozen=True, eq=False)
class Streams:
    """Steps by what carries them out, each list in its order, and on which others each waits: numbers in the lists.

    Attributes
    ----------
    loads : list of (Load or Fence, jobs, weights, read, written)
        Jobs that have touched the destination, those that have read weights there and tell of it, the store that reads
        it, the store that wrote the source; -1: none.
    jobs : list of (Jobs, loads)
        The last load that must have landed.
    stores : list of (Store, jobs, loads)
    """

    loads: list
    jobs: list
    stores: list


class _Touched:
    """The last step of a kind that touched each block of a memory."""

    def __init__(self, size):
        self._last = np.full(-(-size // BLOCK), _NONE, np.int32)

    def last(self, places):
        """The last step that touched any of ``places``, each a slice or an array of numbers of blocks."""
        return max((int(self._last[place].max()) for place in places), default=_NONE)

    def touch(self, places, number):
        """Step ``number`` touches ``places``."""
        for place in places:
            self._last[place] = number


def streams_of(steps, smem_bytes, gmem_bytes):
    """The :class:`Streams` of steps that are right when they are carried out one after the other."""
    landed, used, held, made, left = (_Touched(smem_bytes) for _ in range(5))
    fetched, written = (_Touched(gmem_bytes) for _ in range(2))
    loads, jobs, stores, fences = [], [], [], []
    for step in steps:
        if isinstance(step, Load):
            sources, targets = _far(step), _near((each.near, each.near + each.size) for each in step.transfers)
            jobs_there = max(used.last(targets), made.last(targets))
            loads.append((step, jobs_there, held.last(targets), left.last(targets), written.last(sources)))
            landed.touch(targets, len(loads) - 1)
            fetched.touch(sources, len(loads) - 1)
        elif isinstance(step, Jobs):
            reads, weights, writes = _near(step.reads), _near(step.weights), _near(step.writes)
            leaving = left.last(writes)
            needed = landed.last(reads + weights + writes)
            if leaving > _NONE:
                needed = max(needed, _fence(leaving, loads, fences, step.layer))
            jobs.append((step, needed))
            used.touch(reads, len(jobs) - 1)
            (held if step.early else used).touch(weights, len(jobs) - 1)
            made.touch(writes, len(jobs) - 1)
        else:
            sources, targets = _near((each.near, each.near + each.size) for each in step.transfers), _far(step)
            stores.append((step, made.last(sources), max(landed.last(sources), fetched.last(targets))))
            left.touch(sources, len(stores) - 1)
            written.touch(targets, len(stores) - 1)
    return Streams(loads, jobs, stores)


def _near(spans):
    """Blocks of shared memory of spans, each the first byte and the one behind the last."""
    return [slice(first // BLOCK, -(-end // BLOCK)) for first, end in spans]


def _far(step):
    """Blocks of global memory of a load or a store."""
    return [transfer.blocks for transfer in step.transfers]


def _fence(store, loads, fences, layer):
    """The first fence behind ``store``, as the number of a load; a new one where there is none."""
    place = bisect_left(fences, store, key=lambda fence: fence[0])
    if place == len(fences):
        loads.append((Fence(store, layer), _NONE, _NONE, store, _NONE))
        fences.append((store, len(loads) - 1))
    return fences[place][1]
