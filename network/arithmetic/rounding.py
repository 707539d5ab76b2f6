"""Numbers of binary32 and how they become integers of 8 bits."""

import numpy as np

from tilewright.golden.conv.results import rounded_sum

__all__ = ["fused", "requantise", "saturate"]


def fused(first, second, addend):
    """fma(first, second, addend) with one rounding.

    Parameters
    ----------
    first, second, addend : arrays or numbers
        Their values are those of binary32; shapes broadcast.

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
        Of 8 bits, which holds ``minimum`` to ``maximum``.
    """
    whole = np.clip(np.rint(values), np.float32(minimum - zero), np.float32(maximum - zero))
    return (whole.astype(np.int32) + zero).astype(dtype)


def requantise(acc, scale, zero, minimum, maximum, dtype):
    """sat(rne(fl(fl(acc) · scale)) + zero).

    Parameters
    ----------
    acc : int32 array
    scale : float32 array
        Its shape broadcasts to that of ``acc``.
    zero, minimum, maximum : int
    dtype : str
    """
    with np.errstate(over="ignore"):  # infinity saturates
        return saturate(acc.astype(np.float32) * scale, zero, minimum, maximum, dtype)
