"""Constants of nodes that are computed once: factors and offsets.

Scales are numpy float32 or arrays of it, and every operation rounds to binary32. Nothing is checked.
"""

import numpy as np

from .rounding import dequantise, fused, quantise

__all__ = [
    "average_scale",
    "change_table",
    "convolution_scale",
    "global_average_scale",
    "product_scale",
    "sum_constants",
]


def convolution_scale(x_scale, w_scale, y_scale):
    """fl(fl(sx · sw) / sy)."""
    return x_scale * w_scale / y_scale


def product_scale(a_scale, b_scale, y_scale):
    """fl(fl(sa · sb) / sy), for a product with one number."""
    return a_scale * b_scale / y_scale


def global_average_scale(x_scale, y_scale, count):
    """fl(sx / fl(sy · fl(count))), for an average of ``count`` pixels."""
    return x_scale / (y_scale * np.float32(count))


def average_scale(x_scale, y_scale, counts):
    """fl(sx / fl(sy · n)) for each number of pixels in an array."""
    return x_scale / (y_scale * np.asarray(counts, np.float32))


def sum_constants(a, b, y):
    """Ratios and offset of a sum; each argument is a pair of scale and zero point.

    Returns
    -------
    ratio : (float32, float32)
        fl(sa / sy) and fl(sb / sy).
    offset : float32
        fl(zy - fma(ra, za, fl(rb · zb))).
    """
    (a_scale, a_zero), (b_scale, b_zero), (y_scale, y_zero) = a, b, y
    ratio = a_scale / y_scale, b_scale / y_scale
    zeros = fused(ratio[0], a_zero, ratio[1] * np.float32(b_zero))
    return ratio, np.float32(np.float32(y_zero) - zeros)


def change_table(x, x_dtype, y, y_dtype):
    """sat(rne(fl(fl((x - zx) · sx) / sy)) + zy) for every x.

    Parameters
    ----------
    x, y : (float32, int)
        Scale and zero point.
    x_dtype, y_dtype : str

    Returns
    -------
    array of 256 elements of ``y_dtype``
        Indexed by the byte of x.
    """
    numbers = np.arange(256, dtype=np.uint8).view(x_dtype).astype(np.int32)
    return quantise(dequantise(numbers, *x), *y, y_dtype)
