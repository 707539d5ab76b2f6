"""Operators with numbers for each channel: normalisation by constants, and slopes of negative numbers.

Each becomes convolutions of 1 × 1 whose groups are channels (docs/network.md, "Numbers for each channel").
"""

from math import prod

import numpy as np

from ..attributes import Add, Concat, Conv, Reshape
from .operator import Constant, reads
from .tables import binary

__all__ = ["affine", "numbers_of_channels"]

#: Weights of a channel that are tried: of these the bias is nearest to an integer for one.
_WEIGHTS = np.arange(128, 256)
#: Most of a bias: less than what wraps, with room for the products.
_MOST = 1 << 30


@reads("BatchNormalization")
def _batch_normalization(op, reading):
    """BatchNormalization by constant means and variances: x, scale, bias, mean, variance."""
    op.take("momentum", 0.9, float)
    op.require("training_mode", 0)
    op.require("spatial", 1)
    real = op.real(0)
    count = reading.shape(real.name)[1]
    scale, bias, mean, variance = (_floats(op, index, count) for index in range(1, 5))
    gain = scale / np.sqrt(variance + op.take("epsilon", 1e-5, float))
    op.refuse_if(not np.isfinite(gain).all(), "its variances and scales give a factor that is not finite")
    affine(op, reading, real, gain, bias - mean * gain)


@reads("PRelu")
def _prelu(op, reading):
    """PRelu: one slope, or one for each channel."""
    slope = op.value(1)
    if not isinstance(slope, Constant) or slope.array.size == 1:
        binary(op, reading)
        return
    real = op.real(0)
    shape, x = reading.shape(real.name), real.quantity
    slopes = numbers_of_channels(op, 1, shape)
    op.refuse_if(slopes is None, f"its slopes are {list(op.value(1).array.shape)}, not one or one for each channel")

    def finish(output, y, clamp):
        scale = x.scale / y.scale
        negative, name = reading.fresh(f"{output}.negative"), real.name
        ends = -128 if y.dtype == "int8" else 0, y.zero
        if (slopes < 0).any():  # results of negative x are on either side of the zero point
            name, ends = reading.fresh(f"{output}.below"), clamp
            table = np.minimum(np.arange(256, dtype=np.uint8).view(x.dtype), x.zero).astype(x.dtype)
            reading.emit(op, (real.name,), name, Concat(0, (table,)), shape, x.dtype)
        ones = np.ones(len(slopes), np.uint8)
        factors = (np.float64(scale) * slopes).astype(np.float32)
        _scaled(op, reading, name, x.zero, ones, np.zeros(len(slopes)), factors, negative, y, ends)
        positive = reading.fresh(f"{output}.positive")
        factors = np.full(len(slopes), scale)
        ends = y.zero, 127 if y.dtype == "int8" else 255
        _scaled(op, reading, real.name, x.zero, ones, np.zeros(len(slopes)), factors, positive, y, ends)
        one = np.float32(1)
        reading.emit(op, (positive, negative), output, Add((one, one), np.float32(-y.zero), *clamp), shape, y.dtype)

    reading.defer(op, shape, finish)


def affine(op, reading, real, gain, shift):
    """Makes the output of a node ``gain`` times the floats of a Real plus ``shift``, float64 arrays [C]."""
    x, shape = real.quantity, reading.shape(real.name)

    def finish(output, y, clamp):
        with np.errstate(divide="ignore", invalid="ignore"):
            tried = (shift / (gain * x.scale))[:, np.newaxis] * _WEIGHTS
        exact = np.abs(tried[:, -1]) < _MOST
        tried = np.where(exact[:, np.newaxis], tried, 0)
        weights = _WEIGHTS[np.argmin(np.abs(tried - np.rint(tried)) / _WEIGHTS, axis=1)]
        # Where the bias is that much larger, x makes no difference.
        biases = np.where(exact, np.rint(tried[np.arange(len(weights)), weights - 128]), np.where(shift, 1 << 24, 0))
        factors = np.where(exact, gain * x.scale / weights, shift / (1 << 24)) / y.scale
        weights = np.where(exact, weights, 0).astype(np.uint8)
        op.refuse_if(not np.isfinite(factors.astype(np.float32)).all(), "its factors are more than binary32 holds")
        _scaled(op, reading, real.name, x.zero, weights, biases, factors.astype(np.float32), output, y, clamp)

    reading.defer(op, shape, finish)


def numbers_of_channels(op, index, shape):
    """A constant of one number for each channel of ``shape`` as float64 [C]; None if it is something else."""
    value = op.value(index)
    if not isinstance(value, Constant) or value.array.ndim > len(shape) or len(shape) < 2:
        return None
    sizes = (1,) * (len(shape) - value.array.ndim) + value.array.shape
    if sizes != (1, shape[1]) + (1,) * (len(shape) - 2):
        return None
    return _floats(op, index, shape[1])


def _floats(op, index, count):
    """A constant of ``count`` numbers, or of integers that a DequantizeLinear gives a meaning, as float64."""
    value = op.value(index)
    constant = op.constant(index, "operand", isinstance(value, Constant) and value.scale is not None)
    array, name = constant.array, op.input_name(index)
    if constant.scale is not None:
        array = (array.reshape(-1).astype(np.int64) - constant.zero).astype(np.float32) * constant.scale
    if array.dtype != np.float32 or array.size != count:
        raise op.refusal(f"its operand {name!r} is {array.dtype} {list(array.shape)}, not {count} numbers")
    op.refuse_if(not np.isfinite(array).all(), f"its operand {name!r} has numbers that are not finite")
    return array.reshape(-1).astype(np.float64)


def _scaled(op, reading, name, x_zero, weights, biases, factors, output, y, clamp):
    """Adds a convolution of each channel by itself: rne(((x - x_zero) · weight + bias) · factor) + zero point of y."""
    shape = reading.shape(name)
    flat, made = name, output
    if len(shape) != 4:
        flat, made = (reading.fresh(f"{each}.map") for each in (name, output))
        sizes = (*shape[:2], 1, prod(shape[2:]))
        reading.emit(op, (name,), flat, Reshape(sizes), sizes, reading.type_of(name))
    attributes = Conv(
        weight=weights.reshape(-1, 1, 1, 1), x_zero=x_zero, w_zero=np.zeros(len(weights), np.int32),
        bias=biases.astype(np.int32), scale=factors, y_zero=y.zero, groups=len(weights),
        minimum=clamp[0], maximum=clamp[1],
    )  # fmt: skip
    reading.emit(op, (flat,), made, attributes, reading.shape(flat), y.dtype)
    if flat != name:
        reading.emit(op, (made,), output, Reshape(shape), shape, y.dtype)
