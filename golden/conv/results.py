"""Post-processing of accumulators, in integers (docs/conv.md, "Requantisation", "Types")."""

import numpy as np

from ..spec.conv.job import ConvOutput

__all__ = ["add_residual", "half_floats", "requantise", "rounded_sum"]

#: What is this large saturates whatever the zero point.
_LARGE = 1 << 31
#: Bits of significands.
_PLACES = 24


def requantise(acc, scale, zero, clamp):
    """Accumulators as numbers of the output's type.

    Parameters
    ----------
    acc : array of shape (points, channels)
        Integers modulo 2^32.
    scale : uint32 array of shape (channels,)
        binary32.
    zero : int
        Zero point.
    clamp : tuple of int
        Least and largest result.

    Returns
    -------
    int64 array of the shape of ``acc``
    """
    acc = (np.asarray(acc, np.int64) + _LARGE & 0xFFFFFFFF) - _LARGE
    scale = np.asarray(scale, np.int64)
    exponent = scale >> 23 & 0xFF
    significand = scale & 0x7FFFFF | (exponent > 0) << 23
    size, places = _shortened(np.abs(acc))
    product, more = _shortened(size * significand)
    weight = np.maximum(exponent, 1) - 150 + places + more
    # Shifts by more than these are the same: a product has 24 places, and from 2^31 on results saturate.
    whole = product << np.clip(weight, 0, 38)
    value = np.minimum(np.where(weight < 0, _shifted(whole, np.clip(-weight, 0, 60)), whole), _LARGE)
    return np.clip(np.where((acc < 0) ^ (scale >> 31 != 0), -value, value) + zero, *clamp)


def add_residual(first, second, ratio, offset, clamp):
    """The sum of two requantised tensors, rne(fma(first, r[0], fma(second, r[1], offset))), as int64.

    Parameters
    ----------
    first, second : arrays of integers of one shape
        Of 8 bits.
    ratio : sequence of two uint32
        binary32, finite.
    offset : uint32
        The same.
    clamp : tuple of int
        Least and largest result.
    """
    *ratio, offset = np.array([*ratio, offset], np.uint32).view(np.float32).astype(np.float64)
    inner = rounded_sum(np.asarray(second) * ratio[1], offset)
    return np.clip(np.rint(rounded_sum(np.asarray(first) * ratio[0], inner)), *clamp).astype(np.int64)


def half_floats(acc, output):
    """fp32 accumulators rounded once to 16 bits, raw bits on both sides."""
    acc = np.asarray(acc, np.uint32)
    nan = acc & 0x7FFFFFFF > 0x7F800000
    if output == ConvOutput.F16:
        with np.errstate(over="ignore"):
            rounded = np.where(nan, 0, acc).astype(np.uint32).view(np.float32).astype(np.float16).view(np.uint16)
        return np.where(nan, 0x7E00, rounded)
    odd = acc >> 16 & 1
    return np.where(nan, 0x7FC0, np.where(nan, 0, acc) + 0x7FFF + odd >> 16)


def _shifted(values, places):
    """``values`` / 2^``places`` to nearest even."""
    kept = values >> places
    twice_rest = values - (kept << places) << 1
    return kept + ((twice_rest > 1 << places) | ((twice_rest == 1 << places) & (kept & 1 == 1)))


def _shortened(values):
    """``values`` below 2^53 to 24 significant bits, nearest even, as values and places that were cut off."""
    places = np.maximum(np.frexp(values.astype(np.float64))[1] - _PLACES, 0).astype(np.int64)
    return _shifted(values, places), places


def rounded_sum(first, second):
    """``first`` + ``second``, which float64 holds exactly, rounded once to float32; as float64.

    The sum in float64 is made odd where it is not exact. So rounding it again cannot meet a tie that is none.
    """
    first, second = np.broadcast_arrays(first, second)
    with np.errstate(over="ignore", invalid="ignore"):
        total = first + second
        of_second = total - first
        error = (first - (total - of_second)) + (second - of_second)
        even = (total.view(np.uint64) & np.uint64(1)) == 0
        nudged = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
        inexact = np.isfinite(total) & (error != 0)
        return np.where(inexact & even, nudged, total).astype(np.float32).astype(np.float64)
