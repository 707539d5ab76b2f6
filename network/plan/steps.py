"""Steps of a program as data: loads, jobs, calls and stores, with all addresses; and which wait for which.

Steps wait for each other because of the bytes that they touch (docs/network.md, "The program").
"""

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tilewright.spec.conv import ConvOperation

from ..lower.places import BLOCK, Cut

__all__ = [
    "Call", "Cast", "Code", "Fence", "Jobs", "Load", "Map", "Meet", "Segment", "Store", "Streams", "Touched",
    "Transfer", "block", "cast_of", "far_blocks", "order_of", "streams_of",
]  # fmt: skip

_NONE = -1


class Map(NamedTuple):
    """A tensor map: the box of ``rows`` rows of a :class:`Cut` of a tensor at an address of global memory."""

    place: Cut
    rows: int
    address: int

    @property
    def shared(self):
        """The map with the same descriptor for all channels and columns: coordinates choose them.

        With gaps each has its own, because what lies behind its channels must be outside.
        """
        return self if self.place.gap else self._replace(place=replace(self.place, first_channel=0, first_column=0))


class Transfer(NamedTuple):
    """Bytes between both memories: a block, or a box of a tensor.

    Attributes
    ----------
    near : int
        Address in shared memory, where the bytes are contiguous.
    size : int
        Bytes of shared memory.
    far : int
        First byte in global memory: of a block, or of the image that a box is part of.
    map : Map or None
        None of a block.
    coords : tuple of int
        Coordinates of a box.
    """

    near: int
    size: int
    far: int
    map: Map | None = None
    coords: tuple = ()

    @property
    def blocks(self):
        """Blocks of 16 bytes of global memory that it touches: a slice or an array of numbers."""
        if not self.map:
            return slice(self.far // BLOCK, -(-(self.far + self.size) // BLOCK))
        cut, base = self.map.place, self.map.place.base
        first_column, first_row = self.coords[-3:-1]
        rows = np.arange(first_row, base.height)[:: cut.step[0]][: self.map.rows] * base.row_pitch
        columns = (first_column + np.arange(cut.width) * cut.step[1]) * base.channels
        first = (self.far + rows[:, None] + columns + cut.first_channel).ravel()
        blocks = first[:, None] // BLOCK + np.arange(-(-cut.channels // BLOCK) + 1)
        return np.unique(np.minimum(blocks, (first[:, None] + cut.channels - 1) // BLOCK))


def block(far, near, size):
    """A :class:`Transfer` of a block."""
    return Transfer(near, size, far)


class Cast(NamedTuple):
    """A load that a group of cores has in common: the first of them brings the bytes to all of them.

    Attributes
    ----------
    number : int
        Of all multicasts.
    cores : tuple of int
    group : int
    turn : int
        How many multicasts of the group come before.
    """

    number: int
    cores: tuple
    group: int
    turn: int

    @property
    def mask(self):
        """The cores as a mask."""
        return sum(1 << core for core in self.cores)


@dataclass(eq=False)
class Load:
    """Transfers from global to shared memory that are waited for together.

    Attributes
    ----------
    transfers : list
    layer : int
    met : int
        The meeting of all cores that comes before; -1 for none.
    cast : Cast or None
        None: the core loads the bytes for itself alone.
    """

    transfers: list
    layer: int = 0
    met: int = _NONE
    cast: Cast | None = None


@dataclass(eq=False)
class Jobs:
    """Jobs of the convolution engine in order, each a dict of fields.

    Attributes
    ----------
    jobs : list of dict
    reads, writes, weights : list of (int, int)
        Bytes of shared memory: the first one and the end. ``weights`` are read until ``held`` cycles have passed.
    cycles, held : int
        Expected.
    layer : int
    """

    jobs: list
    reads: list
    writes: list
    cycles: int = 0
    layer: int = 0
    weights: list = field(default_factory=list)
    held: int = 0

    @property
    def early(self):
        """Whether the last job can signal that weights have been read."""
        return self.jobs[-1]["operation"] == ConvOperation.CONVOLUTION


class Segment(NamedTuple):
    """A tensor in shared memory as kernels address it.

    Attributes
    ----------
    element : str
    size : tuple of int
        Elements of each dimension, innermost first.
    pages : tuple of int
        Addresses of its pages.
    page_log2 : tuple of int
        Log2 of the elements of a page in each dimension.
    swizzled : bool
    """

    element: str
    size: tuple
    pages: tuple
    page_log2: tuple
    swizzled: bool = False


class Code(NamedTuple):
    """A kernel, and where the instructions are that load it.

    Attributes
    ----------
    load : (int, int)
        Global address of the instructions that load it, and how many there are.
    load_table : (int, int) or None
        The same for its lookup memory.
    index : int
        Where it begins in instruction memory.
    words, lookup : tuple of int
        Its instructions; entries of the lookup memory.
    """

    load: tuple
    load_table: tuple | None
    index: int
    words: tuple
    lookup: tuple


@dataclass(eq=False)
class Call:
    """A call of a kernel of the processing engine.

    Attributes
    ----------
    code : Code
    arguments : tuple
        Numbers, and instances of Segment.
    reads, writes : list of (int, int)
        Bytes of shared memory: the first one and the end. They have all been loaded since they were last used.
    cycles : int
        Expected.
    layer : int
    entry : int
        Index in instruction memory.
    registers : int
        How many a thread loads and stores.
    """

    code: Code
    arguments: tuple
    reads: list
    writes: list
    cycles: int = 0
    layer: int = 0
    entry: int = 0
    registers: int = 0


@dataclass(eq=False)
class Store:
    """Transfers from shared to global memory. ``met`` is the meeting of all cores that comes before, or -1."""

    transfers: list
    layer: int = 0
    met: int = _NONE


@dataclass(eq=False)
class Meet:
    """The core tells all cores that it has done all layers up to ``layer``: loads have landed, stores are written."""

    number: int
    layer: int


@dataclass(eq=False)
class Fence:
    """A load of 16 unused bytes that lands when the sources of a store have been read."""

    store: int
    layer: int = 0


@dataclass(frozen=True, eq=False)
class Streams:
    """Steps by the engine that executes them, in order, each with the numbers of the steps that it waits for.

    Attributes
    ----------
    loads : list of (Load or Fence, jobs, weights, calls, read, written, landed)
        The last jobs that touch the destination, the last jobs that signal when they have read weights there, the last
        call that touches it, the store that reads it, the store that writes the source; -1 for none. And a tuple of the
        last loads of other orders to the destination: nobody has waited for them if the core had no use for them.
    jobs : list of (Jobs, loads, calls)
        The last loads that must have landed before, a tuple with at most one of each order (:func:`order_of`). And the
        last call that must have ended.
    calls : list of (Call, loads)
    stores : list of (Store, jobs, loads, calls)
    meets : list of (Meet, loads, stores)
        The last ones of the layers that are done.
    """

    loads: list
    jobs: list
    calls: list
    stores: list
    meets: list


class Touched:
    """The last step of one kind that touches each block of a memory."""

    def __init__(self, size):
        self._last = np.full(-(-size // BLOCK), _NONE, np.int32)

    def last(self, blocks):
        """The last step that touches any of ``blocks``, each a slice or an array of numbers."""
        return max((int(self._last[some].max()) for some in blocks), default=_NONE)

    def touch(self, blocks, number):
        """Step ``number`` touches ``blocks``."""
        for some in blocks:
            self._last[some] = number


def streams_of(steps, smem_bytes, gmem_bytes, core=0):
    """The :class:`Streams` of the steps of a core, which are correct when they are executed one after the other."""
    used, read_early, written_near, called, stored = (Touched(smem_bytes) for _ in range(5))
    fetched, written_far = (Touched(gmem_bytes) for _ in range(2))
    loads, jobs, calls, stores, meets, fences = [], [], [], [], [], []
    landed = _Landed(smem_bytes, core, loads)
    for step in steps:
        if isinstance(step, Load):
            # What another core brings is not read by this one.
            order = order_of(step, core)
            sources = far_blocks(step) if order == _NONE else []
            targets = _near((each.near, each.near + each.size) for each in step.transfers)
            jobs_there = max(used.last(targets), written_near.last(targets))
            others = tuple(number for number in landed.last(targets) if order_of(loads[number][0], core) != order)
            loads.append((step, jobs_there, read_early.last(targets), called.last(targets), stored.last(targets),
                          written_far.last(sources), others))  # fmt: skip
            landed.touch(targets, len(loads) - 1)
            fetched.touch(sources, len(loads) - 1)
        elif isinstance(step, Jobs):
            reads, weights, writes = _near(step.reads), _near(step.weights), _near(step.writes)
            leaving = stored.last(writes)
            needed = landed.last(reads + weights + writes)
            if leaving > _NONE:
                needed = landed.latest(*needed, _fence(leaving, loads, fences, step.layer))
            jobs.append((step, needed, called.last(writes)))
            used.touch(reads, len(jobs) - 1)
            (read_early if step.early else used).touch(weights, len(jobs) - 1)
            written_near.touch(writes, len(jobs) - 1)
        elif isinstance(step, Call):
            touched = _near(step.reads + step.writes)
            calls.append((step, landed.last(touched)))
            called.touch(touched, len(calls) - 1)
        elif isinstance(step, Meet):
            ends = landed.latest(*(number for number, (other, *_) in enumerate(loads) if other.layer <= step.layer))
            meets.append((step, ends, max((number for number, (other, *_) in enumerate(stores)
                                           if other.layer <= step.layer), default=_NONE)))  # fmt: skip
        else:
            sources, targets = _near((each.near, each.near + each.size) for each in step.transfers), far_blocks(step)
            loaded = landed.latest(*landed.last(sources), fetched.last(targets))
            stores.append((step, written_near.last(sources), loaded, called.last(sources)))
            stored.touch(sources, len(stores) - 1)
            written_far.touch(targets, len(stores) - 1)
    return Streams(loads, jobs, calls, stores, meets)


class _Landed:
    """The last loads to each block of shared memory, by the order in which they land."""

    def __init__(self, size, core, loads):
        self._touched, self._size, self._core, self._loads = {}, size, core, loads

    def touch(self, blocks, number):
        order = order_of(self._loads[number][0], self._core)
        self._touched.setdefault(order, Touched(self._size)).touch(blocks, number)

    def last(self, blocks):
        """The last loads that touch any of ``blocks``, a tuple."""
        return self.latest(*(touched.last(blocks) for touched in self._touched.values()))

    def latest(self, *numbers):
        """Those of some loads, or -1, that have to be waited for."""
        ends = {}
        for number in sorted(number for number in numbers if number > _NONE):
            ends[order_of(self._loads[number][0], self._core)] = number
        return tuple(sorted(ends.values()))


def cast_of(step):
    """The :class:`Cast` of a step that is a multicast, otherwise None."""
    return step.cast if isinstance(step, Load) else None


def order_of(step, core):
    """Loads that land in a core in the order of its steps have the same number.

    Those that the core issues have -1, and multicasts that another core issues the number of their group.
    """
    cast = cast_of(step)
    return cast.group if cast and cast.cores[0] != core else _NONE


def _near(spans):
    """Blocks of shared memory of spans, each the first byte and the end."""
    return [slice(first // BLOCK, -(-end // BLOCK)) for first, end in spans]


def far_blocks(step):
    """Blocks of global memory of a load or a store."""
    return [transfer.blocks for transfer in step.transfers]


def _fence(store, loads, fences, layer):
    """The first fence for ``store`` or a later store, as the number of a load; a new one if there is none."""
    index = bisect_left(fences, store, key=lambda fence: fence[0])
    if index == len(fences):
        loads.append((Fence(store, layer), _NONE, _NONE, _NONE, store, _NONE, ()))
        fences.append((store, len(loads) - 1))
    return fences[index][1]
