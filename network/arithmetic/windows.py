"""Convolutions and pools of integers: exact sums, modulo 2^32."""

import numpy as np

from .rounding import requantise

__all__ = ["convolution_sums", "convolve", "multiply_matrix", "pool"]


def convolve(x, node, dtype):
    """A feature map through a convolution.

    Parameters
    ----------
    x : uint8 or int8 array [N, C, H, W]
    node : Conv
    dtype : str
        Type of the result, [N, Co, Ho, Wo]; "int32" for the sums.
    """
    acc = convolution_sums(x, node)
    if dtype == "int32":
        return acc
    scale = node.scale[:, np.newaxis, np.newaxis]
    return requantise(acc, scale, node.y_zero, node.minimum, node.maximum, dtype)


def multiply_matrix(x, node, dtype):
    """Rows [..., K] to [..., Co] by a convolution whose ``matrix`` is set."""
    pixels = x.reshape(-1, x.shape[-1], 1, 1)
    return convolve(pixels, node, dtype).reshape(*x.shape[:-1], -1)


def convolution_sums(x, node):
    """Accumulators with their biases, int32 [N, Co, Ho, Wo]."""
    outputs, _, height, width = node.weight.shape
    x = _centred(x, node)
    weight = node.weight.astype(np.int32) - node.w_zero[:, np.newaxis, np.newaxis, np.newaxis]
    sums = _sums_of_channels if node.weight.shape[1] == 1 else _sums_of_groups
    acc = 0
    for row in range(height):
        for column in range(width):
            acc = acc + sums(_points(x, node, row, column), weight[:, :, row, column], node.groups)
    images, rows, columns = len(x), *_points(x, node, 0, 0).shape[2:]
    acc = acc.reshape(images, outputs, rows, columns).astype(np.int64) + node.bias[:, np.newaxis, np.newaxis]
    return acc.astype(np.int32)  # wraps


def _centred(x, node):
    """x - zx with zeros as padding, int32."""
    top, left, bottom, right = node.pad
    return np.pad(x.astype(np.int32) - node.x_zero, ((0, 0), (0, 0), (top, bottom), (left, right)))


def _points(x, node, row, column):
    """The elements of all windows at one position of the kernel, [N, C, Ho, Wo]."""
    (down, right), (high, wide) = node.stride, node.dilation
    height, width = ((size - 1) * step for size, step in zip(node.weight.shape[2:], node.dilation, strict=True))
    first, left = row * high, column * wide
    return x[:, :, first : x.shape[2] - height + first : down, left : x.shape[3] - width + left : right]


def _sums_of_groups(points, weight, groups):
    """Products of matrices in float64, exact because sums are less than 2^53."""
    images, channels = points.shape[:2]
    rows = points.reshape(images, groups, channels // groups, -1).astype(np.float64)
    return weight.reshape(groups, -1, channels // groups).astype(np.float64) @ rows


def _sums_of_channels(points, weight, groups):
    """Products for groups of one channel, in integers that wrap."""
    rows = points.reshape(len(points), groups, 1, -1)
    return weight.reshape(groups, -1, 1) * rows


def pool(x, node, dtype):
    """Averages or maxima.

    Parameters
    ----------
    x : uint8 or int8 array [N, C, H, W]
    node : Pool
    dtype : str
        Type of the result, [N, C, Ho, Wo].
    """
    if node.kind == "max":
        return _windows(x, node, np.iinfo(x.dtype).min).max(axis=(-2, -1))
    acc = _windows(x.astype(np.int32) - node.x_zero, node, 0).sum(axis=(-2, -1), dtype=np.int32)
    return requantise(acc, node.scale, node.y_zero, node.minimum, node.maximum, dtype)


def _windows(x, node, padding):
    """A view [N, C, Ho, Wo, Kh, Kw] of ``x`` with ``padding`` around it."""
    top, left, bottom, right = node.pad
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=padding)
    (high, wide), (down, across) = node.dilation, node.stride
    spans = tuple((size - 1) * step + 1 for size, step in zip(node.kernel, node.dilation, strict=True))
    views = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=(2, 3))
    return views[:, :, ::down, ::across, ::high, ::wide]
