"""Nodes that take each element by itself."""

import numpy as np

from .rounding import fused, saturate

__all__ = ["add", "change", "multiply"]


def add(a, b, node, dtype):
    """The sum of two tensors of one shape, by an ``Add``: the zero points are in it before rounding."""
    inner = fused(b, node.ratio[1], node.offset)
    return saturate(fused(a, node.ratio[0], inner), 0, node.minimum, node.maximum, dtype)


def multiply(a, node, dtype):
    """A tensor times one number, by a ``Mul``: the zero point is in it before rounding."""
    product = ((a.astype(np.int32) - node.a_zero) * (node.b - node.b_zero)).astype(np.float32)
    return saturate(product * node.scale + np.float32(node.y_zero), 0, node.minimum, node.maximum, dtype)


def change(x, table):
    """Every element through a table of 256, by its byte; as it is if there is none."""
    return x if table is None else table[x.view(np.uint8)]
