"""Windows over a feature map, and operators that take their average or maximum."""

from functools import partial
from typing import NamedTuple

import numpy as np

from ..arithmetic import average_scale, limits
from ..attributes import Pool
from .layout import in_one_row, operand
from .operator import MICROSOFT, reads
from .reading import own_quantity

__all__ = ["Windows", "sums_of_windows", "take_windows"]

#: Most rows or columns of a feature map with its padding.
_MOST = 1 << 20


class Windows(NamedTuple):
    """Fields of ``Conv`` and ``Pool``, the number of rows and columns of windows, and ``ceil_mode``."""

    stride: tuple[int, int]
    pad: tuple[int, int, int, int]
    dilation: tuple[int, int]
    count: tuple[int, int]
    ceil: bool = False


#: Of a single window.
_POINT = Windows((1, 1), (0, 0, 0, 0), (1, 1), (1, 1))


def take_windows(op, kernel, size, *, pool=False):
    """The :class:`Windows` that the attributes of a node give.

    Parameters
    ----------
    op : Operator
    kernel, size : (int, int)
        Sizes of the kernel and of the feature map.
    pool : bool
        Whether they are windows of a pool, whose padding must be smaller than a window. Where SAME asks for negative
        padding, ONNX Runtime shifts the windows of a pool, which ONNX does not define, so that it is refused; a
        convolution has no padding then.
    """
    strides = op.sizes("strides", (1, 1), 1)
    dilations = op.sizes("dilations", (1, 1), 1)
    pads = op.sizes("pads", (0, 0, 0, 0), 0)
    ceil = bool(op.take("ceil_mode", 0))
    how = op.take("auto_pad", "NOTSET", str)
    if how not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise op.refusal(f"its attribute 'auto_pad' is {how!r}, which is not supported")
    op.refuse_if(how != "NOTSET" and any(pads), f"it has pads and auto_pad {how!r}")
    if pool and any(pad >= length for pad, length in zip(pads, (*kernel, *kernel), strict=True)):
        raise op.refusal(f"its padding {list(pads)} is not smaller than its window {list(kernel)}")
    op.refuse_if(how.startswith("SAME") and max(dilations) > 1, f"auto_pad {how!r} is not supported with dilations")
    spans = [(length - 1) * step + 1 for length, step in zip(kernel, dilations, strict=True)]
    ends, counts = [], []
    for i in range(2):
        before, after = pads[i], pads[i + 2]
        if how.startswith("SAME"):
            total = (-(-size[i] // strides[i]) - 1) * strides[i] + spans[i] - size[i]
            if total < 0 and pool:
                raise op.refusal(f"auto_pad {how!r} is not supported where a stride leaves elements out at the end")
            total = max(total, 0)
            before = total // 2 if how == "SAME_UPPER" else -(-total // 2)
            after = total - before
        room = size[i] + before + after - spans[i]
        if room < 0:
            raise op.refusal(
                f"its window of {spans[i]} is larger than the feature map of {size[i]} with padding of {before + after}"
            )
        if size[i] + before + after > _MOST:
            raise op.refusal(f"its feature map of {size[i]} has padding of {before + after}: {_MOST:,} is the most")
        count = room // strides[i] + 1
        # The last window may extend into the padding, but not begin there.
        if ceil and room % strides[i] and count * strides[i] < size[i] + before:
            count += 1
        after = max(after, (count - 1) * strides[i] + spans[i] - size[i] - before)
        ends.append((before, after))
        counts.append(count)
    (top, bottom), (left, right) = ends
    return Windows(strides, (top, left, bottom, right), dilations, tuple(counts), ceil)


@reads("MaxPool")
@in_one_row()
def _max_pool(op, reading):
    """MaxPool of integers, or of floats."""
    shape = _space(op, op.shape_of(operand(op, 0)))
    op.take("storage_order", 0)  # for indices, which are not supported
    kernel = _kernel(op)
    _maxima(op, reading, shape, kernel, take_windows(op, kernel, shape[2:], pool=True))


@reads("GlobalMaxPool")
@in_one_row()
def _global_max_pool(op, reading):
    """GlobalMaxPool of integers, or of floats."""
    shape = _space(op, op.shape_of(operand(op, 0)))
    _maxima(op, reading, shape, tuple(shape[2:]), _POINT)


def _maxima(op, reading, shape, kernel, windows):
    value, empty = op.value(0), not _counts(kernel, shape[2:], windows).all()

    def attributes_of(y, clamp):
        if empty and y is not None and clamp[0] > limits(y.dtype)[0]:
            raise op.refusal("a window lies wholly in padding, and what it gives is clamped")
        return Pool(kind="max", kernel=kernel, stride=windows.stride, pad=windows.pad, dilation=windows.dilation,
                    minimum=clamp[0], maximum=clamp[1])  # fmt: skip

    reading.move(op, value, (*shape[:2], *windows.count), attributes_of, None if empty else own_quantity(value))


def _average_of_all(op, reading, x, quantity):
    """An average of all pixels: the shape of the result, and the function that adds the node."""
    size = _space(op, x.shape)[2:]
    return sums_of_windows(
        op, reading, x, quantity, size, _POINT, lambda y: average_scale(quantity.scale, y, size[0] * size[1])
    )


def _average_of_windows(op, reading, x, quantity):
    """Averages of windows: the shape of the result, and the function that adds the node."""
    _space(op, x.shape)
    kernel = _kernel(op)
    with_padding = op.take("count_include_pad", 0)
    windows = take_windows(op, kernel, x.shape[2:], pool=True)
    counts = _counts(kernel, x.shape[2:], windows)
    op.refuse_if(not counts.all(), "a window lies wholly in padding")
    if with_padding:
        if windows.ceil and (counts != kernel[0] * kernel[1]).any():
            raise op.refusal("count_include_pad with ceil_mode is not supported where windows reach out")
        counts = np.full((1, 1), kernel[0] * kernel[1])
    if (counts == counts.flat[0]).all():
        counts = counts[:1, :1]
    return sums_of_windows(
        op, reading, x, quantity, kernel, windows, lambda y: average_scale(quantity.scale, y, counts), zero_first=True
    )


def _on_floats(average, op, reading):
    real = op.real(0)
    shape, finish = average(op, reading, reading.values[real.name], real.quantity)
    reading.defer(op, shape, finish)


def _on_integers(average, op, reading):
    """x and y, with scales and zero points."""
    op.require("channels_last", 0)
    x = op.tensor(0)
    _, finish = average(op, reading, x, op.quantity(1, 2, x.dtype))
    y = op.quantity(3, 4, x.dtype)
    finish(op.output, y, limits(y.dtype))


for _kind, _average in (("AveragePool", _average_of_windows), ("GlobalAveragePool", _average_of_all)):
    reads(_kind)(in_one_row()(partial(_on_floats, _average)))
    reads(f"QLinear{_kind}", domain=MICROSOFT)(in_one_row()(partial(_on_integers, _average)))


def sums_of_windows(op, reading, x, quantity, kernel, windows, scale_of, zero_first=False):
    """The shape of scaled sums of windows of ``kernel`` rows and columns, and the function that adds the node.

    ``scale_of`` gives the scale of the sums, for the scale of the result. With ``zero_first`` the zero point is added
    before rounding, which makes a difference only for odd ones, and where a sum lies halfway between two integers.
    """
    shape = (*x.shape[:2], *windows.count)

    def finish(output, y, clamp):
        scale = np.asarray(scale_of(y.scale), np.float32)
        op.refuse_if(not np.isfinite(scale).all(), "its scales give a factor that binary32 does not hold")
        attributes = Pool(
            kind="sum", kernel=tuple(kernel), stride=windows.stride, pad=windows.pad, dilation=windows.dilation,
            x_zero=quantity.zero, scale=scale.reshape(scale.shape or (1, 1)), y_zero=y.zero,
            zero_first=zero_first and y.zero % 2 == 1, minimum=clamp[0], maximum=clamp[1],
        )  # fmt: skip
        reading.emit(op, (x.name,), output, attributes, shape, y.dtype)

    return shape, finish


def _counts(kernel, size, windows):
    """The number of elements of the feature map in each window."""
    inside = [
        _inside(size[i], kernel[i], windows.stride[i], windows.dilation[i], windows.pad[i], windows.count[i])
        for i in range(2)
    ]
    return np.outer(*inside)


def _inside(size, kernel, stride, dilation, before, count):
    """The number of positions of each window inside the feature map, along one dimension."""
    places = np.arange(count)[:, np.newaxis] * stride - before + np.arange(kernel) * dilation
    return ((places >= 0) & (places < size)).sum(axis=1)


def _space(op, shape):
    """``shape``, if it is that of a feature map."""
    op.refuse_if(len(shape) != 4, f"its input is {list(shape)}: only two dimensions of space are supported")
    return shape


def _kernel(op):
    kernel = op.take("kernel_shape", (0, 0))
    if len(kernel) != 2 or min(kernel) < 1:
        raise op.refusal(f"its attribute 'kernel_shape' is {list(kernel)}, and must be 2 numbers from 1 on")
    return kernel
