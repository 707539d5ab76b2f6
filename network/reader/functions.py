"""Functions of one tensor, element by element: whatever stands between its integers and the next is a table.

A table knows the tensor that it was made of, so that a product of x and the integers of a function of x is one too.
"""

import math

import numpy as np

from ..arithmetic.ends import limits, quantise
from ..arithmetic.functions import FUNCTIONS, OPERATIONS
from ..arithmetic.shares import exponentials, softmax_of_floats
from ..graph import Softmax
from .reading import function_of
from .values import Constant, Function, Pending, Real

__all__ = ["binary", "bytes_in_common", "qlinear_softmax", "qlinear_unary", "softmax", "unary"]


def unary(op, reading):
    """A function with attributes, or none, of floats."""
    evaluate, value = _function(op), op.value(0)
    if isinstance(value, Pending) and value.floats:
        reading.defer_floats(op, value.shape, reading.apply(op, value, evaluate))
        return
    name, floats = _operand(op, 0)
    _defer(op, reading, Function(name, evaluate(floats)))


def softmax(op, reading):
    """Softmax of floats: the integers of a QuantizeLinear behind it are those of QLinearSoftmax."""
    value, axes = op.value(0), _axes(op, reading.opset, -1 if reading.opset >= 13 else 1)
    if isinstance(value, Pending) and value.floats:
        real, shape = None, value.shape
    else:
        real = value = op.real(0)
        shape = reading.shape(real.name)

    def finish(output, y, clamp):
        _softmax(op, reading, real.name, real.quantity, output, y, clamp, axes)

    floats = reading.apply(op, value, lambda x: softmax_of_floats(x, axes))
    reading.defer_floats(op, shape, floats, finish if real else None)


def qlinear_softmax(op, reading):
    """QLinearSoftmax: x, its scale and zero point, y's."""
    x, axes = op.tensor(0), _axes(op, op.take("opset", 13), -1)
    y = op.quantity(3, 4, x.dtype)
    _softmax(op, reading, x.name, op.quantity(1, 2, x.dtype), op.output, y, limits(y.dtype), axes)


def _axes(op, opset, default):
    """Dimensions over which shares are 1 in sum: before version 13 all from one on."""
    rank = len(op.shape_of(op.value(0)))
    axis = op.axis(op.take("axis", default), rank)
    return (axis,) if opset >= 13 else tuple(range(axis, rank))


def _softmax(op, reading, name, x, output, y, clamp, axes):
    shape = reading.shape(name)
    table = exponentials(x.scale, math.prod(shape[axis] for axis in axes))
    attributes = Softmax(axes, table, int(np.float32(1) / y.scale), y.zero, *clamp)
    reading.emit(op, (name,), output, attributes, shape, y.dtype)


def binary(op, reading):
    """What becomes of two functions of one tensor, or of one and a number."""
    if len(op) != 2:
        raise op.refusal(f"it has {len(op)} inputs, and only two are supported")
    at = [isinstance(op.value(index), Constant) for index in range(2)]
    if any(at):
        index = at.index(False)
        name, floats = _operand(op, index)
        number = np.float32(op.number(1 - index, "operand"))
        if op.value(1 - index).array.ndim > len(reading.shape(name)):
            raise op.refusal(f"its operand has more dimensions than {name}")
        operands = (floats, number) if index == 0 else (number, floats)
    else:
        functions = [_operand(op, index) for index in range(2)]
        common = bytes_in_common(reading, *(function.name for function in functions))
        if common is None:
            raise op.refusal("its inputs are computed from different tensors, which is not supported on floats")
        name, *codes = common
        operands = [function.floats[code] for function, code in zip(functions, codes, strict=True)]
    with np.errstate(all="ignore"):
        floats = OPERATIONS[op.kind](*operands).astype(np.float32)
    _defer(op, reading, Function(name, floats))


def qlinear_unary(op, reading):
    """QLinearSigmoid, QLinearLeakyRelu: x, its scale and zero point, y's."""
    evaluate, x = _function(op, op.kind.removeprefix("QLinear")), op.tensor(0)
    y = op.quantity(3, 4, x.dtype)
    floats = function_of(Real(x.name, op.quantity(1, 2, x.dtype), op)).floats
    _defer(op, reading, Function(x.name, evaluate(floats)))
    reading.values.pop(op.output).finish(op.output, y, limits(y.dtype))


def bytes_in_common(reading, first, second):
    """The tensor nearest to two of which both are tables, and the byte of each for every byte of that one.

    None if there is no such tensor.
    """
    found = dict(_tables(reading, first))
    return next(((name, found[name], code) for name, code in _tables(reading, second) if name in found), None)


def _tables(reading, name):
    """The tensors of which a tensor is a table, itself first, and its byte for every byte of them."""
    code = np.arange(256, dtype=np.uint8)
    yield name, code
    while name in reading.tables:
        name, table = reading.tables[name]
        code = code[table.view(np.uint8)]
        yield name, code


def _operand(op, index):
    """The Function that an input is."""
    return function_of(op.value(index)) or function_of(op.real(index))


def _function(op, kind=None):
    """The function of floats that a node is, with its attributes."""
    evaluate, defaults = FUNCTIONS[kind or op.kind]
    options = {name: op.take(name, default, type(default)) for name, default in defaults.items()}
    if options.get("approximate", "none") not in ("none", "tanh"):
        raise op.refusal(
            f"its attribute 'approximate' is {options['approximate']!r}, and only none and tanh are supported"
        )

    def function(floats):
        with np.errstate(all="ignore"):
            return evaluate(floats.astype(np.float64), **options).astype(np.float32)

    return function


def _defer(op, reading, function):
    if np.isnan(function.floats).any():
        raise op.refusal("its results are not numbers for some of its inputs")

    def finish(output, y, clamp):
        table = np.clip(quantise(function.floats, *y), *clamp).astype(y.dtype)
        reading.table(op, function.name, output, table)

    reading.defer(op, reading.shape(function.name), finish, function=function)
