"""Reductions over any dimensions, and the largest or smallest of tensors, as windows of feature maps."""

from math import prod

import numpy as np

from ..arithmetic import average_scale, change_table, limits, numbers
from ..attributes import Concat, Conv, Pool, Reshape, Transpose
from .layout import move_to
from .operator import Constant, Pending, reads
from .reading import own_quantity
from .tables import binary, bytes_in_common
from .windows import Windows, sums_of_windows

__all__ = []

#: Most rows, and columns, of a window.
_MOST = 256
#: Most results of a function that are added up.
_TERMS = 32768
#: The weight of the higher table of a function.
_HIGH = 255
#: Floats are multiples of a step if they are within so much of it.
_EXACT = 0.01


@reads("ReduceMax", "ReduceMean", "ReduceSum")
def _reduce(op, reading):
    """ReduceMax, ReduceMean or ReduceSum of floats, over any dimensions."""
    keep, idle = op.take("keepdims", 1), op.take("noop_with_empty_axes", 0)
    function = _function(op)
    real = None if function else op.real(0)
    shape = reading.shape((function or real).name)
    axes = op.axes(1, len(shape), () if idle else tuple(range(len(shape))))
    op.refuse_if(not axes, "it has no dimensions to reduce")
    after = tuple(1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes)
    if function:
        _sum_of_function(op, reading, function, axes, after)
        return
    if len(shape) != 4 or not set(axes) <= {2, 3}:
        real = _behind_others(op, reading, real, axes)
        axes = (2, 3)
    x = reading.values[real.name]
    kernel = tuple(x.shape[axis] if axis in axes else 1 for axis in (2, 3))
    op.refuse_if(max(kernel) > _MOST, f"it reduces {list(kernel)} rows and columns, and at most {_MOST} are supported")
    count = tuple(size - length + 1 for size, length in zip(x.shape[2:], kernel, strict=True))
    windows, reduced = Windows((1, 1), (0,) * 4, (1, 1), count), f"{op.output}.reduced"
    if op.kind == "ReduceMax":

        def attributes_of(y, clamp):
            return Pool(kind="max", kernel=kernel, stride=(1, 1), pad=(0,) * 4, dilation=(1, 1), minimum=clamp[0],
                        maximum=clamp[1])  # fmt: skip

        reading.move(op.named(reduced), real, (*x.shape[:2], *count), attributes_of, own_quantity(real))
    else:
        scale = real.quantity.scale
        size = prod(kernel)
        scales = {"ReduceMean": lambda y: average_scale(scale, y, size), "ReduceSum": lambda y: scale / y}
        made, finish = sums_of_windows(op, reading, x, real.quantity, kernel, windows, scales[op.kind])
        reading.values[reduced] = Pending(op, made, finish)
    value = reading.values.pop(reduced)
    reading.move(op, value, after, lambda y, clamp: Reshape(after), own_quantity(value))


def _function(op):
    """The Function of one tensor that is added up, if no integers are its floats; otherwise None."""
    value = op.value(0)
    alone = isinstance(value, Pending) and own_quantity(value) is None and op.kind != "ReduceMax"
    return value.function if alone else None


def _sum_of_function(op, reading, function, axes, after):
    """The sum or mean of f(x): a product of two tables of x, f / step = 255 · high + low + base, with 255 and 1."""
    shape = reading.shape(function.name)
    order = (*(axis for axis in range(len(shape)) if axis not in axes), *axes)
    count = prod(shape[axis] for axis in axes)
    rows = prod(shape) // count
    op.refuse_if(count > _TERMS, f"it adds up {count} results of a function, and at most {_TERMS} are supported")
    step, base, codes = _fixed_point(function.floats, count)
    tables = tuple(part.astype(np.uint8) for part in np.divmod(codes, _HIGH))
    weight = np.repeat(np.array([_HIGH, 1], np.uint8), count).reshape(1, 2 * count, 1, 1)

    def finish(output, y, clamp):
        turned, folded, both, summed = (reading.fresh(f"{output}.{each}")
                                        for each in ("turned", "rows", "tables", "sums"))  # fmt: skip
        dtype, sizes = reading.type_of(function.name), tuple(shape[axis] for axis in order)
        reading.emit(op, (function.name,), turned, Transpose(order), sizes, dtype)
        reading.emit(op, (turned,), folded, Reshape((rows, count)), (rows, count), dtype)
        reading.emit(op, (folded, folded), both, Concat(1, tables), (rows, 2 * count), "uint8")
        scale = average_scale(step, y.scale, count if op.kind == "ReduceMean" else 1)
        node = Conv(weight=weight, x_zero=0, w_zero=np.zeros(1, np.int32), bias=np.array([count * base], np.int32),
                    scale=scale.reshape(1), y_zero=y.zero, minimum=clamp[0], maximum=clamp[1], matrix=True)  # fmt: skip
        reading.emit(op, (both,), summed, node, (rows, 1), y.dtype)
        reading.emit(op, (summed,), output, Reshape(after), after, y.dtype)

    reading.defer(op, after, finish)


