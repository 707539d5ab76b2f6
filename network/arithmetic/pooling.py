"""Windows of a feature map, each channel by itself."""

import numpy as np

from .rounding import requantise

__all__ = ["pool"]


def pool(x, node, dtype):
    """Averages or maxima.

    Parameters
    ----------
    x : uint8 or int8 array [N, C, H, W]
    node : Pool
    dtype : str
        Of the result, [N, C, Ho, Wo].
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
