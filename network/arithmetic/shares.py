"""Softmax: what share of the sum of all exponentials each one has, on floats and on integers of 8 bits."""

import math

import numpy as np

__all__ = ["exponentials", "softmax", "softmax_of_floats"]


def exponentials(scale, count):
    """For x from 255 steps below the largest of ``count`` numbers up to it: e^x, so that no sum leaves 32 bits."""
    largest = np.iinfo(np.uint32).max
    shift = math.log(largest / count) / float(scale)
    return np.array([min(int(math.exp((i - 255 + shift) * float(scale))), largest) for i in range(256)], np.int64)


def softmax(x, node, dtype):
    """Of integers, by a ``Softmax``."""
    x = x.astype(np.int64)
    terms = node.table[255 + x - x.max(axis=node.axes, keepdims=True)]
    total = terms.sum(axis=node.axes, keepdims=True)
    shares = (terms * node.scale + total // 2) // total
    return np.clip(shares + node.y_zero, node.minimum, node.maximum).astype(dtype)


def softmax_of_floats(x, axes):
    """Of float32, in binary64 and rounded once."""
    x = x.astype(np.float64)
    terms = np.exp(x - x.max(axis=axes, keepdims=True))
    return (terms / terms.sum(axis=axes, keepdims=True)).astype(np.float32)
