"""Functions of one tensor or of two, element by element: they become tables (docs/network.md, "Exact arithmetic").

A tensor that is a table of another one is known as such, so that the product of x and a function of x is a table too.
"""

import numpy as np

from ..arithmetic import quantise
from ..attributes import Pairs, Reshape, Take
from ..functions import OPERATIONS
from .operator import Constant, Function, Pair, Pending, reads
from .reading import function_of

__all__ = ["binary", "bytes_in_common", "defer_function", "operand_of", "repeated"]


def operand_of(op, index):
    """The Function or the Pair that an input is; refused if it is neither."""
    value = op.value(index)
    return function_of(value) or (isinstance(value, Pending) and value.pair) or function_of(op.real(index))


@reads("Pow")
def binary(op, reading):
    """An operation on functions of one tensor or of two, or on a function and a number."""
    op.refuse_if(len(op) != 2, f"it has {len(op)} inputs, and only two are supported")
    at = [isinstance(op.value(index), Constant) for index in range(2)]
    operation = OPERATIONS[op.kind]
    if any(at):
        index = at.index(False)
        function = operand_of(op, index)
        number = np.float32(op.number(1 - index, "operand"))
        rank = len(op.shape_of(op.value(index)))
        op.refuse_if(op.value(1 - index).array.ndim > rank, f"its operand has more dimensions than the other, {rank}")
        operands = (function.floats, number) if index == 0 else (number, function.floats)
        defer_function(op, reading, function._replace(floats=operation(*operands).astype(np.float32)))
        return
    functions = [operand_of(op, index) for index in range(2)]
    axes = _axes_of(reading, [name for function in functions for name in _names(function)])
    op.refuse_if(len(axes) > 2, "its inputs are computed from more than two tensors, which is not supported on floats")
    operands = [_along(function, axes) for function in functions]
    floats = np.broadcast_to(operation(*operands).astype(np.float32), (256,) * len(axes))
    made = Function(next(iter(axes)), floats) if len(axes) == 1 else Pair(tuple(axes), floats)
    defer_function(op, reading, made)


def _names(function):
    return (function.name,) if isinstance(function, Function) else function.names


def _axes_of(reading, names):
    """The tensors of which all ``names`` are tables: for each a dict of the bytes of ``names`` by its own bytes."""
    axes = {}
    for name in dict.fromkeys(names):
        for base, codes in axes.items():
            common = bytes_in_common(reading, base, name)
            if common:
                nearest, own, others = common
                del axes[base]
                axes[nearest] = {other: code[own] for other, code in codes.items()} | {name: others}
                break
        else:
            axes[name] = {name: np.arange(256)}
    return axes


def _along(function, axes):
    """The floats of a function as an array with a dimension for each of ``axes``."""
    places = []
    for name in _names(function):
        (axis, codes), = ((axis, codes[name]) for axis, codes in enumerate(axes.values()) if name in codes)  # fmt: skip
        places.append(codes.reshape([256 if axis == each else 1 for each in range(len(axes))]))
    return function.floats[tuple(places)]


def defer_function(op, reading, function):
    """Makes the output of a node the Pending of a Function or a Pair."""
    if isinstance(function, Pair):
        _defer_pair(op, reading, function)
        return
    if np.isnan(function.floats).any():
        raise op.refusal("its results are not numbers for some of its inputs", host="floats")

    def finish(output, y, clamp):
        table = np.clip(quantise(function.floats, *y), *clamp).astype(y.dtype)
        reading.table(op, function.name, output, table)

    reading.defer(op, reading.shape(function.name), finish, function=function)


def _defer_pair(op, reading, pair):
    shapes = [tuple(reading.shape(name)) for name in pair.names]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise op.refusal(f"its inputs are {list(shapes[0])} and {list(shapes[1])}, which do not fit") from None

    def finish(output, y, clamp):
        names = tuple(repeated(op, reading, name, shape) for name in pair.names)
        floats = np.where(np.isnan(pair.floats), np.float32(-np.inf), pair.floats)
        table = np.clip(quantise(floats, *y), *clamp).astype(y.dtype)
        reading.emit(op, names, output, Pairs(table), shape, y.dtype)

    reading.defer(op, shape, finish, pair=pair)


def bytes_in_common(reading, first, second):
    """The nearest tensor of which two tensors are tables, and for every byte of it the bytes of both; None if none."""
    codes = dict(_tables(reading, first))
    return next(((name, codes[name], code) for name, code in _tables(reading, second) if name in codes), None)


def _tables(reading, name):
    """The tensors of which a tensor is a table, itself first, and its byte for each of their bytes."""
    code = np.arange(256, dtype=np.uint8)
    yield name, code
    while name in reading.tables:
        name, table = reading.tables[name]
        code = code[table.view(np.uint8)]
        yield name, code


def repeated(op, reading, name, shape):
    """The name of a tensor like ``name``, with dimensions of one element repeated so that it is of ``shape``."""
    given = reading.shape(name)
    wide = (1,) * (len(shape) - len(given)) + tuple(given)
    if wide != tuple(given):
        reshaped = reading.fresh(f"{op.output}.operand")
        reading.emit(op, (name,), reshaped, Reshape(wide), wide, reading.type_of(name))
        name = reshaped
    if wide != tuple(shape):
        repeated = reading.fresh(f"{op.output}.repeated")
        indices = tuple(np.zeros(size, int) if one == 1 else np.arange(size)
                        for one, size in zip(wide, shape, strict=True))  # fmt: skip
        reading.emit(op, (name,), repeated, Take(indices), shape, reading.type_of(name))
        name = repeated
    return name
