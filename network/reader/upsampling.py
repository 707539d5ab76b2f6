"""Operators that make feature maps larger: transposed convolutions, and linear interpolation."""

from math import gcd

import numpy as np

from ..arithmetic.constants import convolution_scale
from ..arithmetic.nearest import COORDINATES
from ..graph import ConvTranspose, Linear, Tensor
from .products import for_each, real_bias

__all__ = ["conv_transpose", "linear_of"]

#: Largest weight of an interpolation, as a byte.
_MOST = 255


def conv_transpose(op, reading):
    """ConvTranspose of floats: x, w, bias."""
    real = op.real(0)
    x, groups = reading.values[real.name], op.take("group", 1)
    weights = op.real_weights(1, axis=1 if groups == 1 else None)
    if len(x.shape) != 4 or weights.array.ndim != 4:
        raise op.refusal(
            f"its input is {list(x.shape)} and its kernel {list(weights.array.shape)}: only two dimensions of space "
            "are supported"
        )
    channels, share, *kernel = weights.array.shape
    if groups < 1 or channels % groups or x.shape[1] != channels:
        raise op.refusal(f"{x.shape[1]} channels in {groups} groups do not fit a kernel of {list(weights.array.shape)}")
    if op.take("kernel_shape", tuple(kernel)) != tuple(kernel):
        raise op.refusal(f"its attribute 'kernel_shape' is not that of its kernel, {kernel}")
    op.refuse_if(weights.scale.size > 1 and groups > 1, "its kernel has several scales, and it has several groups")
    bias = real_bias(op, 2, real, weights) if op.has(2) else None
    stride, dilation, pad, size = _placed(op, kernel, x.shape[2:])
    outputs = share * groups
    scale, zero = (for_each(op, part, outputs, what) for part, what in ((weights.scale, "scales"),
                                                                        (weights.zero, "zero points")))  # fmt: skip
    counts = for_each(op, bias.counts.reshape(-1) if bias else np.zeros(1, np.int32), outputs, "biases")
    shape = (x.shape[0], outputs, *size)

    def finish(output, y, clamp):
        scales = convolution_scale(real.quantity.scale, scale, y.scale)
        op.refuse_if(not np.isfinite(scales).all(), "its scales give a factor that binary32 does not hold")
        attributes = ConvTranspose(
            weight=np.array(weights.array, order="C"), x_zero=real.quantity.zero, w_zero=zero, bias=counts,
            scale=scales, y_zero=y.zero, stride=stride, pad=pad, dilation=dilation, groups=groups,
            minimum=clamp[0], maximum=clamp[1],
        )  # fmt: skip
        reading.emit(op, (real.name,), output, attributes, shape, y.dtype)

    reading.defer(op, shape, finish)


def _placed(op, kernel, given):
    """Stride, dilation, rows and columns that are cut off before the result, and its size."""
    strides, dilations = (op.sizes(name, (1, 1), 1) for name in ("strides", "dilations"))
    pads, more = op.sizes("pads", (0, 0, 0, 0), 0), op.sizes("output_padding", (0, 0), 0)
    how, wanted = op.take("auto_pad", "NOTSET", str), op.take("output_shape", (), int)
    op.refuse_if(how not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"), f"its attribute 'auto_pad' is {how!r}")
    op.refuse_if(how != "NOTSET" and any(pads), f"it has pads and auto_pad {how!r}")
    op.refuse_if(len(wanted) not in (0, 2), f"its attribute 'output_shape' is {list(wanted)}, and must be 2 numbers")
    before, sizes = [], []
    for axis in range(2):
        whole = (given[axis] - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1 + more[axis]
        if how.startswith("SAME") or wanted:
            size = wanted[axis] if wanted else given[axis] * strides[axis]
            cut = max(whole - size, 0)
            before.append(cut - cut // 2 if how == "SAME_LOWER" or not how.startswith("SAME") else cut // 2)
        else:
            size = whole - pads[axis] - pads[axis + 2]
            before.append(pads[axis])
        op.refuse_if(size < 1, f"its output would have {size} rows or columns")
        sizes.append(size)
    return strides, dilations, tuple(before), tuple(sizes)


def linear_of(op, reading, sizes, factors, coordinates):
    """Resizes rows and columns of the first input by linear interpolation.

    Parameters
    ----------
    op : Operator
    reading : Reading
    sizes : sequence of int
        Of all four dimensions.
    factors : sequence of float32
    coordinates : str
        A key of ``COORDINATES``.
    """
    value = op.value(0)
    shape = op.shape_of(value)
    op.refuse_if(len(shape) != 4 or tuple(sizes[:2]) != tuple(shape[:2]), "only rows and columns are interpolated")
    first, weights, whole = [], [], 1
    for axis in (2, 3):
        lows, shares, denominator = _shares(op, shape[axis], sizes[axis], factors[axis], coordinates)
        first.append(lows)
        weights.append(shares)
        whole *= denominator
    on_integers = isinstance(value, Tensor) and value.dtype == "uint8"
    most = weights[0].max() * weights[1].max() * (2 if on_integers else 1)
    if on_integers and whole & (whole - 1):
        raise op.refusal(f"its weights are multiples of 1 / {whole}, which floats do not hold exactly")
    op.refuse_if(most > _MOST, f"its weights are multiples of 1 / {whole}, which a byte does not hold")
    if on_integers:
        # ONNX Runtime drops the fraction: half of the last step is subtracted before rounding.
        weights[0] = 2 * weights[0]
        attributes = Linear(tuple(first), tuple(weights), 0, 1 - whole, np.float32(1 / (2 * whole)), 0, 0, 255)
        reading.emit(op, (value.name,), op.output, attributes, sizes, "uint8")
        return
    real = op.real(0)
    x = real.quantity

    def finish(output, y, clamp):
        scale = x.scale / y.scale / np.float32(whole)
        attributes = Linear(tuple(first), tuple(weights), x.zero, 0, scale, y.zero, *clamp)
        reading.emit(op, (real.name,), output, attributes, sizes, y.dtype)

    reading.defer(op, tuple(sizes), finish)


def _shares(op, size, made, factor, coordinates):
    """For each of ``made`` elements the first of both that it lies between, and their weights; their sum."""
    if size == made and factor == 1:
        return np.arange(size), np.broadcast_to(np.int64([1, 0]), (size, 2)).copy(), 1
    positions = COORDINATES[coordinates](np.arange(made, dtype=np.float32), factor, size, made)
    positions = np.clip(positions.astype(np.float64), 0, size - 1)
    lows = np.floor(positions)
    for denominator in range(1, _MOST + 1):
        steps = (positions - lows) * denominator
        if np.abs(steps - np.rint(steps)).max() < 1e-3:
            shares = np.rint(steps).astype(np.int64)
            common = gcd(denominator, *shares.tolist())
            shares, denominator = shares // common, denominator // common
            return lows.astype(np.int64), np.stack([denominator - shares, shares], axis=1), denominator
    raise op.refusal(f"from {size} to {made} elements it interpolates at positions that are no small fractions")
