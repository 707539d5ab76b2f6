"""Accumulators of convolutions: Σ over a window and all channels (docs/conv.md, "Order of sums")."""

import numpy as np

from ..dot_product import dot
from .rows import cut_rows
from .windows import Windows, distances

__all__ = ["convolve_floats", "convolve_integers"]

#: Products of numbers below 2^16 of which so many add up exactly in float64.
_EXACT = 1 << 20


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
        Changed in place; modulo 2^32 it is right.
    """
    windows = Windows(shape, x)
    columns = shape.kernel[0] * shape.channels
    weights = distances(k, zeros[1], kind, "k").astype(np.float64).reshape(shape.out_channels, -1, columns)
    for points in windows.chunks(columns):
        for row in range(shape.kernel[1]):
            taken, _ = windows.row(points, row, zeros[0])
            elements = distances(taken, zeros[0], kind, "x").astype(np.float64).reshape(len(points), columns)
            for first in range(0, columns, _EXACT):
                cut = slice(first, first + _EXACT)
                acc[points] += (elements[:, cut] @ weights[:, row, cut].T).astype(np.int64)


def convolve_floats(shape, kind, x, k, block_bytes, merge, acc):
    """Adds the sums of a convolution of floats, step by step; ``acc`` are the raw bits of fp32, as int64.

    Parameters as of :func:`convolve_integers`, and the block of channels and the merged columns of the job.
    """
    windows = Windows(shape, x)
    many = block_bytes // kind.bytes
    steps = -(-shape.kernel[0] // merge)
    weights = cut_rows(k, steps, merge, many)  # (Co, Kh, blocks, steps, many)
    for points in windows.chunks(16 * shape.out_channels * many):
        for row in range(shape.kernel[1]):
            features = cut_rows(windows.row(points, row, 0)[0], steps, merge, many)
            for block in range(weights.shape[2]):
                for step in range(steps):
                    factors = features[:, None, block, step], weights[None, :, row, block, step]
                    acc[points] = dot(acc[points], *np.broadcast_arrays(*factors), kind)
