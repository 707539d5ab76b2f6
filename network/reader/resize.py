"""Resize to the nearest element: a Take of elements of each dimension."""

import numpy as np

from ..arithmetic.nearest import COORDINATES, ROUNDINGS, nearest_elements
from .selection import source_of, take

__all__ = ["resize"]


def resize(op, reading):
    """Resize: x, region, scales, sizes; before version 11 x and scales."""
    x, shape = source_of(op)
    old = reading.opset < 11
    op.require("mode", "nearest", str)
    for name in ("antialias", "exclude_outside"):
        op.require(name, 0)
    for name in ("cubic_coeff_a", "extrapolation_value"):  # of other modes
        op.take(name, 0.0, float)
    op.require("keep_aspect_ratio_policy", "stretch", str)
    coordinates = op.take("coordinate_transformation_mode", "asymmetric" if old else "half_pixel", str)
    rounding = op.take("nearest_mode", "floor" if old else "round_prefer_floor", str)
    for name, given, known in (
        ("coordinate_transformation_mode", coordinates, COORDINATES), ("nearest_mode", rounding, ROUNDINGS),
    ):  # fmt: skip
        if given not in known:
            raise op.refusal(f"its attribute {name!r} is {given!r}: {', '.join(known)} are supported")
    if not old:
        op.skip(1)  # the region of tf_crop_and_resize
    axes = op.axes(None, len(shape), tuple(range(len(shape))))
    sizes, factors = _sizes(op, [shape[axis] for axis in axes], 1 if old else 2)
    if len(sizes) != len(axes) or not all(np.isfinite(factors)) or min(factors) <= 0 or (old and min(factors) < 1):
        raise op.refusal(f"its factors {[float(factor) for factor in factors]} are not supported")
    indices = [np.arange(size) for size in shape]
    made = list(shape)
    for axis, size in zip(axes, sizes, strict=True):
        made[axis] = size
    if made != list(shape):  # with factors that change no size ONNX Runtime copies
        for axis, size, factor in zip(axes, sizes, factors, strict=True):
            if factor != 1:
                indices[axis] = nearest_elements(shape[axis], size, factor, coordinates, rounding)
    take(op, reading, x, indices, op.output)


def _sizes(op, before, scales):
    """Sizes of the dimensions that are resized, and their float32 factors: of sizes, or input ``scales``."""
    factors = op.constant(scales, "scales").array if op.has(scales) else np.zeros(0, np.float32)
    if factors.dtype != np.float32:
        raise op.refusal(f"its scales {op.input_name(scales)!r} are {factors.dtype}, not float32")
    factors = list(factors.reshape(-1))
    if not op.has(3):
        return [int(np.float32(size) * factor) for size, factor in zip(before, factors, strict=False)], factors
    if factors:
        raise op.refusal("it has both scales and sizes")
    sizes = op.integers(3, "sizes")
    return sizes, [np.float32(size) / np.float32(given) for given, size in zip(before, sizes, strict=False)]
