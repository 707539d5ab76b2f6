"""Elements that only change their places: transposes, and reshapes that copy (docs/network.md, "Moves")."""

from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

__all__ = ["MOST", "Job", "Move", "addresses_of", "channel_order", "move_between", "pieces", "weights_in_place"]

#: Most jobs of a move.
_MOST_JOBS = 4096
#: Most moves of one node.
_MOST_PIECES = 256
#: Most indices of a dimension of a job.
MOST = 65536


class Job(NamedTuple):
    """One job of a move: sizes are of channels, columns, rows, images; pitches of columns, rows, images."""

    sizes: tuple[int, int, int, int]
    x: int
    x_pitch: tuple[int, int, int]
    y: int
    y_pitch: tuple[int, int, int]


@dataclass(frozen=True)
class Move:
    """A nest of loops that copies bytes of a source to the output.

    Attributes
    ----------
    loops : tuple of (int, int, int)
        Size, and bytes from one index to the next in source and output; sorted by the latter.
    start : (int, int)
        Offsets of the first byte in source and output.
    source : int
        Number of the source of the layer.
    """

    loops: tuple[tuple[int, int, int], ...]
    start: tuple[int, int]
    source: int = 0

    def span(self, side):
        """Offsets of the first byte and of the end in the source, side 0, or in the output, side 1."""
        first = self.start[side]
        return first, first + 1 + sum((size - 1) * steps[side] for size, *steps in self.loops)

    def split(self, side, offset):
        """Moves of the bytes before an offset in source or output, and of the bytes from it on; two lists."""
        first, last = self.span(side)
        if not first < offset < last:
            return ([self], []) if last <= offset else ([], [self])
        outer = max(range(len(self.loops)), key=lambda number: self.loops[number][1 + side])
        size, *steps = self.loops[outer]
        inside = last - (size - 1) * steps[side] - first  # of one index of this loop
        low = max((offset - first - inside) // steps[side] + 1, 0)
        high = min(-(-(offset - first) // steps[side]), size)
        before = [self._some(outer, 0, low)] if low else []
        after = [self._some(outer, high, size)] if high < size else []
        for index in range(low, high):
            cut = self._some(outer, index, index + 1).split(side, offset)
            before, after = before + cut[0], after + cut[1]
        return before, after

    def _some(self, number, first, last):
        """Some indices of a loop."""
        _, *steps = self.loops[number]
        start = tuple(begin + first * step for begin, step in zip(self.start, steps, strict=True))
        some = ((last - first, *steps),) if last - first > 1 else ()
        return replace(self, loops=self.loops[:number] + some + self.loops[number + 1 :], start=start)

    @property
    def adjoining(self):
        """Bytes that are contiguous in both source and output. A job copies up to a row of the engine a cycle."""
        return self.loops[0][0] if self.loops and self.loops[0][1:] == (1, 1) else 1

    @property
    def jobs(self):
        """Jobs that do the move, a list: contiguous bytes are channels, and there are three more dimensions."""
        channels = self.adjoining if self.adjoining <= MOST else 1
        rest = [part for loop in self.loops[channels > 1 :] for part in _limited(loop)]
        spatial, outer = rest[:3], rest[3:]
        sizes, *pitches = zip(*spatial, *[(1, 0, 0)] * (3 - len(spatial)), strict=True)
        jobs = []
        for index in product(*(range(size) for size, *_ in outer)):
            x, y = (begin + sum(i * loop[side] for i, loop in zip(index, outer, strict=True))
                    for side, begin in enumerate(self.start, start=1))  # fmt: skip
            jobs.append(Job((channels, *sizes), x, pitches[0], y, pitches[1]))
        return jobs


def addresses_of(place):
    """Byte offset of every element of a tensor, in the shape of the model."""
    total = np.zeros(place.shape, np.int64)
    for axis, (size, stride) in enumerate(zip(place.shape, place.strides, strict=True)):
        total += (np.arange(size) * stride).reshape([-1 if d == axis else 1 for d in range(len(place.shape))])
    return total


def move_between(sources, targets, number=0):
    """The :class:`Move` from ``sources`` to ``targets``, arrays of offsets of one shape; ``number`` is the source's.

    None if it is not a nest of loops, or needs too many jobs.
    """
    order = np.argsort(targets.ravel(), kind="stable")
    pairs = np.stack((sources.ravel()[order], targets.ravel()[order]))
    loops = _loops(pairs)
    if loops is None:
        return None
    move = Move(tuple(loops), tuple(pairs[:, 0].tolist()), number)
    return move if prod(size for size, *_ in loops[3:]) <= _MOST_JOBS else None


def pieces(indices):
    """Slices for ``np.ix_(*indices)`` with indices at equal steps in each dimension; none if they are too many."""
    slices = [_at_equal_steps(part) for part in indices]
    return list(product(*slices)) if prod(map(len, slices)) <= _MOST_PIECES else []


def _at_equal_steps(indices):
    """Slices of an array whose elements are at equal steps: every nth element, or else runs."""
    for period in range(1, 17):
        parts = [slice(first, None, period) for first in range(min(period, len(indices)))]
        if all(_are_equal(indices[part]) for part in parts):
            return parts
    runs, start = [], 0
    for last in range(1, len(indices) + 1):
        if last == len(indices) or not _are_equal(indices[start : last + 1]):
            runs.append(slice(start, last))
            start = last
    return runs


def _are_equal(indices):
    """Whether indices are at equal steps, forwards."""
    steps = np.diff(indices)
    return not steps.size or (steps[0] >= 0 and (steps == steps[0]).all())


def channel_order(sources, place, base):
    """For each channel of ``place`` the channel of ``base`` that it is; None if pixels differ in anything else.

    ``sources`` are offsets of the elements in ``base``, in the shape of the tensor.
    """
    sizes = place.batch, place.height, place.width
    if sizes != (base.batch, base.height, base.width) or len(place.shape) != 4:
        return None
    order, pixels = sources[:1, :, :1, :1], 0
    for axis, pitch in ((0, base.image_pitch), (2, base.row_pitch), (3, base.channels)):
        pixels = pixels + pitch * np.arange(place.shape[axis]).reshape(np.where(np.arange(4) == axis, -1, 1))
    inside = order.min() >= 0 and order.max() < base.channels
    return order.ravel() if inside and (sources == order + pixels).all() else None


def _loops(pairs):
    """``pairs``, of shape (2, n), as loops (size, steps of both), innermost first; None if they are not loops."""
    loops, starts = [], pairs
    while starts.shape[1] > 1:
        step = starts[:, 1] - starts[:, 0]
        breaks = np.flatnonzero((np.diff(starts) != step[:, None]).any(axis=0))
        size = int(breaks[0]) + 1 if len(breaks) else starts.shape[1]
        if starts.shape[1] % size or min(step) < 0:
            return None
        grid = starts.reshape(2, -1, size)
        if (grid != grid[:, :, :1] + step[:, None, None] * np.arange(size)).any():
            return None
        loops.append((size, int(step[0]), int(step[1])))
        starts = grid[:, :, 0]
    return loops


def _limited(loop):
    """A loop as one or two loops whose sizes fit a job."""
    size, x, y = loop
    if size <= MOST:
        return [loop]
    inner = next(part for part in range(MOST, 0, -1) if size % part == 0)
    return [(inner, x, y), (size // inner, inner * x, inner * y)]


def weights_in_place(place, addresses, weights):
    """Weights [Co, K] of a product, reordered for a convolution over whole images: [Co, H, W, C].

    ``addresses`` [N, K] are byte offsets of the elements of the tensor in ``place``. None if a row is not an image.
    """
    batch, depth = addresses.shape
    taps = place.height, place.width
    if batch != place.batch or depth != place.height * place.width * place.channels or max(taps) > 256:
        return None
    first = addresses[0]
    if (addresses != first + place.image_pitch * np.arange(batch)[:, None]).any():
        return None
    row, rest = np.divmod(first, place.row_pitch)
    if row.min() < 0 or row.max() >= place.height:
        return None
    placed = np.empty((len(weights), *taps, place.channels), weights.dtype)
    column, channel = np.divmod(rest, place.channels)
    placed[:, row, column, channel] = weights
    return placed
