"""Resize to the nearest element (docs/network.md, "The nearest element").

Positions are binary32, as in ONNX Runtime, so that elements are the same where a position is halfway between two.
"""

import numpy as np

from .operator import reads
from .selection import source_of, take

__all__ = ["COORDINATES", "ROUNDINGS", "nearest_elements"]

_HALF = np.float32(0.5)
#: A position this close to the middle between two elements counts as halfway.
_TIE = np.float32(1e-6)


def _half_pixel(i, factor, size, made):
    return (i + _HALF) / factor - _HALF


def _half_pixel_symmetric(i, factor, size, made):
    adjustment = np.float32(made) / (factor * np.float32(size))
    offset = np.float32(size) / np.float32(2) * (np.float32(1) - adjustment)
    return (np.float64(offset) + (i.astype(np.float64) + 0.5) / np.float64(factor) - 0.5).astype(np.float32)


#: By coordinate_transformation_mode: positions in the row, from float32 indices of the result, the float32 factor, and
#: the sizes of both.
COORDINATES = {
    "align_corners": lambda i, factor, size, made: i * np.float32(size - 1) / np.float32(max(made - 1, 1)),
    "asymmetric": lambda i, factor, size, made: i / factor,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": lambda i, *rest: _half_pixel(i, *rest) if rest[-1] > 1 else np.zeros_like(i),
    "tf_half_pixel_for_nn": lambda i, factor, size, made: (i + _HALF) / factor,
}


def _round(x, halves_up):
    below = np.floor(x)
    part = x - below
    up = np.where(np.abs(part - _HALF) <= _TIE, halves_up, part > _HALF)
    return below + up


#: By nearest_mode: the element at a position.
ROUNDINGS = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round_prefer_ceil": lambda x: _round(x, halves_up=True),
    "round_prefer_floor": lambda x: _round(x, halves_up=False),
}


def nearest_elements(size, made, factor, coordinates, rounding):
    """For each of ``made`` elements the index of the nearest of ``size`` elements.

    Parameters
    ----------
    size, made : int
    factor : float32
    coordinates, rounding : str
        Keys of ``COORDINATES`` and ``ROUNDINGS``.

    Returns
    -------
    int64 array
    """
    positions = COORDINATES[coordinates](np.arange(made, dtype=np.float32), factor, size, made)
    return np.clip(ROUNDINGS[rounding](positions), 0, size - 1).astype(np.int64)


@reads("Resize")
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
        op.refuse_if(given not in known, f"its attribute {name!r} is {given!r}: {', '.join(known)} are supported")
    if not old:
        op.skip(1)  # the region of tf_crop_and_resize
    axes = op.axes(None, len(shape), tuple(range(len(shape))))
    sizes, factors = _sizes(op, [shape[axis] for axis in axes], 1 if old else 2)
    if len(sizes) != len(axes) or not all(np.isfinite(factors)) or min(factors) <= 0 or (old and min(factors) < 1):
        raise op.refusal(f"its factors {[float(factor) for factor in factors]} are not supported")
    indices = [np.arange(size) for size in shape]
    sizes_after = list(shape)
    for axis, size in zip(axes, sizes, strict=True):
        sizes_after[axis] = size
    if sizes_after != list(shape):  # with factors that change no size ONNX Runtime copies
        for axis, size, factor in zip(axes, sizes, factors, strict=True):
            if factor != 1:
                indices[axis] = nearest_elements(shape[axis], size, factor, coordinates, rounding)
    take(op, reading, x, indices, op.output)


def _sizes(op, before, scales):
    """Sizes and float32 factors of the resized dimensions, from the input ``scales`` or from sizes."""
    factors = op.constant(scales, "scales").array if op.has(scales) else np.zeros(0, np.float32)
    op.refuse_if(factors.dtype != np.float32, f"its scales {op.input_name(scales)!r} are {factors.dtype}, not float32")
    factors = list(factors.reshape(-1))
    if not op.has(3):
        return [int(np.float32(size) * factor) for size, factor in zip(before, factors, strict=False)], factors
    op.refuse_if(factors, "it has both scales and sizes")
    sizes = op.integers(3, "sizes")
    return sizes, [np.float32(size) / np.float32(given) for given, size in zip(before, sizes, strict=False)]
