"""Tables of 256 results as sums of clamped products (docs/network.md, "Tables")."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Step", "steps_of"]


@dataclass(frozen=True)
class Step:
    """A product with one binary32 number, rounded and clamped, which is the first result or is added to it.

    Attributes
    ----------
    scale : int
        Raw bits.
    x_zero, y_zero : int
        Zero points of the input and of the product.
    minimum, maximum : int
        The clamp of the product.
    times : int
        Factor of the product when it is added to the results so far.
    """

    scale: int
    x_zero: int
    y_zero: int
    minimum: int
    maximum: int
    times: int = 1


def steps_of(table, dtype):
    """Steps that compute a table, the fewest of two methods; no intermediate sum leaves the type.

    Either each step extends the results to as many further inputs as one product can, or the first step is the product
    with the most correct entries and the others correct the rest.

    Parameters
    ----------
    table : array of 256 elements, u8 or s8
        Indexed by the byte of the input.
    dtype : numpy dtype
        Of the input, u8 or s8.
    """
    numbers = np.sort(np.arange(256).astype(np.uint8).view(dtype)).astype(np.int64)
    wanted, limits = table[numbers.astype(np.uint8)].astype(np.int64), np.iinfo(table.dtype)
    pieces = _pieces(numbers, wanted, limits.max)
    return pieces if len(pieces) < 3 else min(pieces, _corrected(numbers, wanted, limits) or pieces, key=len)


def _pieces(numbers, wanted, most):
    """Steps after each of which results are correct up to some input, and constant for all larger inputs."""
    first, steps, done = int(wanted[0]), [], 0
    while (wanted[done:] != wanted[done]).any():
        rises = wanted[done:] - wanted[done]
        change = int(np.flatnonzero(rises)[0])
        sign = int(np.sign(rises[change]))
        if not steps:
            last, zero, scale = _product(sign * rises)
            ends = sorted((first, int(wanted[last])))
            steps.append(Step(_bits(sign * scale), int(numbers[zero]), int(wanted[zero]), *ends))
        elif sign * rises[change] > most:
            last = change
            steps.append(Step(_bits(1), int(numbers[done + change - 1]), 0, 0, 1, int(rises[change])))
        else:
            rises *= sign
            last, zero, scale = _product(rises, most)
            steps.append(Step(_bits(scale), int(numbers[done + zero]), int(rises[zero]), 0, int(rises[last]), sign))
        done += last
    return tuple(steps) or (Step(0, 0, first, first, first),)


def _corrected(numbers, wanted, limits):
    """A product, and a step for each input after which its error changes; None if sums would leave the type."""
    scales = _near_scales(numbers, wanted)
    # By scale, zero point of the input, and number.
    results = np.rint((numbers - numbers[:, None]).astype(np.float32) * scales[..., None]) + wanted[:, None]
    results = np.clip(results, wanted.min(), wanted.max()).astype(np.int64)
    counts = np.count_nonzero(np.diff(wanted - results), axis=-1)
    counts[results[..., 0] != wanted[0]] = 256  # no step can correct the result of the least number
    scale, zero = np.unravel_index(np.argmin(counts), counts.shape)
    if counts[scale, zero] == 256:
        return None
    product = results[scale, zero]
    changes = np.diff(wanted - product)
    places = np.flatnonzero(changes)
    first = Step(
        _bits(scales[scale, zero]), int(numbers[zero]), int(wanted[zero]), int(wanted.min()), int(wanted.max())
    )
    # For a table that only rises or only falls one of both orders stays within the type.
    for order in (places[np.argsort(changes[places])], places[np.argsort(-changes[places])]):
        sums = product + np.cumsum(changes[order, None] * (np.arange(256) > order[:, None]), axis=0)
        if limits.min <= sums.min() and sums.max() <= limits.max:
            return first, *(Step(_bits(1), int(numbers[place]), 0, 0, 1, int(changes[place])) for place in order)
    return None


def _near_scales(numbers, wanted):
    """Scales [9, 256] of products close to the table, for zero points at each number and its result."""
    # A clamped result is a bound on one side; all others are within a half.
    rise, run = wanted - wanted[:, None], numbers - numbers[:, None]
    above = np.where(wanted == wanted.max(), np.inf, rise + 0.5)
    below = np.where(wanted == wanted.min(), -np.inf, rise - 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack((below, above)) / run
    # For each zero point the range of scales with the most correct entries.
    starts = np.sort(np.where(run, ends.min(axis=0), -np.inf))
    stops = np.sort(np.where(run, ends.max(axis=0), np.inf))
    ended = np.stack([np.searchsorted(*both) for both in zip(stops, starts, strict=True)])
    best = np.argmax(np.arange(256) - ended, axis=1)[:, None]
    low = np.take_along_axis(starts, best, 1)[:, 0]
    high = np.take_along_axis(stops, np.take_along_axis(ended, best, 1), 1)[:, 0]
    # If all results are clamped, one end or both are infinite.
    either = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0))
    low, high = (np.where(np.isfinite(end), end, either) for end in (low, high))
    ends = np.stack(((low + high) / 2, low, high)).astype(np.float32)
    infinity = np.float32(np.inf)
    return np.concatenate((ends, np.nextafter(ends, infinity), np.nextafter(ends, -infinity)))


def _bits(scale):
    return int(np.float32(scale).view(np.uint32))


def _product(rises, most=255):
    """The longest prefix of ``rises`` that is clamp(rne((n - zero) · scale) + rises[zero]) for indices n.

    ``rises`` begins with 0; the prefix does not fall and does not exceed ``most``. It is clamped to 0 and its last.

    Returns
    -------
    last, zero : int
    scale : float32
    """
    ends = np.flatnonzero((np.diff(rises) < 0) | (rises[1:] > most))
    rises = rises[: ends[0] + 1] if ends.size else rises
    places = np.arange(len(rises))
    run, rise = places - places[:, None], rises - rises[:, None]
    # [zero, n]: the least and the largest scale. Products that are clamped to 0 may be smaller.
    with np.errstate(divide="ignore", invalid="ignore"):
        enough, limit = (rise - 0.5) / run, (rise + 0.5) / run
    low_enough = np.where((run > 0) & (rises > 0), enough, -np.inf)
    high_enough = np.where((run < 0) & (rises > 0), enough, np.inf)
    low = np.maximum.accumulate(np.maximum(low_enough, np.where(run < 0, limit, -np.inf)), axis=1)
    high = np.minimum.accumulate(np.minimum(high_enough, np.where(run > 0, limit, np.inf)), axis=1)
    # Products that are clamped to the last one may be larger.
    largest = np.searchsorted(rises, rises)
    low = np.maximum(low[:, largest - 1], low_enough[:, largest])
    high = np.minimum(high[:, largest - 1], high_enough[:, largest])
    for last in np.flatnonzero((low <= high).any(axis=0))[::-1]:
        zeros = np.flatnonzero(low[:, last] <= high[:, last])
        wanted, run = rises[: last + 1], (places[: last + 1] - zeros[:, None]).astype(np.float32)
        for scales in _scales(low[zeros, last], high[zeros, last]):
            products = np.rint(run * scales[:, None]) + rises[zeros, None]
            exact = np.flatnonzero((np.clip(products, 0, wanted[-1]) == wanted).all(axis=1))
            if exact.size:
                return int(last), int(zeros[exact[0]]), scales[exact[0]]
    raise AssertionError("one change alone is always a product")


def _scales(low, high):
    """Candidates of scales in ranges, powers of two first, because many tables have them."""
    high = np.where(np.isfinite(high), high, 4 * low)
    ends = np.stack((low, high)).astype(np.float32)
    powers = np.exp2(np.ceil(np.log2(low)))
    return (
        np.where(powers <= high, powers, low).astype(np.float32),
        *(ends.mean(axis=0), *ends),
        *(np.nextafter(ends[0], np.float32(np.inf)), np.nextafter(ends[1], np.float32(0))),
    )
