"""Results of jobs: accumulators, maxima, requantisation (docs/conv.md, "Order of sums", "Requantisation", "Types")."""

import numpy as np

from tilewright.spec.conv import ConvOutput
from tilewright.spec.pe import MmType

from ..dot_product import dot
from .rows import Windows, cut_rows, distances, numbers

__all__ = [
    "add_residual", "convolve_floats", "convolve_integers", "half_floats", "largest", "requantise",
    "requantise_zero_first", "rounded_sum", "sum_floats", "sum_integers",
]  # fmt: skip

#: Products of numbers below 2^16 that float64 adds up exactly.
_EXACT = 1 << 20
#: Infinity, NaN as in results, and one, for fp16 and bf16.
_SPECIAL = {MmType.F16: (0x7C00, 0x7E00, 0x3C00), MmType.BF16: (0x7F80, 0x7FC0, 0x3F80)}
#: Numbers from this one saturate with any zero point.
_LARGE = 1 << 31
#: Bits of significands.
_PLACES = 24
#: Places of a product after which it is less than 2^-20 for every significand.
_FAR = 44


def convolve_integers(shape, kind, x, k, zeros, acc):
    """Adds the sums of a convolution of integers.

    Parameters
    ----------
    shape : ConvShape
    kind : MmType
    x : array of shape (N, H, W, C)
        Raw bits.
    k : array of shape (Co, Kh, Kw, C)
    zeros : tuple of int
        Zero points of both, raw.
    acc : int64 array of shape (points, Co)
        Changed in place; correct modulo 2^32.
    """
    windows = Windows(shape, x)
    columns = shape.kernel[0] * shape.channels
    weights = distances(k, zeros[1], kind, "k").astype(np.float64).reshape(shape.out_channels, -1, columns)
    for points in windows.chunks(columns):
        for row in range(shape.kernel[1]):
            elements = windows.row(points, row, zeros[0])[0]
            elements = distances(elements, zeros[0], kind, "x").astype(np.float64).reshape(len(points), columns)
            for first in range(0, columns, _EXACT):
                cut = slice(first, first + _EXACT)
                acc[points] += (elements[:, cut] @ weights[:, row, cut].T).astype(np.int64)


