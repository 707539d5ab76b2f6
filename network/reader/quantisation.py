"""QuantizeLinear and DequantizeLinear: at the ends of a network, around its operators, and of constants."""

import numpy as np

from ..arithmetic.ends import limits, quantise
from ..graph import Tensor
from .values import Constant, Real

__all__ = ["dequantize_linear", "quantize_linear"]


def quantize_linear(op, reading):
    """QuantizeLinear: x, scale, zero point."""
    op.require("block_size", 0)
    op.take("saturate", 1)  # of types that are not supported
    op.require("precision", 0)
    axis = op.take("axis", 1)
    dtype = _output_type(op)
    value = op.value(0)
    if isinstance(value, Constant):
        reading.values[op.output] = _quantised(op, value, axis)
        return
    y = op.quantity(1, 2, dtype)
    if isinstance(value, Tensor):
        op.tensor(0, types=("float32",))
    reading.make(op, value, op.output, y, limits(y.dtype))


def dequantize_linear(op, reading):
    """DequantizeLinear: x, scale, zero point. Floats are made of it only at the end of a network."""
    op.require("block_size", 0)
    op.require("output_dtype", 1)
    axis = op.take("axis", 1)
    value = op.value(0)
    if isinstance(value, Constant):
        array = value.array
        if array.dtype.name not in ("uint8", "int8", "int32"):
            raise op.refusal(f"its input {op.input_name(0)!r} is {array.dtype}, which is not supported")
        scale, zero = op.scales(1), op.zeros(2, array.dtype)
        _check_axis(op, array, axis, scale)
        reading.values[op.output] = Constant(array, scale, np.broadcast_to(zero, scale.shape), axis)
        return
    x = op.tensor(0)
    reading.values[op.output] = Real(x.name, op.quantity(1, 2, x.dtype), op)


def _output_type(op):
    """The type that the zero point or an attribute says."""
    names = {0: None, 2: "uint8", 3: "int8"}
    number = op.take("output_dtype", 0)
    if number not in names:
        raise op.refusal(f"its output type {number} is not supported: only uint8 and int8 are")
    return names[number]


def _quantised(op, value, axis):
    """A constant of floats as integers."""
    array = value.array
    if array.dtype != np.float32 or value.scale is not None:
        raise op.refusal(f"its input {op.input_name(0)!r} is a constant of {array.dtype}, not float32")
    if not np.isfinite(array).all():
        raise op.refusal(f"its input {op.input_name(0)!r} has elements that are not finite")
    dtype = op.constant(2, "zero point").array.dtype.name if op.has(2) else "uint8"
    if dtype not in ("uint8", "int8"):
        raise op.refusal(f"its zero point is {dtype}, which is not supported")
    scale, zero = op.scales(1), op.zeros(2, dtype)
    _check_axis(op, array, axis, scale)
    zero = np.broadcast_to(zero, scale.shape)
    if scale.size == 1:
        return Constant(quantise(array, scale[0], int(zero[0]), dtype))
    parts = np.moveaxis(array, axis, 0)
    made = [quantise(part, each, int(z), dtype) for part, each, z in zip(parts, scale, zero, strict=True)]
    return Constant(np.moveaxis(np.stack(made), 0, axis))


def _check_axis(op, array, axis, scale):
    """Refuses scales that are not one for all, or one for each index of dimension ``axis``."""
    zeros = op.constant(2, "zero point").array.size if op.has(2) else 1
    if zeros not in (1, scale.size):
        raise op.refusal(f"it has {scale.size} scales and {zeros} zero points")
    if scale.size == 1:
        return
    if not -array.ndim <= axis < array.ndim or array.shape[axis] != scale.size:
        raise op.refusal(f"it has {scale.size} scales along dimension {axis} of {list(array.shape)}")
