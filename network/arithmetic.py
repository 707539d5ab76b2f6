"""Exact arithmetic of quantised networks, in numpy: docs/network.md, "Exact arithmetic".

Rounding of binary32 to integers of 8 bits; factors and offsets of nodes, whose scales are numpy float32 or arrays of
it; convolutions and pools, whose sums are exact modulo 2^32. Every operation rounds to binary32. Nothing is checked.
"""

import numpy as np

from tilewright.golden.conv.results import rounded_sum

__all__ = [
    "add", "average_scale", "change", "change_table", "convolution_sums", "convolve", "convolve_transposed",
    "dequantise", "fused", "interpolate", "joint_weights", "limits", "multiply", "multiply_matrices",
    "multiply_matrix", "numbers", "operate", "pool", "product_scale", "quantise", "requantise", "saturate",
    "scale_sums", "sum_constants",
]  # fmt: skip


def fused(first, second, addend):
    """fma(first, second, addend) with one rounding.

    Parameters
    ----------
    first, second, addend : arrays or numbers
        Values of binary32; shapes broadcast.

    Returns
    -------
    float32 array
    """
    product = np.asarray(first, np.float64) * np.asarray(second, np.float64)  # 48 bits at most: exact
    return rounded_sum(product, np.asarray(addend, np.float64)).astype(np.float32)


def saturate(values, zero, minimum, maximum, dtype):
    """sat(rne(values) + zero): the zero point is added to the integer.

    Parameters
    ----------
    values : float32 array
        No NaN.
    zero, minimum, maximum : int
    dtype : str
        A type of 8 bits that holds ``minimum`` to ``maximum``.
    """
    whole = np.clip(np.rint(values), np.float32(minimum - zero), np.float32(maximum - zero))
    return (whole.astype(np.int32) + zero).astype(dtype)


def operate(arrays, node, dtype):
    """Integers of the sum or quotient of the floats of several tensors, by an ``Arithmetic``."""
    operation = {"Div": np.divide, "Sum": np.add}[node.operation]
    with np.errstate(all="ignore"):
        parts = [(x.astype(np.int64) - zero).astype(np.float32) * scale
                 for x, (scale, zero) in zip(arrays, node.quantities, strict=True)]  # fmt: skip
        made = parts[0]
        for part in parts[1:]:
            made = operation(made, part)
        steps = made / node.y_scale
    low, high = limits(dtype)
    return saturate(np.where(np.isnan(steps), np.float32(-np.inf), steps), node.y_zero, low, high, dtype)


def requantise(acc, scale, zero, minimum, maximum, dtype):
    """sat(rne(fl(fl(acc) · scale)) + zero).

    Parameters
    ----------
    acc : int32 array
    scale : float32 array
        Its shape broadcasts to the shape of ``acc``.
    zero, minimum, maximum : int
    dtype : str
    """
    with np.errstate(over="ignore"):  # infinity saturates
        return saturate(acc.astype(np.float32) * scale, zero, minimum, maximum, dtype)


def numbers(dtype):
    """All numbers of a type of 8 bits, by their bytes."""
    return np.arange(256, dtype=np.uint8).view(dtype)


def limits(dtype):
    """Least and largest number of an integer type, by its name."""
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def quantise(values, scale, zero, dtype):
    """sat(rne(fl(values / scale)) + zero)."""
    with np.errstate(over="ignore"):  # infinity saturates
        return saturate(np.asarray(values, np.float32) / scale, zero, *limits(dtype), dtype)


def dequantise(x, scale, zero):
    """fl((x - zero) · scale), float32."""
    with np.errstate(over="ignore"):
        return (x.astype(np.int32) - zero).astype(np.float32) * scale


def scale_sums(sums, scale, bias):
    """fl(fl(sums) · scale), and plus ``bias`` if there is one, rounded again: float32, channels last."""
    with np.errstate(over="ignore", under="ignore"):
        floats = sums.astype(np.float32) * scale
        return floats if bias is None else floats + bias


def add(a, b, node, dtype):
    """The sum of two tensors, by an ``Add``: the zero points are in it before rounding."""
    inner = fused(b, node.ratio[1], node.offset)
    return saturate(fused(a, node.ratio[0], inner), 0, node.minimum, node.maximum, dtype)


def multiply(a, b, node, dtype):
    """A tensor times another one, or a number, by a ``Mul``: the zero point is added before rounding."""
    product = ((a.astype(np.int32) - node.a_zero) * (np.asarray(b, np.int32) - node.b_zero)).astype(np.float32)
    return saturate(product * node.scale + np.float32(node.y_zero), 0, node.minimum, node.maximum, dtype)


