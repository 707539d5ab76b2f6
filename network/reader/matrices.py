"""Products of matrices whose second operand is a tensor, or several matrices (docs/models.md, "Operators")."""

import numpy as np

from ..arithmetic import limits, product_scale
from ..graph import MatMul, Scale
from .operator import Constant, Quantity

__all__ = ["is_one_matrix", "matrices", "real_matrices"]


def is_one_matrix(op, index, shape):
    """Whether an input is a constant matrix, without more dimensions than the other operand, of ``shape``."""
    value = op.value(index)
    if not isinstance(value, Constant):
        return False
    sizes = value.array.shape
    return 2 <= len(sizes) <= max(len(shape), 2) and value.array.size == np.prod(sizes[-2:])


def matrices(op, reading):
    """The product of a node on integers: a, b and y, with scales and zero points."""
    operands = []
    for index in (0, 3):
        if isinstance(op.value(index), Constant):
            operands.append(_constant(op, reading, op.weights(index, index + 1, index + 2)))
        else:
            tensor = op.tensor(index)
            operands.append((tensor.name, op.quantity(index + 1, index + 2, tensor.dtype)))
    _, finish, _ = _product(op, reading, *operands)
    y = op.quantity(6, 7, operands[0][1].dtype)
    finish(op.output, y, limits(y.dtype))


def real_matrices(op, reading):
    """The product of a node on floats: a and b."""
    operands = []
    for index in range(2):
        if isinstance(op.value(index), Constant):
            operands.append(_constant(op, reading, op.real_weights(index)))
        else:
            real = op.real(index)
            operands.append((real.name, real.quantity))
    shape, finish, floats = _product(op, reading, *operands)
    reading.defer(op, shape, finish, floats=floats)


def _constant(op, reading, weights):
    """The name of a constant operand, which is read as a tensor, and its Quantity."""
    scale, zero = op.single(weights.scale, "scale"), int(op.single(weights.zero, "zero point"))
    op.refuse_if(not weights.array.size, "its constant operand has no elements")
    name = reading.give_constant(f"{op.output}.constant", weights.array)
    return name, Quantity(scale, zero, weights.array.dtype.name)


def _product(op, reading, first, second):
    """The shape of the result, and functions that add nodes, for results of integers and of floats."""
    (a_name, a), (b_name, b) = first, second
    names = a_name, b_name
    shape = _shape(op, *(tuple(reading.shape(name)) for name in names))

    def finish(output, y, clamp):
        scale = product_scale(a.scale, b.scale, y.scale)
        op.refuse_if(not np.isfinite(scale), "its scales give a factor that binary32 does not hold")
        reading.emit(op, names, output, MatMul(a.zero, b.zero, scale, y.zero, *clamp), shape, y.dtype)

    def floats(output):
        name = reading.fresh(f"{output}.sums")
        reading.emit(op, names, name, MatMul(a.zero, b.zero, None, 0, 0, 0), shape, "int32")
        scale = np.full(shape[-1:], a.scale * b.scale, np.float32)
        reading.emit(op, (name,), output, Scale(scale), shape, "float32")

    return shape, finish, floats


def _shape(op, a, b):
    """The shape of the product of matrices of these shapes."""
    op.refuse_if(not a or not b, "one of its inputs is a number without dimensions")
    columns = b if len(b) > 1 else (*b, 1)
    sentence = f"its inputs are {list(a)} and {list(b)}, which do not fit"
    op.refuse_if(a[-1] != columns[-2], sentence)
    try:
        batch = np.broadcast_shapes(a[:-2], columns[:-2])
    except ValueError:
        raise op.refusal(sentence) from None
    return (*batch, *a[-2:-1], *b[-1:] * (len(b) > 1))
