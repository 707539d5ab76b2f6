"""Elements that only change their places: transposes, and reshapes that are not free (docs/network.md, "Moves")."""

from itertools import product

import numpy as np

from .layers import Move

__all__ = ["addresses_of", "moves_between", "weights_in_place"]

#: Jobs of a layer of moves at most.
_MOST_JOBS = 4096
#: Indices of a dimension of a job at most.
_MOST = 65536


def addresses_of(place):
    """Byte offset of every element of a tensor, in the shape of the model."""
    total = np.zeros(place.shape, np.int64)
    for axis, (size, stride) in enumerate(zip(place.shape, place.strides, strict=True)):
        total += (np.arange(size) * stride).reshape([-1 if d == axis else 1 for d in range(len(place.shape))])
    return total


def moves_between(sources, targets, number=0):
    """Moves that bring the byte at each of ``sources`` to that of ``targets``, arrays of offsets of one shape.

    ``number`` is that of the source. None if they are no nest of loops, or one of too many jobs.
    """
    order = np.argsort(targets.ravel(), kind="stable")
    pairs = np.stack((sources.ravel()[order], targets.ravel()[order]))
    loops = _loops(pairs)
    if loops is None:
        return None
    inner = loops[0] if loops and loops[0][1:] == (1, 1) and loops[0][0] <= _MOST else (1, 1, 1)
    rest = [part for loop in loops[inner != (1, 1, 1) :] for part in _limited(loop)]
    spatial, outer = rest[:3], rest[3:]
    if np.prod([size for size, *_ in outer], initial=1) > _MOST_JOBS:
        return None
    spatial += [(1, 0, 0)] * (3 - len(spatial))
    sizes, x_pitch, y_pitch = zip(*spatial, strict=True)
    moves = []
    for index in product(*(range(size) for size, *_ in outer)):
        x, y = (int(first) + sum(i * loop[side] for i, loop in zip(index, outer, strict=True))
                for side, first in ((1, pairs[0, 0]), (2, pairs[1, 0])))  # fmt: skip
        moves.append(Move((inner[0], *sizes), x, x_pitch, y, y_pitch, number))
    return tuple(moves)


def _loops(pairs):
    """``pairs``, of shape (2, n), as loops (size, steps of both), innermost first; None if they are none."""
    loops, left = [], pairs
    while left.shape[1] > 1:
        step = left[:, 1] - left[:, 0]
        breaks = np.flatnonzero((np.diff(left) != step[:, None]).any(axis=0))
        size = int(breaks[0]) + 1 if len(breaks) else left.shape[1]
        if left.shape[1] % size or min(step) < 0:
            return None
        grid = left.reshape(2, -1, size)
        if (grid != grid[:, :, :1] + step[:, None, None] * np.arange(size)).any():
            return None
        loops.append((size, int(step[0]), int(step[1])))
        left = grid[:, :, 0]
    return loops


def _limited(loop):
    """A loop as one or two of sizes that a job can have."""
    size, x, y = loop
    if size <= _MOST:
        return [loop]
    inner = next(part for part in range(_MOST, 0, -1) if size % part == 0)
    return [(inner, x, y), (size // inner, inner * x, inner * y)]


def weights_in_place(place, addresses, weights):
    """Weights of a product with a tensor that lies elsewhere, as those of a convolution over whole images.

    ``addresses`` are the byte offsets of its elements in the images of ``place``, an array [N, K], and ``weights`` an
    array [Co, K]. Returns an array [Co, H, W, C]; None if a row is not an image.
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