def change(x, table):
    """Every element through a table of 256 entries, by its byte; unchanged if ``table`` is None."""
    return x if table is None else table[x.view(np.uint8)]


def product_scale(a_scale, b_scale, y_scale):
    """fl(fl(sa · sb) / sy)."""
    return a_scale * b_scale / y_scale


def average_scale(x_scale, y_scale, counts):
    """fl(sx / fl(sy · fl(n))) for each number of pixels, an int or an array."""
    return x_scale / (y_scale * np.asarray(counts, np.float32))


def sum_constants(a, b, y):
    """Ratios and offset of a sum; each argument is a pair of scale and zero point.

    Returns
    -------
    ratio : (float32, float32)
        fl(sa / sy) and fl(sb / sy).
    offset : float32
        fl(zy - fma(ra, za, fl(rb · zb))).
    """
    (a_scale, a_zero), (b_scale, b_zero), (y_scale, y_zero) = a, b, y
    ratio = a_scale / y_scale, b_scale / y_scale
    zeros = fused(ratio[0], a_zero, ratio[1] * np.float32(b_zero))
    return ratio, np.float32(np.float32(y_zero) - zeros)


def change_table(x, x_dtype, y, y_dtype):
    """sat(rne(fl(fl((x - zx) · sx) / sy)) + zy) for every x.

    Parameters
    ----------
    x, y : (float32, int)
        Scale and zero point.
    x_dtype, y_dtype : str

    Returns
    -------
    array of 256 elements of ``y_dtype``
        Indexed by the byte of x.
    """
    return quantise(dequantise(numbers(x_dtype), *x), *y, y_dtype)


def convolve(x, node, dtype):
    """A feature map through a convolution.

    Parameters
    ----------
    x : uint8 or int8 array [N, C, H, W]
    node : Conv
    dtype : str
        Type of the result, [N, Co, Ho, Wo]; "int32" for the sums.
    """
    acc = convolution_sums(x, node)
    if dtype == "int32":
        return acc
    scale = node.scale[:, np.newaxis, np.newaxis]
    return requantise(acc, scale, node.y_zero, node.minimum, node.maximum, dtype)


def multiply_matrix(x, node, dtype):
    """Rows [..., K] to [..., Co] by a convolution whose ``matrix`` is set."""
    pixels = x.reshape(-1, x.shape[-1], 1, 1)
    return convolve(pixels, node, dtype).reshape(*x.shape[:-1], -1)


def multiply_matrices(a, b, node, dtype):
    """The product of two tensors of matrices by a ``MatMul``; ``dtype`` is "int32" for the sums."""
    first, second = (x.astype(np.float64) - zero for x, zero in ((a, node.a_zero), (b, node.b_zero)))
    sums = np.asarray(np.matmul(first, second)).astype(np.int64)  # exact below 2^53
    acc = (sums if node.bias is None else sums + node.bias).astype(np.int32)  # wraps
    return acc if dtype == "int32" else requantise(acc, node.scale, node.y_zero, node.minimum, node.maximum, dtype)


def convolution_sums(x, node):
    """Accumulators with their biases, int32 [N, Co, Ho, Wo]."""
    outputs, _, height, width = node.weight.shape
    x = _centred(x, node)
    weight = node.weight.astype(np.int32) - node.w_zero[:, np.newaxis, np.newaxis, np.newaxis]
    sums = _sums_of_channels if node.weight.shape[1] == 1 else _sums_of_groups
    acc = 0
    for row in range(height):
        for column in range(width):
            acc = acc + sums(_points(x, node, row, column), weight[:, :, row, column], node.groups)
    images, rows, columns = len(x), *_points(x, node, 0, 0).shape[2:]
    acc = acc.reshape(images, outputs, rows, columns).astype(np.int64) + node.bias[:, np.newaxis, np.newaxis]
    return acc.astype(np.int32)  # wraps


