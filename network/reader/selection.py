"""Operators that take elements by constant indices of each dimension, also repeatedly."""

import numpy as np

from ..attributes import Reshape, Take, Transpose
from .layout import move_to, operand
from .operator import reads

__all__ = ["source_of", "take"]


@reads("Gather")
def _gather(op, reading):
    """Gather of constant indices, one or a list."""
    x, shape = source_of(op)
    axis = op.axis(op.take("axis", 0), len(shape))
    chosen = op.constant(1, "indices").array
    if chosen.dtype.kind != "i" or chosen.ndim > 1:
        raise op.refusal(f"its indices {op.input_name(1)!r} are not a list of integers")
    size = shape[axis]
    if chosen.size and not -size <= chosen.min() <= chosen.max() < size:
        raise op.refusal(f"its indices are {chosen.min()} to {chosen.max()}, and dimension {axis} has {size} elements")
    indices = _all(shape)
    indices[axis] = np.atleast_1d(chosen) % size
    if chosen.ndim:
        take(op, reading, x, indices, op.output)
        return
    name = reading.fresh(f"{op.output}.one")
    take(op, reading, x, indices, name)
    shape = (*shape[:axis], *shape[axis + 1 :])
    move_to(op, reading, reading.values[name], shape, Reshape(shape), op.output)


@reads("Slice")
def _slice_of(op, reading):
    """Slice, with constant starts, ends, dimensions and steps, or attributes."""
    x, shape = source_of(op)
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
    take(op, reading, x, indices, op.output)


@reads("Split")
def _split(op, reading):
    """Split to parts of given sizes, or to equal parts, one for each output."""
    x, shape = source_of(op)
    axis, count, given = op.axis(op.take("axis", 0), len(shape)), op.take("num_outputs", 0), op.take("split", ())
    op.refuse_if(count and op.has(1), "it has both sizes and their number")
    if op.has(1) or given:
        sizes = op.integers(1, "sizes") if op.has(1) else given
    else:
        parts = count or len(op.proto.output)
        size = -(-shape[axis] // max(parts, 1))
        sizes = (size,) * (parts - 1) + (shape[axis] - size * (parts - 1),)
        if not count and sizes[-1] != size:
            raise op.refusal(f"its {shape[axis]} elements are not {parts} equal parts")
    if sum(sizes) != shape[axis] or len(sizes) != len(op.proto.output) or min(sizes) < 0:
        raise op.refusal(f"its parts are {list(sizes)}, of {shape[axis]} elements, for {len(op.proto.output)} outputs")
    start = 0
    for name, part in zip(op.proto.output, sizes, strict=True):
        indices = _all(shape)
        indices[axis] = np.arange(start, start + part)
        start += part
        if name:
            take(op, reading, x, indices, name)


@reads("Expand")
def _expand(op, reading):
    """Expand to a constant shape, and the dimensions of the input if those are larger."""
    x, shape = source_of(op)
    wanted = op.integers(1, "shape")
    try:
        made = np.broadcast_shapes(shape, wanted)
    except ValueError:
        raise op.refusal(f"its input is {list(shape)}, which does not expand to {list(wanted)}") from None
    if len(made) > len(shape):
        shape = (1,) * (len(made) - len(shape)) + tuple(shape)
        name = reading.fresh(f"{op.output}.wide")
        move_to(op, reading, x, shape, Reshape(shape), name)
        x = reading.values[name]
    indices = [
        np.arange(size) if size == given else np.zeros(size, int) for size, given in zip(made, shape, strict=True)
    ]
    take(op, reading, x, indices, op.output)


@reads("Tile")
def _tile(op, reading):
    """Tile by constant repeats."""
    x, shape = source_of(op)
    repeats = op.integers(1, "repeats")
    if len(repeats) != len(shape) or min(repeats, default=1) < 1:
        raise op.refusal(f"its repeats are {list(repeats)}, and its input is {list(shape)}")
    take(
        op, reading, x, [np.tile(np.arange(size), count) for size, count in zip(shape, repeats, strict=True)], op.output
    )


@reads("DepthToSpace")
def _depth_to_space(op, reading):
    """DepthToSpace: channels become rows and columns of blocks."""
    x, (images, channels, rows, columns), size = _blocks(op)
    op.refuse_if(channels % size**2, f"its {channels} channels are not a multiple of {size**2}")
    deep = channels // size**2
    if op.take("mode", "DCR", str) == "DCR":
        parts, order = (images, size, size, deep, rows, columns), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (images, deep, size, size, rows, columns), (0, 1, 4, 2, 5, 3)
    _rearrange(op, reading, x, parts, order, (images, deep, rows * size, columns * size))


@reads("SpaceToDepth")
def _space_to_depth(op, reading):
    """SpaceToDepth: rows and columns of blocks become channels."""
    x, (images, channels, rows, columns), size = _blocks(op)
    op.refuse_if(rows % size or columns % size, f"its input is {rows} × {columns}, no multiple of {size}")
    parts = images, channels, rows // size, size, columns // size, size
    shape = images, channels * size**2, rows // size, columns // size
    _rearrange(op, reading, x, parts, (0, 3, 5, 1, 2, 4), shape)


def _blocks(op):
    x, shape = source_of(op)
    size = op.take("blocksize", 0)
    op.refuse_if(len(shape) != 4 or size < 1, f"its input is {list(shape)}, and its blocks have {size} rows")
    return x, shape, size


def _rearrange(op, reading, x, parts, order, shape):
    names = [reading.fresh(f"{op.output}.parts"), reading.fresh(f"{op.output}.order"), op.output]
    move_to(op, reading, x, parts, Reshape(parts), names[0])
    perm = tuple(parts[axis] for axis in order)
    move_to(op, reading, reading.values[names[0]], perm, Transpose(order), names[1])
    move_to(op, reading, reading.values[names[1]], shape, Reshape(shape), names[2])


def source_of(op):
    """The value of the first input, and its shape."""
    x = operand(op, 0)
    return x, op.shape_of(x)


def _all(shape):
    return [np.arange(size) for size in shape]


def take(op, reading, x, indices, output):
    """Adds the tensor ``output``: the elements of ``x`` with some indices of each dimension."""
    move_to(op, reading, x, tuple(map(len, indices)), Take(tuple(indices)), output)
