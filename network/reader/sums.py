"""Sums and products of two tensors, or of a tensor and a constant (docs/models.md, "Operators")."""

from typing import NamedTuple

import numpy as np

from ..arithmetic import add as sum_of
from ..arithmetic import limits, multiply, numbers, product_scale, sum_constants
from ..attributes import Add, Mul
from .layout import operand
from .operator import MICROSOFT, Constant, Pending, Quantity, reads
from .reading import own_quantity
from .tables import binary, bytes_in_common, repeated

__all__ = ["sum_of_two"]

_FINITE = "its scales give a factor that binary32 does not hold"


class _Term(NamedTuple):
    """An operand of integers: the name of a tensor, or an array of the model, and what they mean."""

    operand: object
    quantity: Quantity

    @property
    def is_constant(self):
        return isinstance(self.operand, np.ndarray)

    def shape(self, reading):
        """Its dimensions."""
        return self.operand.shape if self.is_constant else reading.shape(self.operand)


@reads("QLinearAdd", domain=MICROSOFT)
def _qlinear_add(op, reading):
    """QLinearAdd: a, b and y, with scales and zero points."""
    _on_integers(op, reading, _sum)


@reads("QLinearMul", domain=MICROSOFT)
def _qlinear_mul(op, reading):
    """QLinearMul: a, b and y, with scales and zero points."""
    _on_integers(op, reading, _product)


def _on_integers(op, reading, operation):
    terms = [_term(op, index) for index in (0, 3)]
    _, finish = operation(op, reading, terms)
    y = op.quantity(6, 7, terms[0].quantity.dtype)
    finish(op.output, y, limits(y.dtype))


def _term(op, index):
    """An operand of an operator on integers, which scale and zero point follow."""
    if isinstance(op.value(index), Constant):
        return _constant(op, op.weights(index, index + 1, index + 2))
    tensor = op.tensor(index)
    return _Term(tensor.name, op.quantity(index + 1, index + 2, tensor.dtype))


def _constant(op, weights):
    """A constant operand, which has one scale."""
    scale, zero = op.single(weights.scale, "scale"), int(op.single(weights.zero, "zero point"))
    return _Term(weights.array, Quantity(scale, zero, weights.array.dtype.name))


@reads("Add")
def _add(op, reading):
    """Add of floats; a constant that is added to a product is its bias."""
    for index in range(2):
        value = op.value(index)
        if isinstance(value, Pending) and value.biased and isinstance(op.value(1 - index), Constant):
            reading.values[op.output] = value.biased(op, 1 - index)
            return
    _on_floats(op, reading, _sum)


def sum_of_two(op, reading):
    """Sum of floats of one tensor, or of two."""
    if len(op) == 1:
        reading.values[op.output] = operand(op, 0)
        return
    _on_floats(op, reading, _sum)


@reads("Sub")
def _sub(op, reading):
    """Sub of floats: a sum with a negative factor."""
    _on_floats(op, reading, lambda *arguments: _sum(*arguments, sign=-1))


@reads("Mul")
def _mul(op, reading):
    """Mul of floats."""
    _on_floats(op, reading, _product)


def _on_floats(op, reading, operation):
    terms = _terms(op, reading)
    if terms is None:
        binary(op, reading)
        return
    shape, finish = operation(op, reading, terms)
    reading.defer(op, shape, finish)


def _terms(op, reading):
    """Operands of floats; None if they are not exactly integers."""
    terms = []
    for index in range(2):
        value = op.value(index)
        if isinstance(value, Constant):
            if value.scale is None:
                return None
            terms.append(_constant(op, op.real_weights(index)))
        elif isinstance(value, Pending) and own_quantity(value) is None and (value.function or value.pair):
            return None
        else:
            real = op.real(index)
            terms.append(_Term(real.name, real.quantity))
    return terms


def _sum(op, reading, terms, sign=1):
    shape, terms, swapped = _in_order(op, reading, terms)

    def finish(output, y, clamp):
        signs = (sign, 1) if swapped else (1, sign)
        parts = ((np.float32(each) * term.quantity.scale, term.quantity.zero)
                 for each, term in zip(signs, terms, strict=True))  # fmt: skip
        ratio, offset = sum_constants(*parts, (y.scale, y.zero))
        op.refuse_if(not np.isfinite([*ratio, offset]).all(), _FINITE)
        attributes = Add(ratio, offset, *clamp)
        (name, x), (number, _) = terms
        if _is_number(terms[1], shape):
            reading.table(op, name, output, sum_of(numbers(x.dtype), number.reshape(-1)[0], attributes, y.dtype))
        else:
            names = _operands(op, reading, terms, output, shape)
            reading.emit(op, names, output, attributes, shape, y.dtype)

    return shape, finish


def _product(op, reading, terms):
    shape, terms, _ = _in_order(op, reading, terms)
    (name, a), (operand, b) = terms
    common = None if terms[1].is_constant else bytes_in_common(reading, name, operand)

    def finish(output, y, clamp):
        scale = product_scale(a.scale, b.scale, y.scale)
        op.refuse_if(not np.isfinite(scale), _FINITE)
        attributes = Mul(a.zero, b.zero, scale, y.zero, *clamp)
        if _is_number(terms[1], shape):
            table = multiply(numbers(a.dtype), operand.reshape(-1)[0], attributes, y.dtype)
            reading.table(op, name, output, table)
        elif common is not None:
            base, *codes = common
            first, second = (numbers(q.dtype)[code] for q, code in zip((a, b), codes, strict=True))
            reading.table(op, base, output, multiply(first, second, attributes, y.dtype))
        else:
            names = _operands(op, reading, terms, output, shape)
            reading.emit(op, names, output, attributes, shape, y.dtype)

    return shape, finish


def _in_order(op, reading, terms):
    """The shape of the result, both terms, the one of that shape first, and whether they have been exchanged."""
    op.refuse_if(all(term.is_constant for term in terms), "both of its inputs are constants, which is not supported")
    shapes = [tuple(term.shape(reading)) for term in terms]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise op.refusal(f"its inputs are {list(shapes[0])} and {list(shapes[1])}, which do not fit") from None
    swapped = terms[0].is_constant or (shapes[0] != shape == shapes[1] and not terms[1].is_constant)
    first, second = terms[::-1] if swapped else terms
    if first.shape(reading) != shape:
        first = first._replace(operand=repeated(op, reading, first.operand, shape))
    return shape, [first, second], swapped


def _is_number(term, shape):
    return term.is_constant and term.operand.size == 1 and len(term.operand.shape) <= len(shape)


def _operands(op, reading, terms, output, shape):
    """Names of both operands; the second one has the shape of the first one, or a number for each channel."""
    (name, _), (operand, _) = terms
    given = (1,) * (len(shape) - len(terms[1].shape(reading))) + tuple(terms[1].shape(reading))
    channel = 1 if len(shape) in (2, 4) else len(shape) - 1
    others = (size for axis, size in enumerate(given) if axis != channel and (axis or len(shape) != 4))
    alone = all(size == 1 for size in others)
    wanted = (*given[:channel], shape[channel], *given[channel + 1 :]) if alone else shape
    if terms[1].is_constant:
        return name, reading.give_constant(f"{output}.constant", np.broadcast_to(operand.reshape(given), wanted))
    return name, repeated(op, reading, operand, wanted)
