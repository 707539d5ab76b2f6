"""Between floats and the integers that stand for them."""

import numpy as np

from .rounding import saturate

__all__ = ["dequantise", "limits", "quantise", "scale_sums"]


def limits(dtype):
    """Least and largest number of an integer type, by its name."""
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def quantise(values, scale, zero, dtype):
    """sat(rne(fl(values / scale)) + zero)."""
    with np.errstate(over="ignore"):  # infinity saturates
        return saturate(np.asarray(values, np.float32) / scale, zero, *limits(dtype), dtype)


def dequantise(x, scale, zero):
    """fl((x - zero) · scale), float32."""
    with np.errstate(over="ignore"):
        return (x.astype(np.int32) - zero).astype(np.float32) * scale


def scale_sums(sums, scale, bias):
    """fl(fl(sums) · scale), and plus ``bias`` if there is one, rounded again: float32, channels last."""
    with np.errstate(over="ignore", under="ignore"):
        floats = sums.astype(np.float32) * scale
        return floats if bias is None else floats + bias
