"""Sums, products with a number and clamps, on integers and on floats that stand for them."""

import numpy as np

from ..arithmetic.constants import product_scale, sum_constants
from ..arithmetic.ends import limits
from ..graph import Add, Concat, Mul, Tensor
from .reading import own_quantity
from .values import Constant, Pending, Quantity

__all__ = ["add", "clip", "mul", "qlinear_add", "qlinear_mul", "relu"]


def qlinear_add(op, reading):
    """QLinearAdd: a, its scale and zero point, b, its, y's."""
    a, b = op.tensor(0), op.tensor(3)
    terms = [(a.name, op.quantity(1, 2, a.dtype)), (b.name, op.quantity(4, 5, b.dtype))]
    _, finish = _sum(op, reading, terms)
    y = op.quantity(6, 7, a.dtype)
    finish(op.output, y, limits(y.dtype))


def add(op, reading):
    """Add of floats: a, b; or of a product and a constant, which is its bias."""
    for index in range(2):
        value = op.value(index)
        if isinstance(value, Pending) and value.biased and isinstance(op.value(1 - index), Constant):
            reading.values[op.output] = value.biased(op, 1 - index)
            return
    reals = [op.real(index) for index in range(2)]
    shape, finish = _sum(op, reading, [(real.name, real.quantity) for real in reals])
    reading.defer(op, shape, finish)


def _sum(op, reading, terms):
    names = [name for name, _ in terms]
    first, second = (reading.values[name].shape for name in names)
    if first != second:
        raise op.refusal(f"its inputs are {list(first)} and {list(second)}: only inputs of one shape are supported")

    def finish(output, y, clamp):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            ratio, offset = sum_constants(*((part.scale, part.zero) for part in (*(q for _, q in terms), y)))
        if not np.isfinite([*ratio, offset]).all():
            raise op.refusal("its scales give a factor that binary32 does not hold")
        reading.emit(op, names, output, Add(ratio, offset, *clamp), first, y.dtype)

    return first, finish


def qlinear_mul(op, reading):
    """QLinearMul: a, its scale and zero point, b, its, y's; one of a and b is a constant."""
    at = 3 if isinstance(op.value(3), Constant) else 0
    other = 3 - at
    a = op.tensor(other)
    weights = op.weights(at, at + 1, at + 2)
    _, finish = _scaled(op, reading, (a.name, op.quantity(other + 1, other + 2, a.dtype)), weights)
    y = op.quantity(6, 7, a.dtype)
    finish(op.output, y, limits(y.dtype))


def mul(op, reading):
    """Mul of floats: a, b; one of them is a constant."""
    at = 1 if isinstance(op.value(1), Constant) else 0
    real = op.real(1 - at)
    shape, finish = _scaled(op, reading, (real.name, real.quantity), op.real_weights(at))
    reading.defer(op, shape, finish)


def _scaled(op, reading, a, weights):
    name, quantity = a
    shape = reading.values[name].shape
    if weights.array.size != 1 or weights.array.ndim > len(shape):
        raise op.refusal(f"its constant operand is {list(weights.array.shape)}, and only one number is supported")
    b = Quantity(op.single(weights.scale, "scale"), int(op.single(weights.zero, "zero point")), "")

    def finish(output, y, clamp):
        with np.errstate(over="ignore", under="ignore"):
            scale = product_scale(quantity.scale, b.scale, y.scale)
        if not np.isfinite(scale):
            raise op.refusal("its scales give a factor that binary32 does not hold")
        number = int(weights.array.reshape(-1)[0])
        attributes = Mul(number, quantity.zero, b.zero, scale, y.zero, *clamp)
        reading.emit(op, (name,), output, attributes, shape, y.dtype)

    return shape, finish


def relu(op, reading):
    """Relu: a clamp to 0 and more."""
    _clamp(op, reading, 0, np.inf)


def clip(op, reading):
    """Clip, with limits as inputs or as attributes."""
    ends = [op.take("min", -np.inf, (float, int)), op.take("max", np.inf, (float, int))]
    for index in (1, 2):
        if op.has(index):
            ends[index - 1] = op.number(index, "limit")
    if not ends[0] <= ends[1]:
        raise op.refusal(f"its limits are {ends[0]} and {ends[1]}")
    _clamp(op, reading, *ends)


def _clamp(op, reading, low, high):
    value = op.value(0)
    if isinstance(value, Tensor) and value.dtype != "float32":
        least, most = limits(value.dtype)
        numbers = np.arange(256, dtype=np.uint8).view(value.dtype)
        table = np.clip(numbers, max(low, least), min(high, most)).astype(value.dtype)
        reading.emit(op, (value.name,), op.output, Concat(0, (table,)), value.shape, value.dtype)
    elif isinstance(value, Constant):
        op.tensor(0)  # says what is wrong with it
    else:
        reading.clamp(op, value if isinstance(value, Pending) else _pending(op, reading, value), low, high)


def _pending(op, reading, value):
    """The same floats, still to be made integers."""

    def finish(output, y, clamp):
        reading.make(op, value, output, y, clamp)

    return Pending(op, op.shape_of(value), finish, quantity=own_quantity(value))
