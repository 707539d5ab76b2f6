"""Steps of a program as data: loads, jobs and stores, with all addresses (docs/network.md, "The program")."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tilewright.spec.conv import ConvOperation

from ..lower.places import BLOCK, Cut

__all__ = ["Jobs", "Load", "Map", "Store", "Transfer", "block"]


class Map(NamedTuple):
    """A tensor map: the box of ``rows`` rows of a :class:`Cut`."""

    place: Cut
    rows: int


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


@dataclass(eq=False)
class Load:
    """Transfers from global to shared memory that are waited for together."""

    transfers: list
    layer: int = 0


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


@dataclass(eq=False)
class Store:
    """Transfers from shared to global memory."""

    transfers: list
    layer: int = 0
