"""QuantizeLinear and DequantizeLinear at the ends of a network, around its operators, and on constants."""

import numpy as np
import onnx

from ..arithmetic.rounding import limits, quantise
from ..graph import Tensor
from .operator import Constant, Real

__all__ = ["dequantize_linear", "quantize_linear"]

_TYPES = {onnx.TensorProto.UINT8: "uint8", onnx.TensorProto.INT8: "int8"}


def quantize_linear(op, reading):
    """QuantizeLinear: x, scale, zero point."""
    op.require("block_size", 0)
    op.take("saturate", 1)  # for types that are not supported
    op.require("precision", 0)
    axis = op.take("axis", 1)
    dtype = _output_type(op)
    value = op.value(0)
    if isinstance(value, Constant):
        reading.values[op.output] = _quantised(op, value, axis, dtype)
        return
    y = op.quantity(1, 2, dtype)
    if isinstance(value, Tensor):
        op.tensor(0, types=("float32",))
    reading.make(op, value, op.output, y, limits(y.dtype))


def dequantize_linear(op, reading):
    """DequantizeLinear: x, scale, zero point. Its floats are computed only at the end of a network."""
    op.require("block_size", 0)
    if op.take("output_dtype", 0) not in (0, onnx.TensorProto.FLOAT):
        raise op.refusal("its output type is not float32, which is not supported")
    axis = op.take("axis", 1)
    value = op.value(0)
    if isinstance(value, Constant):
        array = value.array
        if array.dtype.name not in ("uint8", "int8", "int32"):
            raise op.refusal(f"its input {op.input_name(0)!r} is {array.dtype}, which is not supported")
        scale, zero, axis = _for_each(op, array, axis, array.dtype)
        reading.values[op.output] = Constant(array, scale, zero, axis)
        return
    x = op.tensor(0)
    reading.values[op.output] = Real(x.name, op.quantity(1, 2, x.dtype), op)


def _output_type(op):
    """The type of the integers, from an attribute or the zero point; by default uint8."""
    number = op.take("output_dtype", 0)
    zero = op.constant(2, "zero point").array.dtype.name if op.has(2) else None
    if number == 0:
        name = zero or "uint8"
    else:
        name = _TYPES.get(number)
        if name is None:
            raise op.refusal(f"its output type {number} is not supported: only uint8 and int8 are")
        if zero not in (None, name):
            raise op.refusal(f"its output type is {name}, and its zero point {op.input_name(2)!r} is {zero}")
    if name not in _TYPES.values():
        raise op.refusal(f"its zero point {op.input_name(2)!r} is {zero}, which is not supported")
    return name


def _quantised(op, value, axis, dtype):
    """A constant of floats as integers."""
    array = value.array
    if array.dtype != np.float32 or value.scale is not None:
        raise op.refusal(f"its input {op.input_name(0)!r} is a constant of {array.dtype}, not float32")
    op.refuse_if(not np.isfinite(array).all(), f"its input {op.input_name(0)!r} has elements that are not finite")
    scale, zero, axis = _for_each(op, array, axis, dtype)
    if scale.size == 1:
        return Constant(quantise(array, scale[0], int(zero[0]), dtype))
    parts = np.moveaxis(array, axis, 0)
    quantised = [quantise(part, each, int(z), dtype) for part, each, z in zip(parts, scale, zero, strict=True)]
    return Constant(np.moveaxis(np.stack(quantised), 0, axis))


def _for_each(op, array, axis, dtype):
    """Scales and zero points, one for all or one for each index of a dimension, and the dimension, counted from 0."""
    scale, zero = op.scales(1), op.zeros(2, dtype)
    op.refuse_if(op.has(2) and zero.size != scale.size, f"it has {scale.size} scales and {zero.size} zero points")
    zero = np.broadcast_to(zero, scale.shape)
    if scale.size == 1:
        return scale, zero, 0
    if not -array.ndim <= axis < array.ndim or array.shape[axis] != scale.size:
        raise op.refusal(f"it has {scale.size} scales along dimension {axis} of {list(array.shape)}")
    return scale, zero, axis % array.ndim
