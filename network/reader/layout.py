"""Operators that move elements without changing them: of integers, of floats that stand for integers, of constants."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import onnx

from ..arithmetic import dequantise, limits, quantise
from ..attributes import Concat, Pad, Reshape, Take, Transpose
from ..graph import Tensor
from .operator import MICROSOFT, Constant, Operator, Pending, Quantity, Real, reads
from .reading import change_of, own_quantity

__all__ = ["in_one_row", "move_to", "operand"]


@reads("Concat")
def _concat(op, reading):
    """Concat: any number of tensors."""
    sources = [_source(op, reading, index) for index in range(len(op))]
    floats = [_is_float(source) for source in sources]
    if not sources or len(set(floats)) > 1:
        raise op.refusal("its inputs are not all integers, or all floats that stand for them")
    shape, axis = _joined(op, [op.shape_of(source) for source in sources])
    if not floats[0]:
        names, types = [source.name for source in sources], {source.dtype for source in sources}
        op.refuse_if(len(types) > 1, "its inputs are of different types")
        reading.emit(op, names, op.output, Concat(axis, (None,) * len(names)), shape, *types)
        return

    def finish(output, y, clamp):
        names, tables = [], []
        for source in sources:
            direct = isinstance(source, Real)
            names.append(source.name if direct else reading.integers(op, source, output, y, clamp))
            tables.append(change_of(source.quantity, y, clamp) if direct else None)
        reading.emit(op, names, output, Concat(axis, tuple(tables)), shape, y.dtype)

    quantities = {own_quantity(source) for source in sources}
    reading.defer(op, shape, finish, quantity=quantities.pop() if len(quantities) == 1 else None)


def _source(op, reading, index):
    """An input of a Concat; a constant becomes a tensor, or floats that can become one."""
    value, name = op.value(index), op.input_name(index)
    if not isinstance(value, Constant):
        return operand(op, index)
    if value.scale is not None:
        weights = op.real_weights(index)
        scale, zero = op.single(weights.scale, "scale"), int(op.single(weights.zero, "zero point"))
        tensor = reading.give_constant(f"{op.output}.{name}", weights.array)
        return Real(tensor, Quantity(scale, zero, weights.array.dtype.name), op)
    if value.array.dtype == np.float32:

        def finish(output, y, clamp):
            reading.give_constant(output, np.clip(quantise(value.array, *y), *clamp).astype(y.dtype))

        return Pending(op, value.array.shape, finish)
    op.refuse_if(value.array.dtype.name not in ("uint8", "int8"), f"its input {name!r} is {value.array.dtype}")
    return reading.values[reading.give_constant(f"{op.output}.{name}", value.array)]


@reads("QLinearConcat", domain=MICROSOFT)
def _qlinear_concat(op, reading):
    """QLinearConcat: scale and zero point of y, then each tensor with its own."""
    y = op.quantity(0, 1)
    op.refuse_if(len(op) < 3 or len(op) % 3 != 2, f"it has {len(op)} inputs, and must have 2 and 3 for each tensor")
    tensors = [op.tensor(index) for index in range(2, len(op), 3)]
    shape, axis = _joined(op, [tensor.shape for tensor in tensors])
    quantities = [op.quantity(3 * i + 3, 3 * i + 4, tensor.dtype) for i, tensor in enumerate(tensors)]
    tables = tuple(change_of(x, y, limits(y.dtype)) for x in quantities)
    reading.emit(op, [tensor.name for tensor in tensors], op.output, Concat(axis, tables), shape, y.dtype)


@reads("Pad")
def _pad(op, reading):
    """Pad with one number."""
    source = operand(op, 0)
    sizes = op.shape_of(source)
    mode = op.take("mode", "constant", str)
    rank = len(sizes)
    widths = op.take("pads", (), int) if not op.has(1) else op.integers(1, "padding")
    value = op.take("value", 0.0, (float, int))
    if op.has(2):
        value = op.number(2, "value")
    axes = op.axes(3, rank, tuple(range(rank)))
    if len(widths) != 2 * len(axes):
        raise op.refusal(f"it has {len(widths)} widths of padding for {len(axes)} of {rank} dimensions")
    op.refuse_if(min(widths, default=0) < 0, f"its padding is {list(widths)}: less than 0 is not supported")
    ends = np.zeros((2, rank), int)
    ends[:, list(axes)] = np.reshape(widths, (2, -1))
    if mode != "constant":
        _pad_with_elements(op, reading, source, ends, mode)
        return
    dtype = "float32" if _is_float(source) else source.dtype
    least, most = (-np.inf, np.inf) if _is_float(source) else limits(dtype)
    if not least <= value <= most or (dtype != "float32" and value != int(value)):
        raise op.refusal(f"its value {value} is not {dtype}")
    shape = tuple(int(size) for size in sizes + ends.sum(axis=0))
    before, after = (tuple(map(int, side)) for side in ends)

    def attributes_of(y, clamp):
        number = value if y is None else np.clip(quantise(np.float32(value), *y), *clamp)
        return Pad(before, after, int(number))

    own = own_quantity(source)
    exact = own and dequantise(quantise(np.float32(value), *own), own.scale, own.zero) == np.float32(value)
    reading.move(op, source, shape, attributes_of, own if exact else None)


def _pad_with_elements(op, reading, source, ends, mode):
    """Pad with elements of the tensor itself; ``ends`` are widths before and after each dimension."""
    sizes = op.shape_of(source)
    op.refuse_if(mode not in ("edge", "reflect", "wrap"), f"its attribute 'mode' is {mode!r}, which is not supported")
    if mode == "reflect" and (ends >= np.array(sizes)).any():
        raise op.refusal(f"its padding is not smaller than its input, {list(sizes)}, which is not supported")
    indices = tuple(np.pad(np.arange(size), width, mode) for size, width in zip(sizes, ends.T, strict=True))
    move_to(op, reading, source, tuple(map(len, indices)), Take(indices), op.output)


@reads("Flatten")
def _flatten(op, reading):
    """Flatten to two dimensions."""
    sizes, axis = _sizes(op), op.take("axis", 1)
    least = -len(sizes) if reading.opset >= 11 else 0
    op.refuse_if(not least <= axis <= len(sizes), f"its attribute 'axis' is {axis}, and its input {list(sizes)}")
    axis = axis + len(sizes) if axis < 0 else axis
    _to_shape(op, reading, (math.prod(sizes[:axis]), math.prod(sizes[axis:])))


@reads("Reshape")
def _reshape(op, reading):
    """Reshape; a size of -1 is computed, and 0 keeps the old size unless ``allowzero`` is set."""
    given = _sizes(op)
    asked = op.integers(1, "shape") if op.has(1) else op.take("shape", (), int)
    if op.take("allowzero", 0) and 0 in asked:
        raise op.refusal(f"its shape {list(asked)} with allowzero is one without elements, which is not supported")
    sizes = list(asked)
    for i, size in enumerate(sizes):
        if size == 0 and i < len(given):
            sizes[i] = given[i]
    if sizes.count(-1) == 1:
        rest = -math.prod(sizes)
        sizes[sizes.index(-1)] = math.prod(given) // rest if rest else 0
    if min(sizes, default=0) < 0 or math.prod(sizes) != math.prod(given):
        raise op.refusal(f"its input is {list(given)}, which cannot be {list(asked)}")
    _to_shape(op, reading, tuple(sizes))


@reads("Squeeze")
def _squeeze(op, reading):
    """Squeeze; by default all dimensions of one element."""
    sizes = _sizes(op)
    axes = op.axes(1, len(sizes), tuple(axis for axis, size in enumerate(sizes) if size == 1))
    if any(sizes[axis] != 1 for axis in axes):
        raise op.refusal(f"its input is {list(sizes)}, whose dimensions {list(axes)} are not all of one element")
    _to_shape(op, reading, tuple(size for axis, size in enumerate(sizes) if axis not in axes))


@reads("Unsqueeze")
def _unsqueeze(op, reading):
    """Unsqueeze: adds dimensions of one element."""
    sizes = list(_sizes(op))
    for axis in sorted(op.axes(1, len(sizes), added=True)):
        sizes.insert(axis, 1)
    _to_shape(op, reading, tuple(sizes))


@reads("Transpose")
def _transpose(op, reading):
    """Transpose; by default the dimensions are reversed."""
    sizes = _sizes(op)
    perm = op.take("perm", tuple(range(len(sizes)))[::-1])
    if sorted(perm) != list(range(len(sizes))):
        raise op.refusal(f"its attribute 'perm' is {list(perm)}, and its input has {len(sizes)} dimensions")
    shape = tuple(sizes[i] for i in perm)
    _move(op, reading, shape, Transpose(perm), lambda array: array.transpose(perm))


def _to_shape(op, reading, shape):
    _move(op, reading, shape, Reshape(shape), lambda array: array.reshape(shape))


def _sizes(op):
    """The shape of input 0, which may be a constant."""
    value = op.value(0)
    return op.shape_of(value if isinstance(value, Constant) else operand(op, 0))


def _move(op, reading, shape, attributes, change):
    """Moves a tensor by a node with ``attributes``, and a constant by ``change``, a function of arrays."""
    source = op.value(0)
    if isinstance(source, Constant):
        reading.values[op.output] = _moved_constant(op, source, change)
    else:
        reading.move(op, source, shape, lambda y, clamp: attributes, own_quantity(source), floats=True)


def _moved_constant(op, constant, change):
    """A constant with its elements moved; its scales must still belong to one dimension."""
    array = change(constant.array)
    if constant.scale is None or constant.scale.size == 1:
        return replace(constant, array=array, axis=0)
    shape = [1] * constant.array.ndim
    shape[constant.axis] = -1
    numbers = change(np.broadcast_to(np.arange(constant.scale.size).reshape(shape), constant.array.shape))
    for axis in range(numbers.ndim):
        ones = np.moveaxis(numbers, axis, -1)
        own = ones.reshape(-1, ones.shape[-1])[0]
        if (ones == own).all():
            return Constant(array, constant.scale[own], constant.zero[own], axis)
    raise op.refusal(f"scales of its input {op.input_name(0)!r} no longer belong to one dimension")


def operand(op, index):
    """The value of an input that is a tensor of integers, or floats."""
    value = op.value(index)
    return value if _is_float(value) else op.tensor(index)


def _is_float(value):
    return isinstance(value, Real | Pending) or (isinstance(value, Tensor) and value.dtype == "float32")


def _joined(op, shapes):
    """The shape of tensors joined along the attribute ``axis``, and the axis."""
    axis = op.take("axis", None)
    if not isinstance(axis, int):
        raise op.refusal(f"its attribute 'axis' is {'missing' if axis is None else list(axis)}")
    axis = op.axis(axis, len(shapes[0]))
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1 or len({len(s) for s in shapes}) > 1:
        raise op.refusal(f"its inputs {', '.join(str(list(shape)) for shape in shapes)} do not fit along {axis}")
    total = sum(shape[axis] for shape in shapes)
    return (*shapes[0][:axis], total, *shapes[0][axis + 1 :]), axis


#: Number of each attribute for the added dimension.
_OF_ONE = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 0}


def in_one_row(kernel=None):
    """Decorates a reader so that it also takes feature maps of one dimension of space, as feature maps of one row.

    ``kernel`` is the number of the input that is a kernel, if there is one.
    """
    return lambda reader: partial(_read_row, reader, kernel)


def _read_row(reader, kernel, op, reading):
    value = op.value(0)
    if isinstance(value, Constant) or len(op.shape_of(value)) != 3:
        reader(op, reading)
        return
    images, channels, length = op.shape_of(value)
    proto = onnx.NodeProto()
    proto.CopyFrom(op.proto)
    proto.name = op.name
    proto.input[0], proto.output[0] = (reading.fresh(f"{name}.row") for name in (op.input_name(0), op.output))
    shape = images, channels, 1, length
    move_to(op, reading, value, shape, Reshape(shape), proto.input[0])
    weights = None if kernel is None else op.value(kernel)
    if isinstance(weights, Constant) and weights.array.ndim == 3:
        proto.input[kernel] = reading.fresh(f"{op.input_name(kernel)}.row")
        reading.values[proto.input[kernel]] = replace(weights, array=weights.array[:, :, None])
    for attribute in proto.attribute:
        if attribute.name in _OF_ONE:
            attribute.ints[:] = _widened(attribute.name, list(attribute.ints))
    inner = Operator(proto, reading)
    reader(inner, reading)
    inner.end()
    op.forget()
    result = reading.values[inner.output]
    *shape, _, length = op.shape_of(result)
    move_to(op, reading, result, (*shape, length), Reshape((*shape, length)), op.output)


def _widened(name, numbers):
    half = len(numbers) // 2 if name == "pads" else len(numbers)
    parts = [part for part in (numbers[:half], numbers[half:]) if part]
    return [number for part in parts for number in (_OF_ONE[name], *part)]


def move_to(op, reading, x, shape, attributes, output):
    """Adds a node with ``attributes`` that moves elements of ``x`` to ``output``, of ``shape``."""
    reading.move(op.named(output), x, shape, lambda y, clamp: attributes, own_quantity(x), floats=True)
