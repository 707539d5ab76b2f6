"""Operators that take some elements, or some of them several times: by constant indices of each dimension."""

import numpy as np
import onnx

from ..graph import Reshape, Take, Transpose
from .layout import operand
from .operator import Operator
from .reading import own_quantity

__all__ = ["depth_to_space", "gather", "resize", "slice_of", "space_to_depth", "split"]


def gather(op, reading):
    """Gather of constant indices, one or a list."""
    x, shape = _source(op)
    axis = op.axis(op.take("axis", 0), len(shape))
    chosen = op.constant(1, "indices").array
    if chosen.dtype.kind != "i" or chosen.ndim > 1:
        raise op.refusal(f"its indices {op.input_name(1)!r} are no list of integers")
    size = shape[axis]
    if chosen.size and not -size <= chosen.min() <= chosen.max() < size:
        raise op.refusal(f"its indices are {chosen.min()} to {chosen.max()}, and dimension {axis} has {size} elements")
    indices = _all(shape)
    indices[axis] = np.atleast_1d(chosen) % size
    if chosen.ndim:
        _take(op, reading, x, indices, op.output)
        return
    name = reading.fresh(f"{op.output}.one")
    _take(op, reading, x, indices, name)
    _move(op, reading, reading.values[name], (*shape[:axis], *shape[axis + 1 :]), Reshape, op.output)


def slice_of(op, reading):
    """Slice, with starts, ends, dimensions and steps as constants, or as attributes."""
    x, shape = _source(op)
    if len(op) == 1:
        starts, ends = op.take("starts", ()), op.take("ends", ())
    else:
        starts, ends = op.integers(1, "starts"), op.integers(2, "ends")
    axes = op.axes(3, len(shape), tuple(range(len(starts))))
    steps = op.integers(4, "steps") if op.has(4) else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise op.refusal(f"its starts are {list(starts)}, its ends {list(ends)} and its steps {list(steps)}")
    indices = _all(shape)
    for axis, first, last, step in zip(axes, starts, ends, steps, strict=True):
        indices[axis] = np.arange(shape[axis])[first:last:step]
    _take(op, reading, x, indices, op.output)


def split(op, reading):
    """Split: parts of given sizes, or as many equal ones as there are outputs."""
    x, shape = _source(op)
    axis, count = op.axis(op.take("axis", 0), len(shape)), op.take("num_outputs", len(op.outputs))
    size, given = -(-shape[axis] // max(count, 1)), op.take("split", ())
    equal = (size,) * (count - 1) + (shape[axis] - size * (count - 1),)
    sizes = op.integers(1, "sizes") if op.has(1) else given or equal
    if sum(sizes) != shape[axis] or len(sizes) != len(op.proto.output) or min(sizes) < 0:
        raise op.refusal(f"its parts are {list(sizes)}, of {shape[axis]} elements, for {len(op.proto.output)} outputs")
    start = 0
    for name, part in zip(op.proto.output, sizes, strict=True):
        indices = _all(shape)
        indices[axis] = np.arange(start, start + part)
        start += part
        if name:
            _take(op, reading, x, indices, name)


def resize(op, reading):
    """Resize to the nearest element."""
    x, shape = _source(op)
    op.require("mode", "nearest", str)
    for name, default in _OF_OTHER_MODES.items():
        op.take(name, default, type(default))
    op.require("keep_aspect_ratio_policy", "stretch", str)
    old = reading.opset < 11
    to_source = op.take("coordinate_transformation_mode", "asymmetric" if old else "half_pixel", str)
    rounding = op.take("nearest_mode", "floor" if old else "round_prefer_floor", str)
    if to_source not in _TO_SOURCE or rounding not in _ROUNDINGS:
        raise op.refusal(f"its modes {to_source!r} and {rounding!r} are not supported")
    axes = op.axes(len(op), len(shape), tuple(range(len(shape))))
    at = 1 if old else 2
    if op.has(3):
        sizes = op.integers(3, "sizes")
        factors = [np.float32(size) / np.float32(shape[axis]) for axis, size in zip(axes, sizes, strict=False)]
    else:
        factors = op.constant(at, "scales").array.astype(np.float32).reshape(-1)
        sizes = [int(np.float32(shape[axis]) * factor) for axis, factor in zip(axes, factors, strict=False)]
    if len(sizes) != len(axes) or not all(np.isfinite(factors)) or min(factors) <= 0 or (old and min(factors) < 1):
        raise op.refusal(f"its factors {[float(factor) for factor in factors]} are not supported")
    indices = _all(shape)
    for axis, size, factor in zip(axes, sizes, factors, strict=True):
        if factor != 1:
            places = _TO_SOURCE[to_source](np.arange(size, dtype=np.float32), factor, shape[axis], size)
            indices[axis] = np.clip(_ROUNDINGS[rounding](places), 0, shape[axis] - 1).astype(np.int64)
    _take(op, reading, x, indices, op.output)


#: Attributes that mean nothing where no elements are averaged.
_OF_OTHER_MODES = {"antialias": 0, "exclude_outside": 0, "cubic_coeff_a": 0.0, "extrapolation_value": 0.0}


def _half_pixel(x, factor, size, made):
    return (x + np.float32(0.5)) / factor - np.float32(0.5)


#: Where an index of the output lies in the input: of indices, their factor, and how many there are in both.
_TO_SOURCE = {
    "asymmetric": lambda x, factor, size, made: x / factor,
    "half_pixel": _half_pixel,
    "pytorch_half_pixel": lambda x, *rest: _half_pixel(x, *rest) if rest[-1] > 1 else np.zeros_like(x),
    "align_corners": lambda x, factor, size, made: x * np.float32(size - 1) / np.float32(max(made - 1, 1)),
}
_ROUNDINGS = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
    "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5)),
}


