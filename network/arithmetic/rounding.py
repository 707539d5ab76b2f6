"""Rounding of binary32 to integers of 8 bits, and the operators that do nothing else."""

import numpy as np

from tilewright.golden.conv.results import rounded_sum

__all__ = ["add", "change", "dequantise", "fused", "limits", "multiply", "quantise", "requantise", "saturate",
           "scale_sums"]  # fmt: skip


def fused(first, second, addend):
    """fma(first, second, addend) with one rounding.

    Parameters
    ----------
    first, second, addend : arrays or numbers
        Values of binary32; shapes broadcast.

    Returns
    -------
    float32 array
    """
    product = np.asarray(first, np.float64) * np.asarray(second, np.float64)  # 48 bits at most: exact
    return rounded_sum(product, np.asarray(addend, np.float64)).astype(np.float32)


def saturate(values, zero, minimum, maximum, dtype):
    """sat(rne(values) + zero): the zero point is added to the integer.

    Parameters
    ----------
    values : float32 array
        No NaN.
    zero, minimum, maximum : int
    dtype : str
        A type of 8 bits that holds ``minimum`` to ``maximum``.
    """
    whole = np.clip(np.rint(values), np.float32(minimum - zero), np.float32(maximum - zero))
    return (whole.astype(np.int32) + zero).astype(dtype)


def requantise(acc, scale, zero, minimum, maximum, dtype):
    """sat(rne(fl(fl(acc) · scale)) + zero).

    Parameters
    ----------
    acc : int32 array
    scale : float32 array
        Its shape broadcasts to the shape of ``acc``.
    zero, minimum, maximum : int
    dtype : str
    """
    with np.errstate(over="ignore"):  # infinity saturates
        return saturate(acc.astype(np.float32) * scale, zero, minimum, maximum, dtype)


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


def add(a, b, node, dtype):
    """The sum of two tensors, by an ``Add``: the zero points are in it before rounding."""
    inner = fused(b, node.ratio[1], node.offset)
    return saturate(fused(a, node.ratio[0], inner), 0, node.minimum, node.maximum, dtype)


def multiply(a, b, node, dtype):
    """A tensor times another one, or a number, by a ``Mul``: the zero point is added before rounding."""
    product = ((a.astype(np.int32) - node.a_zero) * (np.asarray(b, np.int32) - node.b_zero)).astype(np.float32)
    return saturate(product * node.scale + np.float32(node.y_zero), 0, node.minimum, node.maximum, dtype)


def change(x, table):
    """Every element through a table of 256 entries, by its byte; unchanged if ``table`` is None."""
    return x if table is None else table[x.view(np.uint8)]
