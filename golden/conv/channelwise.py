"""Channel by channel: depthwise convolutions and pooling (docs/conv.md, "Lane-private mode", "Maximum")."""

import numpy as np

from ..dot_product import dot
from ..spec.pe.instruction import MmType
from .windows import Windows, distances, numbers

__all__ = ["largest", "sum_floats", "sum_integers"]

#: Of fp16 and bf16: infinity, NaN as results have it, and one.
_SPECIAL = {MmType.F16: (0x7C00, 0x7E00, 0x3C00), MmType.BF16: (0x7F80, 0x7FC0, 0x3F80)}


def sum_integers(shape, kind, x, k, zeros, acc):
    """Adds the sums of a depthwise convolution of integers, or with ``k`` None those of windows.

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
        Changed in place; modulo 2^32 it is right.
    """
    windows = Windows(shape, x)
    k = np.ones((shape.kernel[1], 1, 1), np.int64) if k is None else distances(k, zeros[1], kind, "k")
    for points in windows.chunks(shape.kernel[0] * shape.channels):
        for row in range(shape.kernel[1]):
            elements = distances(windows.row(points, row, zeros[0])[0], zeros[0], kind, "x")
            acc[points] += (elements * k[row]).sum(axis=1)


def sum_floats(shape, kind, x, k, acc):
    """The same of floats, one product after the other; ``acc`` are the raw bits of fp32, as int64."""
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
    """The largest element of every window, raw bits, of shape (points, C)."""
    infinite, nan, _ = _SPECIAL.get(kind, (None, None, None))
    # What stands for an element in padding is the least one, so that it changes nothing.
    least = infinite | 0x8000 if kind.is_float else 0 if kind & 2 else 1 << 8 * kind.bytes - 1
    result = np.empty((shape.points, shape.channels), np.int64)
    windows = Windows(shape, x)
    for points in windows.chunks(shape.kernel[0] * shape.channels):
        best = np.full((len(points), shape.channels), _order(np.int64(least), kind))
        wrong = np.zeros(best.shape, bool)
        for row in range(shape.kernel[1]):
            bits = windows.row(points, row, least)[0].astype(np.int64)
            best = np.maximum(best, _order(bits, kind).max(axis=1))
            if kind.is_float:
                wrong |= (bits & 0x7FFF > infinite).any(axis=1)
        found = _bits_of(best, kind)
        result[points] = np.where(wrong, nan, found) if kind.is_float else found
    return result


def _order(bits, kind):
    """Numbers that have the order of the elements: of negative floats all bits are turned, of others the sign."""
    if not kind.is_float:
        return numbers(bits, kind, "x")
    return np.where(bits & 0x8000, bits ^ 0xFFFF, bits ^ 0x8000)


def _bits_of(order, kind):
    """The elements that have these numbers, raw bits."""
    if not kind.is_float:
        return order & (1 << 8 * kind.bytes) - 1
    return np.where(order & 0x8000, order ^ 0x8000, order ^ 0xFFFF)
