"""Weights and tables of a layer as one piece of memory, in the order in which they are loaded."""

from collections import Counter
from dataclasses import dataclass
from math import gcd

import numpy as np

from tilewright.spec.conv import ConvOperation

from ..lower.places import padded

__all__ = ["Image", "Piece", "Unit", "Units", "equal_tables"]


@dataclass(frozen=True)
class Piece:
    """Output channels ``first`` to ``last`` - 1 of a part, and where their weights begin in the image."""

    part: int
    first: int
    last: int
    start: int


@dataclass(frozen=True)
class Unit:
    """Pieces that are loaded together: bytes ``start`` to ``end`` of the image."""

    pieces: tuple[Piece, ...]
    start: int
    end: int


class Units(tuple):
    """Units of an image, in order.

    Attributes
    ----------
    largest : int
        Bytes of the largest.
    kinds : Counter
        Number of units of each kind: (part, channels) of the pieces, and bytes.
    """

    def __new__(cls, units):
        self = super().__new__(cls, units)
        self.largest = max(unit.end - unit.start for unit in units)
        self.kinds = Counter(
            (tuple((piece.part, piece.last - piece.first) for piece in unit.pieces), unit.end - unit.start)
            for unit in units
        )
        return self


def equal_tables(parts):
    """For each part the numbers of the first part with the same table, and of the one with the same function."""
    firsts = {}
    return tuple(tuple(firsts.setdefault(None if array is None else array.tobytes(), number)
                       for array in (part.table, part.function))
                 for number, part in enumerate(parts))  # fmt: skip


class Image:
    """Constants of a layer in memory: tables and functions of all parts, equal ones once, then the weights.

    Parameters
    ----------
    parts : sequence of Part

    Attributes
    ----------
    tables, functions, weights : tuple of int
        Byte offsets, by part.
    table_bytes, size : int
        Bytes of all tables and functions, and of everything.
    """

    def __init__(self, parts):
        self.parts = parts
        tables, functions, weights, end = [], [], [], 0
        for number, (table, function) in enumerate(equal_tables(parts)):
            for offsets, first, array in ((tables, table, parts[number].table),
                                          (functions, function, parts[number].function)):  # fmt: skip
                offsets.append(end if first == number else offsets[first])
                end += padded(array.nbytes) if first == number and array is not None else 0
        self.table_bytes = end
        for part in parts:
            weights.append(end)
            end += padded(0 if part.weights is None else part.weights.size)
        self.tables, self.functions, self.weights, self.size = tuple(tables), tuple(functions), tuple(weights), end
        self._rows = [(part.out_channels[1], 0 if part.weights is None else part.weights.size // part.out_channels[1],
                       part.operation != ConvOperation.CONVOLUTION) for part in parts]  # fmt: skip
        self._shapes, self._units = dict.fromkeys(self._rows), {}

    def data(self):
        """The bytes."""
        image = np.zeros(self.size, np.uint8)
        for part, table, function, weights in zip(self.parts, self.tables, self.functions, self.weights, strict=True):
            for start, content in ((table, part.table), (function, part.function), (weights, part.weights)):
                if content is not None:
                    raw = np.frombuffer(np.ascontiguousarray(content).tobytes(), np.uint8)
                    image[start : start + len(raw)] = raw
        return image

    def units(self, most, step):
        """The weights as :class:`Units` of about ``most`` bytes, cut at multiples of ``step`` channels.

        A unit is larger if ``step`` channels, or a part that cannot be cut, are.
        """
        counts = {shape: self._count(*shape, most, step) for shape in self._shapes}
        key = tuple(counts.values()) if len(self._rows) == 1 else (most, step)
        if key not in self._units:
            units, pieces = [], []
            for piece, end in self._pieces([counts[shape] for shape in self._rows]):
                if pieces and end - pieces[0].start > most:
                    units.append(Unit(tuple(pieces), pieces[0].start, piece.start))
                    pieces = []
                pieces.append(piece)
            self._units[key] = Units([*units, Unit(tuple(pieces), pieces[0].start, self.size)])
        return self._units[key]

    @staticmethod
    def _count(channels, row, whole, most, step):
        """Channels of a piece of a part of ``channels``, each of ``row`` bytes."""
        if whole or channels * row <= most:
            return channels
        count = max(most // row // step, 1) * step
        return min(count + -count % (16 // gcd(16, row)), channels)

    def _pieces(self, counts):
        """Pieces and their ends, in order."""
        for number, ((channels, row, _), start, count) in enumerate(zip(self._rows, self.weights, counts, strict=True)):
            for first in range(0, channels, count):
                last = min(first + count, channels)
                yield Piece(number, first, last, start + first * row), start + padded(last * row)
