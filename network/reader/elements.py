"""Sums, products and clamps, on integers and on floats that stand for them."""

import numpy as np

from ..arithmetic.constants import product_scale, sum_constants
from ..arithmetic.elementwise import add as sum_of
from ..arithmetic.elementwise import multiply
from ..arithmetic.ends import limits
from ..graph import Add, Concat, Mul, Tensor
from .functions import binary, bytes_in_common
from .reading import function_of, numbers, own_quantity
from .values import Constant, Pending, Quantity

__all__ = ["add", "clip", "mul", "qlinear_add", "qlinear_mul", "relu"]


def qlinear_add(op, reading):
    """QLinearAdd: a, its scale and zero point, b, its, y's; one of a and b may be a constant."""
    terms = [_term(op, index) for index in (0, 3)]
    _, finish = _sum(op, reading, terms)
    y = op.quantity(6, 7, terms[0][1].dtype)
    finish(op.output, y, limits(y.dtype))


def _term(op, index):
    """An operand on integers: the name of a tensor, or a number; and its Quantity."""
    if isinstance(op.value(index), Constant):
        return _number(op, op.weights(index, index + 1, index + 2), 3 - index)
    tensor = op.tensor(index)
    return tensor.name, op.quantity(index + 1, index + 2, tensor.dtype)


def _number(op, weights, other):
    """The same of a constant of one number, which goes with the input ``other``."""
    array, rank = weights.array, len(op.shape_of(op.value(other)))
    if array.size != 1 or array.ndim > rank:
        raise op.refusal(f"its constant operand is {list(array.shape)}, and only one number is supported")
    scale, zero = op.single(weights.scale, "scale"), int(op.single(weights.zero, "zero point"))
    return int(array.reshape(-1)[0]), Quantity(scale, zero, array.dtype.name)


def add(op, reading):
    """Add of floats: a, b; or of a product and a constant, which is its bias."""
    for index in range(2):
        value = op.value(index)
        if isinstance(value, Pending) and value.biased and isinstance(op.value(1 - index), Constant):
            reading.values[op.output] = value.biased(op, 1 - index)
            return
    terms = _terms(op, reading)
    if terms is None:
        binary(op, reading)
        return
    shape, finish = _sum(op, reading, terms)
    reading.defer(op, shape, finish)


def _terms(op, reading):
    """Operands of floats, a name or a number with its Quantity each; None if they are not all integers' own floats."""
    terms = []
    for index in range(2):
        value = op.value(index)
        if isinstance(value, Constant):
            if value.scale is None:
                return None
            terms.append(_number(op, op.real_weights(index), 1 - index))
        elif isinstance(value, Pending) and own_quantity(value) is None and value.function is not None:
            return None
        else:
            real = op.real(index)
            terms.append((real.name, real.quantity))
    return terms


def _sum(op, reading, terms):
    names = [what for what, _ in terms if isinstance(what, str)]
    shapes = [reading.shape(name) for name in names]
    if not names:
        raise op.refusal("both of its inputs are constants, which is not supported")
    if shapes[0] != shapes[-1]:
        raise op.refusal(
            f"its inputs are {list(shapes[0])} and {list(shapes[1])}: only inputs of one shape are supported"
        )

    def finish(output, y, clamp):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            ratio, offset = sum_constants(*((part.scale, part.zero) for part in (*(q for _, q in terms), y)))
        if not np.isfinite([*ratio, offset]).all():
            raise op.refusal("its scales give a factor that binary32 does not hold")
        attributes = Add(ratio, offset, *clamp)
        if len(names) == 2:
            reading.emit(op, names, output, attributes, shapes[0], y.dtype)
        else:
            operands = (numbers(q.dtype) if isinstance(what, str) else np.full(256, what) for what, q in terms)
            reading.table(op, names[0], output, sum_of(*operands, attributes, y.dtype))

    return shapes[0], finish


def qlinear_mul(op, reading):
    """QLinearMul: a, its scale and zero point, b, its, y's; one is a constant, or both are tables of one tensor."""
    terms = [_term(op, index) for index in (0, 3)]
    _, finish = _scaled(op, reading, terms)
    y = op.quantity(6, 7, terms[0][1].dtype)
    finish(op.output, y, limits(y.dtype))


def mul(op, reading):
    """Mul of floats: a, b; one is a constant, or both are functions of one tensor."""
    terms = _terms(op, reading)
    if terms is None:
        binary(op, reading)
        return
    shape, finish = _scaled(op, reading, terms)
    reading.defer(op, shape, finish)


def _scaled(op, reading, terms):
    (name, a), (operand, b) = terms if isinstance(terms[0][0], str) else terms[::-1]
    if not isinstance(name, str):
        raise op.refusal("both of its inputs are constants, which is not supported")
    common = bytes_in_common(reading, name, operand) if isinstance(operand, str) else None
    if isinstance(operand, str) and common is None:
        raise op.refusal(f"its operand {operand!r} is computed, and only a constant is supported")

    def finish(output, y, clamp):
        with np.errstate(over="ignore", under="ignore"):
            scale = product_scale(a.scale, b.scale, y.scale)
        if not np.isfinite(scale):
            raise op.refusal("its scales give a factor that binary32 does not hold")
        ends = a.zero, b.zero, scale, y.zero, *clamp
        if common is None:
            attributes = Mul(operand, *ends)
            reading.emit(op, (name,), output, attributes, reading.shape(name), y.dtype)
            reading.tables[output] = name, multiply(numbers(a.dtype), attributes, y.dtype)
            return
        base, *codes = common
        first, second = (numbers(q.dtype)[code] for q, code in zip((a, b), codes, strict=True))
        reading.table(op, base, output, multiply(first, Mul(second.astype(np.int32), *ends), y.dtype))

    return reading.shape(name), finish


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

    return Pending(op, op.shape_of(value), finish, quantity=own_quantity(value), function=function_of(value))