def convolve_transposed(x, node, dtype, size):
    """A feature map [N, C, H, W] through a transposed convolution, with ``size`` rows and columns."""
    images, channels, height, width = x.shape
    _, share, *kernel = node.weight.shape
    groups, (down, right), (high, wide) = node.groups, node.stride, node.dilation
    zero = node.w_zero.reshape(groups, 1, share, 1, 1)
    weight = node.weight.reshape(groups, channels // groups, share, *kernel).astype(np.int64) - zero
    rows = (x.astype(np.int64) - node.x_zero).reshape(images, groups, channels // groups, -1).astype(np.float64)
    whole = [max(size[axis] + node.pad[axis],
                 (x.shape[2 + axis] - 1) * node.stride[axis] + (kernel[axis] - 1) * node.dilation[axis] + 1)
             for axis in range(2)]  # fmt: skip
    sums = np.zeros((images, groups, share, *whole), np.float64)
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            products = weight[..., row, column].transpose(0, 2, 1).astype(np.float64) @ rows
            some = slice(row * high, row * high + (height - 1) * down + 1, down)
            others = slice(column * wide, column * wide + (width - 1) * right + 1, right)
            sums[..., some, others] += products.reshape(images, groups, share, height, width)
    top, left = node.pad
    sums = sums[..., top : top + size[0], left : left + size[1]].reshape(images, -1, *size).astype(np.int64)
    acc = (sums + node.bias[:, np.newaxis, np.newaxis]).astype(np.int32)  # wraps
    return requantise(acc, node.scale[:, np.newaxis, np.newaxis], node.y_zero, node.minimum, node.maximum, dtype)


def interpolate(x, node, dtype):
    """A feature map [N, C, H, W] resized by a ``Linear``."""
    centred, acc = x.astype(np.int32) - node.x_zero, node.bias
    for below in range(2):
        for right in range(2):
            ends = zip(node.first, (below, right), x.shape[2:], strict=True)
            rows, columns = (np.minimum(first + each, size - 1) for first, each, size in ends)
            weights = np.outer(node.weights[0][:, below], node.weights[1][:, right]).astype(np.int32)
            acc = acc + centred[:, :, rows[:, np.newaxis], columns] * weights
    return requantise(acc, node.scale, node.y_zero, node.minimum, node.maximum, dtype)


def joint_weights(rows, columns, bias):
    """Products of weights of rows and of columns as bytes, and the power of two that they and ``bias`` are divided by.

    None if bytes do not hold them.
    """
    weights, divisor = np.outer(rows, columns), 1
    while weights.max() > 255 * divisor:
        divisor *= 2
    exact = not (weights % divisor).any() and bias % divisor == 0
    return ((weights // divisor).astype(np.uint8), divisor) if exact else None


def _centred(x, node):
    """x - zx with zeros as padding, int32."""
    top, left, bottom, right = node.pad
    return np.pad(x.astype(np.int32) - node.x_zero, ((0, 0), (0, 0), (top, bottom), (left, right)))


def _points(x, node, row, column):
    """The elements of all windows at one position of the kernel, [N, C, Ho, Wo]."""
    (down, right), (high, wide) = node.stride, node.dilation
    height, width = ((size - 1) * step for size, step in zip(node.weight.shape[2:], node.dilation, strict=True))
    first, left = row * high, column * wide
    return x[:, :, first : x.shape[2] - height + first : down, left : x.shape[3] - width + left : right]


def _sums_of_groups(points, weight, groups):
    """Products of matrices in float64, exact because sums are less than 2^53."""
    images, channels = points.shape[:2]
    rows = points.reshape(images, groups, channels // groups, -1).astype(np.float64)
    return weight.reshape(groups, -1, channels // groups).astype(np.float64) @ rows


def _sums_of_channels(points, weight, groups):
    """Products for groups of one channel, in integers that wrap."""
    rows = points.reshape(len(points), groups, 1, -1)
    return weight.reshape(groups, -1, 1) * rows


def pool(x, node, dtype):
    """Averages or maxima.

    Parameters
    ----------
    x : uint8 or int8 array [N, C, H, W]
    node : Pool
    dtype : str
        Type of the result, [N, C, Ho, Wo].
    """
    if node.kind == "max":
        return _windows(x, node, np.iinfo(x.dtype).min).max(axis=(-2, -1))
    acc = _windows(x.astype(np.int32) - node.x_zero, node, 0).sum(axis=(-2, -1), dtype=np.int32)
    if node.zero_first:
        with np.errstate(over="ignore"):  # infinity saturates
            floats = acc.astype(np.float32) * node.scale + np.float32(node.y_zero)
        return saturate(floats, 0, node.minimum, node.maximum, dtype)
    return requantise(acc, node.scale, node.y_zero, node.minimum, node.maximum, dtype)


def _windows(x, node, padding):
    """A view [N, C, Ho, Wo, Kh, Kw] of ``x`` with ``padding`` around it."""
    top, left, bottom, right = node.pad
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=padding)
    (high, wide), (down, across) = node.dilation, node.stride
    spans = tuple((size - 1) * step + 1 for size, step in zip(node.kernel, node.dilation, strict=True))
    views = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=(2, 3))
    return views[:, :, ::down, ::across, ::high, ::wide]