def depth_to_space(op, reading):
    """DepthToSpace: channels become rows and columns of a block."""
    x, (images, channels, rows, columns), size = _blocks(op)
    if channels % size**2:
        raise op.refusal(f"its {channels} channels are no multiple of {size**2}")
    deep = channels // size**2
    if op.take("mode", "DCR", str) == "DCR":
        parts, order = (images, size, size, deep, rows, columns), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (images, deep, size, size, rows, columns), (0, 1, 4, 2, 5, 3)
    _rearrange(op, reading, x, parts, order, (images, deep, rows * size, columns * size))


def space_to_depth(op, reading):
    """SpaceToDepth: rows and columns of a block become channels."""
    x, (images, channels, rows, columns), size = _blocks(op)
    if rows % size or columns % size:
        raise op.refusal(f"its input is {rows} × {columns}, no multiple of {size}")
    parts = images, channels, rows // size, size, columns // size, size
    shape = images, channels * size**2, rows // size, columns // size
    _rearrange(op, reading, x, parts, (0, 3, 5, 1, 2, 4), shape)


def _blocks(op):
    x, shape = _source(op)
    size = op.take("blocksize", 0)
    if len(shape) != 4 or size < 1:
        raise op.refusal(f"its input is {list(shape)}, and its blocks have {size} rows")
    return x, shape, size


def _rearrange(op, reading, x, parts, order, shape):
    names = [reading.fresh(f"{op.output}.parts"), reading.fresh(f"{op.output}.order"), op.output]
    _move(op, reading, x, parts, Reshape, names[0])
    perm = tuple(parts[axis] for axis in order)
    _move(op, reading, reading.values[names[0]], perm, lambda _: Transpose(order), names[1])
    _move(op, reading, reading.values[names[1]], shape, Reshape, names[2])


def _source(op):
    x = operand(op, 0)
    return x, op.shape_of(x)


def _all(shape):
    return [np.arange(size) for size in shape]


def _take(op, reading, x, indices, output):
    _move(op, reading, x, tuple(len(part) for part in indices), lambda _: Take(tuple(indices)), output)


def _move(op, reading, x, shape, attributes_of, output):
    """A result of the node, which may have several, or another tensor on the way."""
    node = Operator(onnx.helper.make_node(op.kind, [], [output], op.name), reading)
    reading.move(node, x, shape, lambda y, clamp: attributes_of(shape), own_quantity(x), floats=True)
