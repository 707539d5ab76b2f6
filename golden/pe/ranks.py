"""Products of tensors of higher rank as products of matrices (docs/pe.md, "Higher ranks").

A (m × x × k) times B (k × n × y × z) is the product of the (m·x) × k matrix with the k × (n·y·z) matrix: C is
m × x × n × y × z. K is never split, so only the threads' offsets differ from those of matrices.
"""

import math

import numpy as np

from .gemm_plan import Gemm

__all__ = ["flat_product_shape", "gemm_of_shapes", "laid_out"]


def gemm_of_shapes(a_shape, b_shape, kind, **options):
    """The :class:`Gemm` of A, whose last dimension is K, and B, whose first is; ``kind`` is its type.

    ``options`` are further attributes.
    """
    for name, shape in (("a", a_shape), ("b", b_shape)):
        if len(shape) < 2:
            raise ValueError(f"{name} must have K and at least one more dimension, not shape {shape}")
    *rows, k = a_shape
    k_of_b, *columns = b_shape
    if k != k_of_b:
        raise ValueError(f"A has {k} elements along K, and B {k_of_b}")
    return Gemm(tuple(reversed(rows)), tuple(reversed(columns)), k, kind, **options)


def laid_out(b, transpose):
    """The array B (k × …) as it lies in memory: K as the last dimension or, ``transpose``, the last but one."""
    return np.ascontiguousarray(np.moveaxis(b, 0, -2 if transpose else -1))


def flat_product_shape(a_shape, b_shape):
    """Rows and columns of the matrix that C lies as; in this order its elements are those of the tensor."""
    return math.prod(a_shape[:-1]), math.prod(b_shape[1:])
