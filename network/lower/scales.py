"""Tables of 256 results as jobs of single elements (docs/network.md, "Tables")."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Steps", "steps_of"]


@dataclass(frozen=True)
class Steps:
    """A product with one binary32 number, rounded and clamped, and what is added to it for larger inputs.

    Attributes
    ----------
    scale : int
        Raw bits.
    x_zero, y_zero : int
        Zero points of the input and of the results.
    changes : tuple of (int, int)
        A number of the input's type, and what is added to the results of all larger inputs: one behind the other,
        and no sum on the way leaves the type of the results.
    """

    scale: int
    x_zero: int
    y_zero: int
    changes: tuple[tuple[int, int], ...] = ()


def steps_of(table, dtype):
    """The :class:`Steps` whose results are those of a table: without changes if there are such, otherwise with few.

    Results of the product are clamped to the least and the largest entry.

    Parameters
    ----------
    table : array of 256 elements, u8 or s8
        Indexed by the byte of the input.
    dtype : numpy dtype
        Of the input, u8 or s8.
    """
    numbers = np.sort(np.arange(256).astype(np.uint8).view(dtype)).astype(np.int64)
    wanted, limits = table[numbers.astype(np.uint8)].astype(np.int64), np.iinfo(table.dtype)
    scales = _scales(numbers, wanted)
    # By scale, zero point of the input, and number.
    results = np.rint((numbers - numbers[:, None]).astype(np.float32) * scales[..., None]) + wanted[:, None]
    difference = wanted - np.clip(results, wanted.min(), wanted.max()).astype(np.int64)
    counts = np.count_nonzero(np.diff(difference), axis=-1)
    counts[difference[..., 0] != 0] = 256  # the least number has nothing below it that a change could be behind
    near = np.abs(numbers - numbers.mean())
    for scale, zero in sorted(np.ndindex(counts.shape), key=lambda one: (counts[one], near[one[1]])):
        if counts[scale, zero] == 256:
            break
        changes = _changes(numbers, difference[scale, zero])
        # Of a table that rises or falls one of both orders stays within the type.
        for order in (sorted(changes, key=lambda change: change[1]), sorted(changes, key=lambda change: -change[1])):
            if _stays(numbers, wanted - difference[scale, zero], order, limits):
                bits = int(scales[scale, zero].view(np.uint32))
                return Steps(bits, int(numbers[zero]), int(wanted[zero]), tuple(order))
    # The first entry for all numbers: what is added from the least one on, one behind the other, makes any table.
    return Steps(0, 0, int(wanted[0]), _changes(numbers, wanted - wanted[0]))


def _scales(numbers, wanted):
    """Scales [9, 256] with which a product comes near to results, if the zero points are a number's and its result."""
    # A clamped result bounds from one side; of the others the number lies within a half.
    rise, run = wanted - wanted[:, None], numbers - numbers[:, None]
    above = np.where(wanted == wanted.max(), np.inf, rise + 0.5)
    below = np.where(wanted == wanted.min(), -np.inf, rise - 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack((below, above)) / run
    # Of each zero point the scales between which most entries are met: from the end of a range to the next one.
    starts = np.sort(np.where(run, ends.min(axis=0), -np.inf))
    stops = np.sort(np.where(run, ends.max(axis=0), np.inf))
    behind = np.stack([np.searchsorted(*both) for both in zip(stops, starts, strict=True)])
    best = np.argmax(np.arange(256) - behind, axis=1)[:, None]
    low = np.take_along_axis(starts, best, 1)[:, 0]
    high = np.take_along_axis(stops, np.take_along_axis(behind, best, 1), 1)[:, 0]
    # If nothing but clamped results is there, one end or both are anywhere.
    either = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0))
    low, high = (np.where(np.isfinite(end), end, either) for end in (low, high))
    ends = np.stack(((low + high) / 2, low, high)).astype(np.float32)
    infinity = np.float32(np.inf)
    return np.concatenate((ends, np.nextafter(ends, infinity), np.nextafter(ends, -infinity)))


def _changes(numbers, difference):
    """Behind which numbers a difference changes, and by how much."""
    steps = np.diff(difference)
    return tuple((int(numbers[place]), int(steps[place])) for place in np.flatnonzero(steps))


def _stays(numbers, results, changes, limits):
    """Whether results stay within their type through all changes."""
    for number, change in changes:
        results = results + change * (numbers > number)
        if results.min() < limits.min or results.max() > limits.max:
            return False
    return True
