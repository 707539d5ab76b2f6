"""Convolutions and products of matrices: of integers, and of floats that stand for integers."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arithmetic import limits, product_scale
from ..attributes import Conv, Scale
from .layout import in_one_row
from .matrices import is_one_matrix, of_floats, of_integers, product_of, turned
from .operator import MICROSOFT, Constant, Pending, Weights, reads
from .windows import Windows, take_windows

__all__ = ["for_each", "real_bias"]


class _Bias(NamedTuple):
    """A bias as int32 at the scale of the products, and as floats if the model has them."""

    counts: np.ndarray
    floats: np.ndarray | None = None


_POINT = Windows((1, 1), (0, 0, 0, 0), (1, 1), (1, 1))


@reads("QLinearConv")
@in_one_row(3)
def _qlinear_conv(op, reading):
    """QLinearConv: x, w and y, with scales and zero points; bias."""
    x = op.tensor(0)
    weights, quantity = op.weights(3, 4, 5), op.quantity(1, 2, x.dtype)
    bias = _bias(op, 8) if op.has(8) else None
    _, finish, _ = _convolution(op, reading, x, quantity, weights, bias)
    y = op.quantity(6, 7)
    finish(op.output, y, limits(y.dtype))


@reads("Conv")
@in_one_row(1)
def _conv(op, reading):
    """Conv of floats: x, w, bias."""
    real = op.real(0)
    weights = op.real_weights(1, axis=0)
    bias = real_bias(op, 2, real, weights) if op.has(2) else None
    shape, finish, _ = _convolution(op, reading, reading.values[real.name], real.quantity, weights, bias)
    reading.defer(op, shape, finish)


@reads("QGemm", domain=MICROSOFT)
def _qgemm(op, reading):
    """QGemm: a and b with scales and zero points, c, and those of y; without them y is floats."""
    op.require("alpha", 1.0, float)
    across, bias = _across(op), _bias(op, 6) if op.has(6) else None
    if _is_constant_second(op, 3):
        x = op.tensor(0)
        quantity = op.quantity(1, 2, x.dtype)
        weights = _transposed(op, op.weights(3, 4, 5), across[1])
        x = reading.values[turned(op, reading, x.name, across[0])]
        shape, finish, floats = _product(op, reading, x, quantity, weights, bias)
    else:
        operands = of_integers(op, reading)
        quantity = operands[0].quantity
        shape, finish, floats = _product_of_two(op, reading, operands, across, bias)
    if not op.has(7):
        reading.defer_floats(op, shape, floats)
        return
    y = op.quantity(7, 8, quantity.dtype)
    finish(op.output, y, limits(y.dtype))


@reads("Gemm")
def _gemm(op, reading):
    """Gemm of floats: a, b, c."""
    op.require("alpha", 1.0, float)
    op.require("beta", 1.0, float)
    across = _across(op)
    if _is_constant_second(op, 1):
        real = op.real(0)
        weights = _transposed(op, op.real_weights(1, axis=0 if across[1] else 1), across[1])
        bias = real_bias(op, 2, real, weights) if op.has(2) else None
        x = reading.values[turned(op, reading, real.name, across[0])]
        shape, finish, floats = _product(op, reading, x, real.quantity, weights, bias)
    else:
        first, second = operands = of_floats(op, reading)
        weights = Weights(None, np.array([second.quantity.scale]), None)
        bias = real_bias(op, 2, first, weights) if op.has(2) else None
        shape, finish, floats = _product_of_two(op, reading, operands, across, bias)
    reading.defer(op, shape, finish, floats=floats)


@reads("QLinearMatMul")
def _qlinear_matmul(op, reading):
    """QLinearMatMul: a, b and y, with scales and zero points."""
    if is_one_matrix(op, 3, op.shape_of(op.value(0))):
        x = op.tensor(0)
        quantity = op.quantity(1, 2, x.dtype)
        _, finish, _ = _product(op, reading, x, quantity, _columns(op.weights(3, 4, 5)), None)
    else:
        operands = of_integers(op, reading)
        quantity = operands[0].quantity
        _, finish, _ = product_of(op, reading, operands)
    y = op.quantity(6, 7, quantity.dtype)
    finish(op.output, y, limits(y.dtype))


@reads("MatMul")
def _matmul(op, reading):
    """MatMul of floats: a, b. An Add after a constant matrix may be its bias."""
    if not is_one_matrix(op, 1, op.shape_of(op.value(0))):
        shape, finish, floats = product_of(op, reading, of_floats(op, reading))
        reading.defer(op, shape, finish, floats=floats)
        return
    real = op.real(0)
    weights = op.real_weights(1, axis=op.constant(1, "operand", real=True).array.ndim - 1)
    x = reading.values[real.name]
    weights = _columns(weights)

    def product(bias):
        return _product(op, reading, x, real.quantity, weights, bias)

    def biased(addition, index):
        shape, finish, floats = product(real_bias(addition, index, real, weights))
        if len(op.shape_of(addition.value(index))) > len(shape):
            raise addition.refusal(f"its bias {addition.input_name(index)!r} has more dimensions than the product")
        return Pending(addition, shape, finish, floats=floats)

    shape, finish, floats = product(None)
    reading.defer(op, shape, finish, floats=floats, biased=biased)


def _convolution(op, reading, x, quantity, weights, bias):
    """The shape of the result, and the functions of :func:`_results`."""
    if len(x.shape) != 4 or weights.array.ndim != 4:
        raise op.refusal(
            f"its input is {list(x.shape)} and its kernel {list(weights.array.shape)}: only two dimensions of space "
            "are supported"
        )
    groups = op.take("group", 1)
    outputs, channels, *kernel = weights.array.shape
    if groups < 1 or outputs % groups or x.shape[1] != channels * groups:
        raise op.refusal(f"{x.shape[1]} channels in {groups} groups do not fit a kernel of {list(weights.array.shape)}")
    if op.take("kernel_shape", tuple(kernel)) != tuple(kernel):
        raise op.refusal(f"its attribute 'kernel_shape' is not that of its kernel, {kernel}")
    windows = take_windows(op, kernel, x.shape[2:])
    shape = (x.shape[0], outputs, *windows.count)
    return shape, *_results(op, reading, x, quantity, weights, bias, windows, shape, groups)


def _product(op, reading, x, quantity, weights, bias):
    """The same for rows times a matrix, ``weights`` of shape [Co, K]."""
    outputs, length = weights.array.shape
    if not x.shape or x.shape[-1] != length:
        raise op.refusal(f"its input is {list(x.shape)}, and its constant operand has sums of {length}")
    weights = weights._replace(array=weights.array.reshape(outputs, length, 1, 1))
    shape = (*x.shape[:-1], outputs)
    return shape, *_results(op, reading, x, quantity, weights, bias, _POINT, shape, None)


def _results(op, reading, x, quantity, weights, bias, windows, shape, groups):
    """Functions that add nodes, for results of integers and of floats. A product of matrices has no ``groups``."""
    outputs = len(weights.array)
    op.refuse_if(not weights.array.size, "its constant operand has no elements")
    scale, zero = (
        for_each(op, part, outputs, what) for part, what in ((weights.scale, "scales"), (weights.zero, "zero points"))
    )
    none = np.zeros(outputs, np.int32)
    counts, added = (part if part is None else for_each(op, part.reshape(-1), outputs, "biases")
                     for part in bias or _Bias(none))  # fmt: skip

    def emit(output, dtype, bias, scales, y_zero=0, clamp=(0, 0)):
        attributes = Conv(
            weight=np.array(weights.array, order="C"), x_zero=quantity.zero, w_zero=zero, bias=bias, scale=scales,
            y_zero=y_zero, stride=windows.stride, pad=windows.pad, dilation=windows.dilation, groups=groups or 1,
            minimum=clamp[0], maximum=clamp[1], matrix=groups is None,
        )  # fmt: skip
        reading.emit(op, (x.name,), output, attributes, shape, dtype)

    def finish(output, y, clamp):
        scales = product_scale(quantity.scale, scale, y.scale)
        op.refuse_if(not np.isfinite(scales).all(), "its scales give a factor that binary32 does not hold")
        emit(output, y.dtype, counts, scales, y.zero, clamp)

    def floats(output):
        name = reading.fresh(f"{output}.sums")
        emit(name, "int32", counts if added is None else none, None)
        reading.emit(op, (name,), output, Scale(quantity.scale * scale, added), shape, "float32")

    return finish, floats


def for_each(op, array, outputs, what):
    """Numbers of the ``outputs`` channels, from one of each or one for all; ``what`` names them in errors."""
    op.refuse_if(array.size not in (1, outputs), f"it has {array.size} {what} for {outputs} channels")
    return np.broadcast_to(array, outputs).copy()


def _is_constant_second(op, index):
    """Whether of both operands, the inputs 0 and ``index``, only the second one is a constant."""
    return isinstance(op.value(index), Constant) and not isinstance(op.value(0), Constant)


def _across(op):
    """Whether the operands of a Gemm are transposed."""
    return op.take("transA", 0), op.take("transB", 0)


def _product_of_two(op, reading, operands, across, bias):
    """The same of a Gemm of two tensors; ``bias`` is a _Bias or None."""
    operands = [replace(each, name=turned(op, reading, each.name, turn))
                for each, turn in zip(operands, across, strict=True)]  # fmt: skip
    columns = reading.shape(operands[1].name)[1]
    biases = (part if part is None else for_each(op, part.reshape(-1), columns, "biases") for part in bias or ())
    return product_of(op, reading, operands, *biases)


def _transposed(op, weights, across):
    """The matrix of a Gemm as [Co, K]."""
    if weights.array.ndim != 2:
        raise op.refusal(f"its constant operand is {list(weights.array.shape)}, not a matrix")
    return weights if across else weights._replace(array=weights.array.T)


def _columns(weights):
    """The matrix of a product as [Co, K]."""
    array = weights.array
    return weights._replace(array=array.reshape(array.shape[-2:]).T)


def _bias(op, index):
    """A bias that is a constant of int32."""
    array = op.constant(index, "bias").array
    op.refuse_if(array.dtype != np.int32, f"its bias {op.input_name(index)!r} is {array.dtype}, not int32")
    return _Bias(_one_row(op, index, array))


def real_bias(op, index, x, weights):
    """A bias at the scale of the products: quantised so by the model, or floats."""
    name = op.input_name(index)
    value = op.value(index)
    if isinstance(value, Constant) and value.scale is None and value.array.dtype == np.float32:
        floats = _one_row(op, index, value.array)
        return _Bias(_counted(op, name, floats, x.quantity.scale * weights.scale), floats)
    bias = op.real_weights(index, types=("int32",))
    op.refuse_if(bias.zero.any(), f"its bias {name!r} has zero points other than 0")
    if bias.scale.size not in (1, weights.scale.size) and weights.scale.size != 1:
        raise op.refusal(f"its bias {name!r} has {bias.scale.size} scales, not {weights.scale.size}")
    if not np.allclose(bias.scale, x.quantity.scale * weights.scale, rtol=1e-5, atol=0):
        raise op.refusal(f"the scale of its bias {name!r} is not that of its products")
    return _Bias(_one_row(op, index, bias.array))


def _counted(op, name, floats, scale):
    """rne(fl(floats / scale)) as int32."""
    if 1 not in (floats.size, scale.size) and floats.size != scale.size:
        raise op.refusal(f"its bias {name!r} has {floats.size} numbers for {scale.size} scales")
    counts = np.rint(floats / scale)
    if not (np.abs(counts) < 2**31).all():
        raise op.refusal(f"its bias {name!r} has more than 32 bits at the scale of its products")
    return counts.astype(np.int32)


def _one_row(op, index, array):
    if array.ndim and array.size != array.shape[-1]:
        raise op.refusal(f"its bias {op.input_name(index)!r} is {list(array.shape)}, not one for each channel")
    return array
