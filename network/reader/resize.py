"""Resize to the nearest element, or by linear interpolation (docs/network.md, "The nearest element").

Positions are binary32, as in ONNX Runtime, so that elements are the same where a position is halfway between two.
"""

from dataclasses import replace
from itertools import product
from math import gcd

import numpy as np

from ..arithmetic import joint_weights, limits
from ..attributes import Add, Linear
from ..graph import Tensor
from .operator import reads
from .selection import source_of, take

__all__ = ["COORDINATES", "ROUNDINGS", "nearest_elements"]

#: Most of the steps between two elements.
_MOST = 255
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
def _resize(op, reading):
    """Resize: x, region, scales, sizes; before version 11 x and scales."""
    x, shape = source_of(op)
    old = reading.opset < 11
    mode = op.take("mode", "nearest", str)
    if mode not in ("linear", "nearest"):
        raise op.refusal(f"its attribute 'mode' is {mode!r}, and only 'nearest' and 'linear' are supported")
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
    if mode == "linear" and sizes_after != list(shape):
        of_all = dict(zip(axes, factors, strict=True))
        _linear(op, reading, sizes_after, [of_all.get(axis, 1) for axis in range(len(shape))], coordinates)
        return
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


def _linear(op, reading, sizes, factors, coordinates):
    """Resizes rows and columns of the first input by linear interpolation.

    Parameters
    ----------
    op : Operator
    reading : Reading
    sizes : sequence of int
        Of all four dimensions.
    factors : sequence of float32
    coordinates : str
        A key of ``COORDINATES``.
    """
    value = op.value(0)
    shape = op.shape_of(value)
    op.refuse_if(len(shape) != 4 or tuple(sizes[:2]) != tuple(shape[:2]), "only rows and columns are interpolated")
    first, weights, whole = [], [], 1
    for axis in (2, 3):
        lows, shares, denominator = _shares(op, shape[axis], sizes[axis], factors[axis], coordinates)
        first.append(lows)
        weights.append(shares)
        whole *= denominator
    on_integers = isinstance(value, Tensor) and value.dtype in ("uint8", "int8")
    if on_integers and whole & (whole - 1):
        raise op.refusal(f"its weights are multiples of 1 / {whole}, which floats do not hold exactly")
    pairs, half = [np.unique(each, axis=0) for each in weights], whole // 2 if on_integers else 0
    if any(joint_weights(*pair, half) is None for pair in product(*pairs)):
        raise op.refusal(f"its weights are multiples of 1 / {whole}, which a byte does not hold")
    if on_integers:
        _without_fractions(
            op, reading, value, sizes, Linear(tuple(first), tuple(weights), 0, 0, np.float32(1), 0, 0, 0), whole
        )
        return
    real = op.real(0)
    x = real.quantity

    def finish(output, y, clamp):
        scale = x.scale / y.scale / np.float32(whole)
        attributes = Linear(tuple(first), tuple(weights), x.zero, 0, scale, y.zero, *clamp)
        reading.emit(op, (real.name,), output, attributes, sizes, y.dtype)

    reading.defer(op, tuple(sizes), finish)


def _without_fractions(op, reading, value, sizes, linear, whole):
    """Resizes integers: ONNX Runtime drops the fraction, so that negative results are rounded up.

    Half a step is subtracted from positive sums before they are rounded, and added to negative ones. Sums that are
    multiples of ``whole`` become halves by that, which a scale larger by 2^-20 moves away from 0.
    """
    least, most = limits(value.dtype)
    scale = np.float32((1 + 2**-20) / whole)
    half = whole // 2
    parts = [replace(linear, bias=-half, scale=scale, maximum=most)]
    if least:
        parts.append(replace(linear, bias=half, scale=scale, minimum=least))
    names = [op.output] if not least else [reading.fresh(f"{op.output}.{each}") for each in ("positive", "negative")]
    for name, part in zip(names, parts, strict=True):
        reading.emit(op, (value.name,), name, part, sizes, value.dtype)
    if least:
        one = np.float32(1)
        reading.emit(op, names, op.output, Add((one, one), np.float32(0), least, most), sizes, value.dtype)


def _shares(op, size, made, factor, coordinates):
    """For each of ``made`` elements the first of both that it lies between, and their weights; their sum."""
    if size == made and factor == 1:
        return np.arange(size), np.broadcast_to(np.int64([1, 0]), (size, 2)).copy(), 1
    positions = COORDINATES[coordinates](np.arange(made, dtype=np.float32), factor, size, made)
    positions = np.clip(positions.astype(np.float64), 0, size - 1)
    lows = np.floor(positions)
    for denominator in range(1, _MOST + 1):
        steps = (positions - lows) * denominator
        if np.abs(steps - np.rint(steps)).max() < 1e-3:
            shares = np.rint(steps).astype(np.int64)
            common = gcd(denominator, *shares.tolist())
            shares, denominator = shares // common, denominator // common
            return lows.astype(np.int64), np.stack([denominator - shares, shares], axis=1), denominator
    raise op.refusal(f"from {size} to {made} elements it interpolates at positions that are no small fractions")
