"""Products of matrices whose second operand is a tensor, or several matrices (docs/models.md, "Operators")."""

import numpy as np

from ..arithmetic import product_scale
from ..attributes import MatMul, Scale, Transpose
from .operator import Constant, Quantity, Real

__all__ = ["is_one_matrix", "of_floats", "of_integers", "product_of", "turned"]


def is_one_matrix(op, index, shape):
    """Whether an input is a constant matrix, without more dimensions than the other operand, of ``shape``."""
    value = op.value(index)
    if not isinstance(value, Constant):
        return False
    sizes = value.array.shape
    return 2 <= len(sizes) <= max(len(shape), 2) and value.array.size == np.prod(sizes[-2:])


def of_integers(op, reading):
    """Both operands of a node on integers, a and b with scales and zero points, each a Real."""
    operands = []
    for index in (0, 3):
        if isinstance(op.value(index), Constant):
            operands.append(_constant(op, reading, op.weights(index, index + 1, index + 2)))
        else:
            tensor = op.tensor(index)
            operands.append(Real(tensor.name, op.quantity(index + 1, index + 2, tensor.dtype), op))
    return operands


def of_floats(op, reading):
    """Both operands of a node on floats, each a Real."""
    return [_constant(op, reading, op.real_weights(index)) if isinstance(op.value(index), Constant) else op.real(index)
            for index in range(2)]  # fmt: skip


def _constant(op, reading, weights):
    """A constant operand, which is read as a tensor."""
    scale, zero = op.single(weights.scale, "scale"), int(op.single(weights.zero, "zero point"))
    op.refuse_if(not weights.array.size, "its constant operand has no elements")
    name = reading.give_constant(f"{op.output}.constant", weights.array)
    return Real(name, Quantity(scale, zero, weights.array.dtype.name), op)


def turned(op, reading, name, across):
    """The name of an operand of a Gemm, which is a matrix, or of its transpose if ``across``."""
    shape = reading.shape(name)
    op.refuse_if(len(shape) != 2, f"its input is {list(shape)}, and only a matrix is supported")
    if not across:
        return name
    other = reading.fresh(f"{name}.transposed")
    reading.emit(op, (name,), other, Transpose((1, 0)), shape[::-1], reading.type_of(name))
    return other


def product_of(op, reading, operands, counts=None, added=None):
    """The shape of the result of two Reals, and functions that add nodes, for results of integers and of floats.

    ``counts`` is a bias of int32 for each column, ``added`` the same bias if the model has it as floats; or None.
    """
    names, (a, b) = zip(*((operand.name, operand.quantity) for operand in operands), strict=True)
    shape = _shape(op, *(tuple(reading.shape(name)) for name in names))

    def finish(output, y, clamp):
        scale = product_scale(a.scale, b.scale, y.scale)
        op.refuse_if(not np.isfinite(scale), "its scales give a factor that binary32 does not hold")
        reading.emit(op, names, output, MatMul(a.zero, b.zero, scale, y.zero, *clamp, counts), shape, y.dtype)

    def floats(output):
        name = reading.fresh(f"{output}.sums")
        bias = counts if added is None else None
        reading.emit(op, names, name, MatMul(a.zero, b.zero, None, 0, 0, 0, bias), shape, "int32")
        scale = np.full(shape[-1:], a.scale * b.scale, np.float32)
        reading.emit(op, (name,), output, Scale(scale, added), shape, "float32")

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