def _fixed_point(floats, count):
    """Step, base and codes, at most 255 · 256 - 1, so that step · (base + code) are 256 floats, rounded.

    If the floats are multiples of a step, as squares are, this one is taken. Sums of ``count`` have 31 bits.
    """
    floats = floats.astype(np.float64)
    most = _HIGH * 256 - 1
    step = max(np.ptp(floats) / most, np.abs(floats).max() * count / (1 << 30), np.finfo(np.float32).tiny)
    least = np.diff(np.unique(np.abs(floats)))
    least = least[least > step].min(initial=np.inf)
    if np.isfinite(least) and np.abs(floats / least - np.rint(floats / least)).max() < _EXACT:
        step = least
    steps = np.rint(floats / np.float32(step)).astype(np.int64)
    return np.float32(step), int(steps.min()), steps - steps.min()


def _behind_others(op, reading, real, axes):
    """A Real as a feature map with the dimensions ``axes`` in its rows and columns, all others in its channels."""
    shape = reading.shape(real.name)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    order = (*kept, *axes)
    count = prod(shape[axis] for axis in axes)
    rows = next((rows for rows in range(-(-count // _MOST), min(count, _MOST) + 1) if count % rows == 0), None)
    op.refuse_if(rows is None, f"it reduces {count} elements, which are not at most {_MOST} rows and columns")
    steps = (tuple(shape[axis] for axis in order), Transpose(order)), ((1, prod(shape[axis] for axis in kept), rows,
                                                                       count // rows), Reshape)  # fmt: skip
    (turned, transpose), (folded, _) = steps
    names = [reading.fresh(f"{op.output}.{each}") for each in ("turned", "map")]
    move_to(op, reading, real, turned, transpose, names[0])
    move_to(op, reading, reading.values[names[0]], folded, Reshape(folded), names[1])
    return reading.real(names[1])


@reads("Max", "Min")
def _extreme(op, reading):
    """Max or Min of tensors of one shape; of a tensor and a number, or functions of one tensor, as a function."""
    count = len(op)
    if count < 2 or any(isinstance(op.value(index), Constant) for index in range(count)):
        binary(op, reading)
        return
    reals = [reading.real(op.input_name(index)) for index in range(count)]
    if None in reals or (count == 2 and bytes_in_common(reading, *(real.name for real in reals))):
        binary(op, reading)
        return
    shapes = [reading.shape(real.name) for real in reals]
    apart = len(set(shapes)) > 1 or len(shapes[0]) != 4 or shapes[0][2] > _MOST
    if apart and count == 2:
        binary(op, reading)
        return
    if apart or count > _MOST:
        listed = " and ".join(str(list(shape)) for shape in shapes[:4])
        raise op.refusal(f"its inputs are {listed}: only equal feature maps of at most {_MOST} rows are supported")
    images, channels, rows, columns = shapes[0]

    def finish(output, y, clamp):
        least, most = limits(y.dtype)
        inverse = (least + most - numbers(y.dtype).astype(int)).astype(y.dtype)
        tables = []
        for real in reals:
            x = real.quantity
            table = change_table((x.scale, x.zero), x.dtype, (y.scale, y.zero), y.dtype)
            tables.append(inverse[table.view(np.uint8)] if op.kind == "Min" else table)
        both, larger = (reading.fresh(f"{output}.{each}") for each in ("both", "larger"))
        reading.emit(op, [real.name for real in reals], both, Concat(2, tuple(tables)),
                     (images, channels, count * rows, columns), y.dtype)  # fmt: skip
        pool = Pool(
            kind="max", kernel=(count, 1), stride=(1, 1), pad=(0,) * 4, dilation=(rows, 1), minimum=least, maximum=most
        )
        reading.emit(op, (both,), larger, pool, shapes[0], y.dtype)
        result = inverse if op.kind == "Min" else numbers(y.dtype)
        reading.table(op, larger, output, np.clip(result, *clamp).astype(y.dtype))

    reading.defer(op, shapes[0], finish)
