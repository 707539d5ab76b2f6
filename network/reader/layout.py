"""Operators that move elements and do not change them: on integers, or on floats that stand for them."""

import math

import numpy as np

from ..arithmetic.ends import limits, quantise
from ..graph import Concat, Pad, Reshape, Transpose
from .reading import change_of
from .values import Real

__all__ = ["concat", "flatten", "pad", "qlinear_concat", "reshape", "transpose"]


def concat(op, reading):
    """Concat: any number of tensors."""
    sources = [_source(op, reading, index) for index in range(len(op))]
    if not sources or len({x is None for _, x in sources}) > 1:
        raise op.refusal("its inputs are not all integers, or all floats that stand for them")
    tensors = [tensor for tensor, _ in sources]
    shape, axis = _joined(op, tensors)
    names = [tensor.name for tensor in tensors]
    if sources[0][1] is None:
        if len({tensor.dtype for tensor in tensors}) > 1:
            raise op.refusal("its inputs are of different types")
        reading.emit_bytes(op, names, Concat(axis, (None,) * len(names)), shape, None)
        return

    def finish(output, y, clamp):
        tables = tuple(change_of(x, y, clamp) for _, x in sources)
        reading.emit(op, names, output, Concat(axis, tables), shape, y.dtype)

    reading.defer(op, shape, finish)


def qlinear_concat(op, reading):
    """QLinearConcat: y's scale and zero point, then of each tensor itself and its."""
    y = op.quantity(0, 1)
    if len(op) < 3 or len(op) % 3 != 2:
        raise op.refusal(f"it has {len(op)} inputs, and must have 2 and 3 for each tensor")
    tensors = [op.tensor(index) for index in range(2, len(op), 3)]
    shape, axis = _joined(op, tensors)
    quantities = [op.quantity(3 * i + 3, 3 * i + 4, tensor.dtype) for i, tensor in enumerate(tensors)]
    tables = tuple(change_of(x, y, limits(y.dtype)) for x in quantities)
    reading.emit(op, [tensor.name for tensor in tensors], op.output, Concat(axis, tables), shape, y.dtype)


def pad(op, reading):
    """Pad with a number."""
    tensor, x = _source(op, reading, 0)
    op.require("mode", "constant", str)
    rank = len(tensor.shape)
    widths = op.take("pads", (), int) if not op.has(1) else op.integers(1, "padding")
    value = op.take("value", 0.0, (float, int))
    if op.has(2):
        value = op.number(2, "value")
    axes = op.integers(3, "axes") if op.has(3) else tuple(range(rank))
    if len(widths) != 2 * len(axes) or len({_axis(op, axis, rank) for axis in axes}) != len(axes):
        raise op.refusal(f"it has {len(widths)} widths of padding for {len(axes)} of {rank} dimensions")
    if min(widths, default=0) < 0:
        raise op.refusal(f"its padding is {list(widths)}: less than 0 is not supported")
    ends = np.zeros((2, rank), int)
    ends[:, [_axis(op, axis, rank) for axis in axes]] = np.reshape(widths, (2, -1))
    if x is not None:
        value = quantise(np.float32(value), x.scale, x.zero, x.dtype).item()
    if value != int(value) or not np.iinfo(tensor.dtype).min <= value <= np.iinfo(tensor.dtype).max:
        raise op.refusal(f"its value {value} is no {tensor.dtype}")
    shape = tuple(int(size) for size in tensor.shape + ends.sum(axis=0))
    before, after = (tuple(map(int, side)) for side in ends)
    reading.emit_bytes(op, (tensor.name,), Pad(before, after, int(value)), shape, x)


def flatten(op, reading):
    """Flatten to two dimensions."""
    tensor, x = _source(op, reading, 0)
    axis = op.take("axis", 1)
    if not -len(tensor.shape) <= axis <= len(tensor.shape):
        raise op.refusal(f"its attribute 'axis' is {axis}, and its input {list(tensor.shape)}")
    axis = axis + len(tensor.shape) if axis < 0 else axis
    shape = math.prod(tensor.shape[:axis]), math.prod(tensor.shape[axis:])
    reading.emit_bytes(op, (tensor.name,), Reshape(shape), shape, x)


def reshape(op, reading):
    """Reshape; -1 is what is left, 0 the size that was there."""
    tensor, x = _source(op, reading, 0)
    asked = op.integers(1, "shape") if op.has(1) else op.take("shape", (), int)
    op.require("allowzero", 0)
    sizes = list(asked)
    for i, size in enumerate(sizes):
        if size == 0 and i < len(tensor.shape):
            sizes[i] = tensor.shape[i]
    if sizes.count(-1) == 1:
        rest = -math.prod(sizes)
        sizes[sizes.index(-1)] = math.prod(tensor.shape) // rest if rest else 0
    if min(sizes, default=1) < 1 or math.prod(sizes) != math.prod(tensor.shape):
        raise op.refusal(f"its input is {list(tensor.shape)}, which cannot be {list(asked)}")
    reading.emit_bytes(op, (tensor.name,), Reshape(tuple(sizes)), tuple(sizes), x)


def transpose(op, reading):
    """Transpose; dimensions are reversed if it does not say."""
    tensor, x = _source(op, reading, 0)
    rank = len(tensor.shape)
    perm = op.take("perm", tuple(range(rank))[::-1])
    if sorted(perm) != list(range(rank)):
        raise op.refusal(f"its attribute 'perm' is {list(perm)}, and its input has {rank} dimensions")
    shape = tuple(tensor.shape[i] for i in perm)
    reading.emit_bytes(op, (tensor.name,), Transpose(perm), shape, x)


def _source(op, reading, index):
    """A tensor of integers, and None or the Quantity of the floats that they stand for."""
    value = op.value(index)
    if isinstance(value, Real):
        return reading.values[value.name], value.quantity
    return op.tensor(index), None


def _joined(op, tensors):
    """The shape of tensors one behind the other, and the axis."""
    shapes = [tensor.shape for tensor in tensors]
    axis = op.take("axis", None)
    if axis is None:
        raise op.refusal("its attribute 'axis' is missing")
    axis = _axis(op, axis, len(shapes[0]))
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1 or len({len(s) for s in shapes}) > 1:
        raise op.refusal(f"its inputs {', '.join(str(list(shape)) for shape in shapes)} do not fit along {axis}")
    total = sum(shape[axis] for shape in shapes)
    return (*shapes[0][:axis], total, *shapes[0][axis + 1 :]), axis


def _axis(op, axis, rank):
    if not -rank <= axis < rank:
        raise op.refusal(f"it has no dimension {axis}: its input has {rank}")
    return axis % rank
