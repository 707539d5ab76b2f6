"""Operators that take elements by constant indices of each dimension, also repeatedly."""

import numpy as np

from ..arithmetic.nearest import COORDINATES, ROUNDINGS, nearest_elements
from ..graph import Reshape, Transpose
from .layout import operand
from .upsampling import linear_of

__all__ = ["depth_to_space", "expand", "gather", "resize", "slice_of", "source_of", "space_to_depth", "split", "tile"]


def gather(op, reading):
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
        reading.take(op, x, indices, op.output)
        return
    name = reading.fresh(f"{op.output}.one")
    reading.take(op, x, indices, name)
    shape = (*shape[:axis], *shape[axis + 1 :])
    reading.rearrange(op, reading.values[name], shape, Reshape(shape), op.output)


def slice_of(op, reading):
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
    reading.take(op, x, indices, op.output)


def split(op, reading):
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
            reading.take(op, x, indices, name)


def expand(op, reading):
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
        reading.rearrange(op, x, shape, Reshape(shape), name)
        x = reading.values[name]
    indices = [
        np.arange(size) if size == given else np.zeros(size, int) for size, given in zip(made, shape, strict=True)
    ]
    reading.take(op, x, indices, op.output)


def tile(op, reading):
    """Tile by constant repeats."""
    x, shape = source_of(op)
    repeats = op.integers(1, "repeats")
    if len(repeats) != len(shape) or min(repeats, default=1) < 1:
        raise op.refusal(f"its repeats are {list(repeats)}, and its input is {list(shape)}")
    reading.take(
        op, x, [np.tile(np.arange(size), count) for size, count in zip(shape, repeats, strict=True)], op.output
    )


def depth_to_space(op, reading):
    """DepthToSpace: channels become rows and columns of blocks."""
    x, (images, channels, rows, columns), size = _blocks(op)
    op.refuse_if(channels % size**2, f"its {channels} channels are not a multiple of {size**2}")
    deep = channels // size**2
    if op.take("mode", "DCR", str) == "DCR":
        parts, order = (images, size, size, deep, rows, columns), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (images, deep, size, size, rows, columns), (0, 1, 4, 2, 5, 3)
    _rearrange(op, reading, x, parts, order, (images, deep, rows * size, columns * size))


def space_to_depth(op, reading):
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
    reading.rearrange(op, x, parts, Reshape(parts), names[0])
    perm = tuple(parts[axis] for axis in order)
    reading.rearrange(op, reading.values[names[0]], perm, Transpose(order), names[1])
    reading.rearrange(op, reading.values[names[1]], shape, Reshape(shape), names[2])


def source_of(op):
    """The value of the first input, and its shape."""
    x = operand(op, 0)
    return x, op.shape_of(x)


def _all(shape):
    return [np.arange(size) for size in shape]


def resize(op, reading):
    """Resize: x, region, scales, sizes; before version 11 x and scales."""
    x, shape = source_of(op)
    old = reading.opset < 11
    mode = op.take("mode", "nearest", str)
    if mode not in ("linear", "nearest"):
        raise op.refusal(f"its attribute 'mode' is {mode!r}, and only 'nearest' and 'linear' are supported")
    for name in ("antialias", "exclude_outside"):
        op.require(name, 0)
    for name in ("cubic_coeff_a", "extrapolation_value"):  # of other modes
        op.take(name, 0.0, float)
    op.require("keep_aspect_ratio_policy", "stretch", str)
    coordinates = op.take("coordinate_transformation_mode", "asymmetric" if old else "half_pixel", str)
    rounding = op.take("nearest_mode", "floor" if old else "round_prefer_floor", str)
    for name, given, known in (
        ("coordinate_transformation_mode", coordinates, COORDINATES), ("nearest_mode", rounding, ROUNDINGS),
    ):  # fmt: skip
        op.refuse_if(given not in known, f"its attribute {name!r} is {given!r}: {', '.join(known)} are supported")
    if not old:
        op.skip(1)  # the region of tf_crop_and_resize
    axes = op.axes(None, len(shape), tuple(range(len(shape))))
    sizes, factors = _sizes(op, [shape[axis] for axis in axes], 1 if old else 2)
    if len(sizes) != len(axes) or not all(np.isfinite(factors)) or min(factors) <= 0 or (old and min(factors) < 1):
        raise op.refusal(f"its factors {[float(factor) for factor in factors]} are not supported")
    indices = [np.arange(size) for size in shape]
    sizes_after = list(shape)
    for axis, size in zip(axes, sizes, strict=True):
        sizes_after[axis] = size
    if mode == "linear" and sizes_after != list(shape):
        of_all = dict(zip(axes, factors, strict=True))
        linear_of(op, reading, sizes_after, [of_all.get(axis, 1) for axis in range(len(shape))], coordinates)
        return
    if sizes_after != list(shape):  # with factors that change no size ONNX Runtime copies
        for axis, size, factor in zip(axes, sizes, factors, strict=True):
            if factor != 1:
                indices[axis] = nearest_elements(shape[axis], size, factor, coordinates, rounding)
    reading.take(op, x, indices, op.output)


def _sizes(op, before, scales):
    """Sizes and float32 factors of the resized dimensions, from the input ``scales`` or from sizes."""
    factors = op.constant(scales, "scales").array if op.has(scales) else np.zeros(0, np.float32)
    op.refuse_if(factors.dtype != np.float32, f"its scales {op.input_name(scales)!r} are {factors.dtype}, not float32")
    factors = list(factors.reshape(-1))
    if not op.has(3):
        return [int(np.float32(size) * factor) for size, factor in zip(before, factors, strict=False)], factors
    op.refuse_if(factors, "it has both scales and sizes")
    sizes = op.integers(3, "sizes")
    return sizes, [np.float32(size) / np.float32(given) for given, size in zip(before, sizes, strict=False)]