def convolve_floats(shape, kind, x, k, block_bytes, merge, acc):
    """Adds the sums of a convolution of floats, step by step; ``acc`` are the raw bits of fp32, as int64.

    Other parameters are those of :func:`convolve_integers`, and the block of channels and merged columns of the job.
    """
    windows = Windows(shape, x)
    elements = block_bytes // kind.bytes
    steps = -(-shape.kernel[0] // merge)
    weights = cut_rows(k, steps, merge, elements)  # (Co, Kh, blocks, steps, elements)
    for points in windows.chunks(16 * shape.out_channels * elements):
        for row in range(shape.kernel[1]):
            features = cut_rows(windows.row(points, row, 0)[0], steps, merge, elements)
            for block in range(weights.shape[2]):
                for step in range(steps):
                    factors = features[:, None, block, step], weights[None, :, row, block, step]
                    acc[points] = dot(acc[points], *np.broadcast_arrays(*factors), kind)


def sum_integers(shape, kind, x, k, zeros, acc):
    """Adds the sums of a depthwise convolution of integers or, if ``k`` is None, of the elements of windows.

    Parameters
    ----------
    shape : ConvShape
    kind : MmType
    x : array of shape (N, H, W, C)
        Raw bits.
    k : array of shape (Kh, Kw, C) or None
    zeros : tuple of int
        Zero points of both, raw.
    acc : int64 array of shape (points, C)
        Changed in place; correct modulo 2^32.
    """
    windows = Windows(shape, x)
    k = np.ones((shape.kernel[1], 1, 1), np.int64) if k is None else distances(k, zeros[1], kind, "k")
    for points in windows.chunks(shape.kernel[0] * shape.channels):
        for row in range(shape.kernel[1]):
            elements = distances(windows.row(points, row, zeros[0])[0], zeros[0], kind, "x")
            acc[points] += (elements * k[row]).sum(axis=1)


def sum_floats(shape, kind, x, k, acc):
    """The same for floats, one product after another; ``acc`` are the raw bits of fp32, as int64."""
    windows = Windows(shape, x)
    if k is None:
        k = np.full((shape.kernel[1], shape.kernel[0], shape.channels), _SPECIAL[kind][2], np.uint16)
    for points in windows.chunks(16 * shape.kernel[0] * shape.channels):
        for row in range(shape.kernel[1]):
            elements = windows.row(points, row, 0)[0]
            for column in range(shape.kernel[0]):
                weights = np.broadcast_to(k[row, column], elements[:, column].shape)
                acc[points] = dot(acc[points], elements[:, column, :, None], weights[..., None], kind)


def largest(shape, kind, x):
    """Raw bits of the largest element of each window, of shape (points, C)."""
    infinite, nan, _ = _SPECIAL.get(kind, (None, None, None))
    # Elements in padding are the least ones, which change nothing.
    least = infinite | 0x8000 if kind.is_float else 0 if kind & 2 else 1 << 8 * kind.bytes - 1
    result = np.empty((shape.points, shape.channels), np.int64)
    windows = Windows(shape, x)
    for points in windows.chunks(shape.kernel[0] * shape.channels):
        best = np.full((len(points), shape.channels), _order(np.int64(least), kind))
        invalid = np.zeros(best.shape, bool)
        for row in range(shape.kernel[1]):
            bits = windows.row(points, row, least)[0].astype(np.int64)
            best = np.maximum(best, _order(bits, kind).max(axis=1))
            if kind.is_float:
                invalid |= (bits & 0x7FFF > infinite).any(axis=1)
        maxima = _raw(best, kind)
        result[points] = np.where(invalid, nan, maxima) if kind.is_float else maxima
    return result


def _order(bits, kind):
    """Numbers in the order of the elements; of a negative float all bits are inverted, of another float the sign."""
    if not kind.is_float:
        return numbers(bits, kind, "x")
    return np.where(bits & 0x8000, bits ^ 0xFFFF, bits ^ 0x8000)


def _raw(order, kind):
    """The inverse of :func:`_order`: raw bits."""
    if not kind.is_float:
        return order & (1 << 8 * kind.bytes) - 1
    return np.where(order & 0x8000, order ^ 0x8000, order ^ 0xFFFF)


def requantise(acc, scale, zero, clamp):
    """Accumulators as numbers of the output type.

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
    whole, places, negative = _scaled(acc, scale)
    value = np.minimum(_shifted(whole, places), _LARGE)
    return np.clip(np.where(negative, -value, value) + zero, *clamp)


def requantise_zero_first(acc, scale, zero, clamp):
    """The same with the zero point added before rounding; arguments are those of :func:`requantise`."""
    whole, places, negative = _scaled(acc, scale)
    # A smaller product makes no difference: it does not bring a sum near to a half. So a sum has at most 53 bits.
    places = np.minimum(places, _FAR)
    whole = np.minimum(whole, _LARGE)
    total = np.where(negative, -whole, whole) + (zero << places)
    size, dropped = _shortened(np.abs(total))
    value = _shifted(size << np.maximum(dropped - places, 0), np.maximum(places - dropped, 0))
    return np.clip(np.where(total < 0, -value, value), *clamp)


def _scaled(acc, scale):
    """The product of accumulators and scales, rounded to 24 significant bits: its size times 2^places, the places, at
    most 60 and not negative, and whether it is negative. Steps 1 to 3."""
    acc = (np.asarray(acc, np.int64) + _LARGE & 0xFFFFFFFF) - _LARGE
    scale = np.asarray(scale, np.int64)
    exponent = scale >> 23 & 0xFF
    significand = scale & 0x7FFFFF | (exponent > 0) << 23
    size, places = _shortened(np.abs(acc))
    product, dropped = _shortened(size * significand)
    weight = np.maximum(exponent, 1) - 150 + places + dropped
    # Longer shifts make no difference: a product has 24 places, and results from 2^31 saturate.
    return product << np.clip(weight, 0, 38), np.clip(-weight, 0, 60), (acc < 0) ^ (scale >> 31 != 0)


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
    """fp32 accumulators rounded once to 16 bits; both are raw bits."""
    acc = np.asarray(acc, np.uint32)
    nan = acc & 0x7FFFFFFF > 0x7F800000
    if output == ConvOutput.F16:
        with np.errstate(over="ignore"):
            rounded = np.where(nan, 0, acc).astype(np.uint32).view(np.float32).astype(np.float16).view(np.uint16)
        return np.where(nan, 0x7E00, rounded)
    odd = acc >> 16 & 1
    return np.where(nan, 0x7FC0, np.where(nan, 0, acc) + 0x7FFF + odd >> 16)


def _shifted(values, places):
    """``values`` / 2^``places``, rounded to nearest even."""
    floor = values >> places
    twice_rest = values - (floor << places) << 1
    return floor + ((twice_rest > 1 << places) | ((twice_rest == 1 << places) & (floor & 1 == 1)))


def _shortened(values):
    """``values`` below 2^53, rounded to 24 significant bits (nearest even), and the places cut off."""
    places = np.maximum(np.frexp(values.astype(np.float64))[1] - _PLACES, 0).astype(np.int64)
    return _shifted(values, places), places


def rounded_sum(first, second):
    """``first`` + ``second``, which float64 holds exactly, rounded once to float32; as float64.

    An inexact sum in float64 is made odd, so that rounding it again cannot meet a false tie.
    """
    first, second = np.broadcast_arrays(first, second)
    with np.errstate(over="ignore", invalid="ignore"):
        total = first + second
        second_share = total - first
        error = (first - (total - second_share)) + (second - second_share)
        even = (total.view(np.uint64) & np.uint64(1)) == 0
        nudged = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
        inexact = np.isfinite(total) & (error != 0)
        return np.where(inexact & even, nudged, total).astype(np.float32).astype(np.float64)
