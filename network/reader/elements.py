"""Operators that take elements one by one: clamps, softmax, and functions of one tensor."""

import math

import numpy as np

from ..arithmetic import limits, numbers
from ..attributes import Concat, Softmax
from ..functions import FUNCTIONS, exponentials, softmax_of_floats
from ..graph import Tensor
from .operator import MICROSOFT, Constant, Function, Pending, Real, reads
from .reading import function_of, own_quantity
from .tables import defer_function, operand_of

__all__ = []


@reads(*FUNCTIONS)
@reads("Gelu", domain=MICROSOFT)
def _unary(op, reading):
    """A function of floats, possibly with attributes."""
    evaluate, value = _function(op), op.value(0)
    if _of_host(value):
        reading.defer_floats(op, value.shape, reading.apply(op, value, evaluate))
        return
    function = operand_of(op, 0)
    defer_function(op, reading, function._replace(floats=evaluate(function.floats)))


@reads("Softmax")
def _softmax(op, reading):
    """Softmax of floats; quantised, its results are the same as of QLinearSoftmax."""
    value, axes = op.value(0), _axes(op, reading.opset, -1 if reading.opset >= 13 else 1)
    if _of_host(value):
        real, shape = None, value.shape
    else:
        real = value = op.real(0)
        shape = reading.shape(real.name)

    def finish(output, y, clamp):
        _emit_softmax(op, reading, real.name, real.quantity, output, y, clamp, axes)

    floats = reading.apply(op, value, lambda x: softmax_of_floats(x, axes))
    reading.defer_floats(op, shape, floats, finish if real else None)


def _of_host(value):
    """Whether a value is floats that no integers are, and that the host computes."""
    alone = isinstance(value, Pending) and value.floats is not None and value.pair is None
    return alone and own_quantity(value) is None


@reads("QLinearSoftmax", domain=MICROSOFT)
def _qlinear_softmax(op, reading):
    """QLinearSoftmax: x, its scale and zero point, y's."""
    x, axes = op.tensor(0), _axes(op, op.take("opset", 13), -1)
    y = op.quantity(3, 4, x.dtype)
    _emit_softmax(op, reading, x.name, op.quantity(1, 2, x.dtype), op.output, y, limits(y.dtype), axes)


def _axes(op, opset, default):
    """Dimensions over which the results add up to 1: before version 13 all from one dimension on."""
    rank = len(op.shape_of(op.value(0)))
    axis = op.axis(op.take("axis", default), rank)
    return (axis,) if opset >= 13 else tuple(range(axis, rank))


def _emit_softmax(op, reading, name, x, output, y, clamp, axes):
    shape = reading.shape(name)
    table = exponentials(x.scale, math.prod(shape[axis] for axis in axes))
    attributes = Softmax(axes, table, int(np.float32(1) / y.scale), y.zero, *clamp)
    reading.emit(op, (name,), output, attributes, shape, y.dtype)


@reads("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def _qlinear_unary(op, reading):
    """QLinearSigmoid, QLinearLeakyRelu: x, its scale and zero point, y's."""
    evaluate, x = _function(op, op.kind.removeprefix("QLinear")), op.tensor(0)
    y = op.quantity(3, 4, x.dtype)
    floats = function_of(Real(x.name, op.quantity(1, 2, x.dtype), op)).floats
    defer_function(op, reading, Function(x.name, evaluate(floats)))
    reading.values.pop(op.output).finish(op.output, y, limits(y.dtype))


def _function(op, kind=None):
    """The function of floats that a node computes, with its attributes applied."""
    evaluate, defaults = FUNCTIONS[kind or op.kind]
    options = {name: op.take(name, default, type(default)) for name, default in defaults.items()}
    if options.get("approximate", "none") not in ("none", "tanh"):
        raise op.refusal(
            f"its attribute 'approximate' is {options['approximate']!r}, and only none and tanh are supported",
            host="nothing",
        )

    def function(floats):
        with np.errstate(all="ignore"):
            return evaluate(floats.astype(np.float64), **options).astype(np.float32)

    return function


@reads("Relu")
def _relu(op, reading):
    """Relu: a clamp to 0 and more."""
    _clamp(op, reading, 0, np.inf)


@reads("Clip")
def _clip(op, reading):
    """Clip, with limits as inputs or as attributes."""
    ends = [op.take("min", -np.inf, (float, int)), op.take("max", np.inf, (float, int))]
    for index in (1, 2):
        if op.has(index):
            ends[index - 1] = op.number(index, "limit")
    op.refuse_if(not ends[0] <= ends[1], f"its limits are {ends[0]} and {ends[1]}")
    _clamp(op, reading, *ends)


def _clamp(op, reading, low, high):
    value = op.value(0)
    if isinstance(value, Tensor) and value.dtype != "float32":
        least, most = limits(value.dtype)
        table = np.clip(numbers(value.dtype), max(low, least), min(high, most)).astype(value.dtype)
        reading.emit(op, (value.name,), op.output, Concat(0, (table,)), value.shape, value.dtype)
    elif isinstance(value, Constant):
        op.tensor(0)  # raises the error
    else:
        reading.clamp(op, value if isinstance(value, Pending) else _pending(op, reading, value), low, high)


def _pending(op, reading, value):
    """A Pending of the floats of a value."""

    def finish(output, y, clamp):
        reading.make(op, value, output, y, clamp)

    return Pending(op, op.shape_of(value), finish, quantity=own_quantity(value), function=function_of(value))
