"""Operators on floats that the host computes itself: ONNX's reference implementation is wrong, slow, or missing.

Each operation rounds to binary32, in the order in which ONNX Runtime computes.
"""

import numpy as np
import onnx

from .resize import COORDINATES

__all__ = ["OWN", "attributes_of"]


def _lrn(attributes, x):
    """LRN: x / (bias + alpha / size · Σ x² of neighbouring channels)^beta."""
    size, channels = attributes["size"], x.shape[1]
    squares = np.zeros_like(x)
    for c in range(channels):
        low, high = max(c - (size - 1) // 2, 0), min(c + size // 2, channels - 1)
        squares[:, c] = np.square(x[:, low : high + 1]).sum(axis=1)
    factor = np.float32(attributes.get("alpha", 1e-4) / size)
    base = np.float32(attributes.get("bias", 1.0)) + factor * squares
    return x * base ** -np.float32(attributes.get("beta", 0.75))


def _global_lp_pool(attributes, x):
    """GlobalLpPool: (Σ |x|^p)^(1/p) of each channel."""
    p = np.float32(attributes.get("p", 2))
    return (np.abs(x) ** p).sum(axis=tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)


def _resize(attributes, x, *others):
    """Resize by linear or cubic interpolation of the last two dimensions of four."""
    scales, sizes = (others[index] if len(others) > index and others[index].size else None for index in (1, 2))
    if x.ndim != 4 or attributes.get("axes") or attributes.get("mode") not in (b"linear", b"cubic"):
        raise ValueError("only linear and cubic interpolation of rows and columns is supported")
    for name, plain in (("antialias", 0), ("exclude_outside", 0), ("keep_aspect_ratio_policy", b"stretch")):
        if attributes.get(name, plain) != plain:
            raise ValueError(f"its attribute {name!r} is not supported")
    how = attributes.get("coordinate_transformation_mode", b"half_pixel").decode()
    if how not in COORDINATES:
        raise ValueError(f"its attribute 'coordinate_transformation_mode' is {how!r}, which is not supported")
    if sizes is None:
        sizes = [int(np.float32(size) * factor) for size, factor in zip(x.shape, scales, strict=True)]
    else:
        scales = [np.float32(size) / np.float32(given) for given, size in zip(x.shape, sizes, strict=True)]
    if tuple(sizes[:2]) != x.shape[:2]:
        raise ValueError("only rows and columns are interpolated")
    positions = [COORDINATES[how](np.arange(sizes[axis], dtype=np.float32), np.float32(scales[axis]), x.shape[axis],
                                  sizes[axis]) for axis in (2, 3)]  # fmt: skip
    if attributes["mode"] == b"linear":
        return _bilinear(x, *positions)
    return _bicubic(x, *positions, np.float32(attributes.get("cubic_coeff_a", -0.75)))


def _bilinear(x, rows, columns):
    corners = []
    for positions, size in ((rows, x.shape[2]), (columns, x.shape[3])):
        positions = np.clip(positions, np.float32(0), np.float32(size - 1))
        low = np.minimum(positions.astype(int), size - 1)
        high = np.minimum(low + 1, size - 1)
        after, before = np.abs(positions - low.astype(np.float32)), np.abs(positions - high.astype(np.float32))
        alone = low == high
        after[alone] = before[alone] = 0.5
        corners.append(((low, before), (high, after)))
    total = None
    for row, down in corners[0]:
        for column, across in corners[1]:
            term = across * down[:, np.newaxis] * x[:, :, row[:, np.newaxis], column]
            total = term if total is None else total + term
    return total


def _bicubic(x, rows, columns, a):
    total = np.float32(0)
    (top, down), (left, across) = (_cubic(positions, a) for positions in (rows, columns))
    for i in range(4):
        row, line = np.clip(top + i - 1, 0, x.shape[2] - 1)[:, np.newaxis], np.float32(0)
        for j in range(4):
            line = line + across[j] * x[:, :, row, np.clip(left + j - 1, 0, x.shape[3] - 1)]
        total = total + line * down[i][:, np.newaxis]
    return total


def _cubic(positions, a):
    """The element before each position, and weights of four elements."""
    one, low = np.float32(1), np.floor(positions)
    s = positions - low
    five, eight, four = (np.float32(n) * a for n in (5, 8, 4))

    def outer(t):
        return ((a * t - five) * t + eight) * t - four

    def inner(t):
        return ((a + np.float32(2)) * t - (a + np.float32(3))) * t * t + one

    return low.astype(int), (outer(s + one), inner(s), inner(one - s), outer(np.float32(2) - s))


#: By operator: a function of its attributes, as they are in the model, and of the arrays of its inputs.
OWN = {"GlobalLpPool": _global_lp_pool, "LRN": _lrn, "Resize": _resize}


def attributes_of(proto):
    """The attributes of a node by name."""
    return {each.name: onnx.helper.get_attribute_value(each) for each in proto.attribute}
