"""Indices of a resize to the nearest element (docs/network.md, "The nearest element").

Positions are binary32, as in ONNX Runtime, so that elements are the same where a position is halfway between two.
"""

import numpy as np

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
