"""Constants and what is computed from them, quantisation, casts, and nodes that have no effect after training.

QuantizeLinear and DequantizeLinear stand at the ends of a network, around its operators, and on constants.
"""

import math

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from ..arithmetic import limits, quantise
from ..graph import Tensor
from .operator import MICROSOFT, Constant, Real, reads

__all__ = ["FOR_CONSTANTS", "constant_of"]


@reads("Identity")
def _identity(op, reading):
    """Identity."""
    reading.values[op.output] = op.value(0)


@reads("Dropout")
def _dropout(op, reading):
    """Dropout, which has no effect after training; its mask may not be read."""
    op.take("ratio", 0.5, float)
    op.skip(1)  # the ratio of later versions
    op.take("seed", 0)
    if op.has(2) and op.constant(2, "training mode").array.any():
        raise op.refusal("training mode is not supported")
    reading.values[op.outputs[0]] = op.value(0)


def _plain_cast(op):
    """Refuses attributes that have an effect only for types that are not supported."""
    for name, plain in (("saturate", 1), ("round_mode", "up")):
        given = op.take(name, plain, type(plain))
        if given != plain:
            raise op.refusal(f"its attribute {name!r} is {given!r}, and only {plain!r} is supported", host="nothing")


@reads("Cast")
def _cast(op, reading):
    """Cast to the same type."""
    _plain_cast(op)
    value = op.value(0)
    kind = value.dtype if isinstance(value, Tensor) else "float32"
    types = {"float32": onnx.TensorProto.FLOAT, "uint8": onnx.TensorProto.UINT8, "int8": onnx.TensorProto.INT8}
    types |= dict.fromkeys(("int32", "int64"), onnx.TensorProto.FLOAT)  # the host quantises them
    if op.take("to", 0) != types.get(kind):
        raise op.refusal(f"it changes the type of {kind}, which only QuantizeLinear and DequantizeLinear do")
    reading.values[op.output] = value


#: Most elements of a constant that is computed.
_MOST = 1 << 24

#: Operators that compute shapes, scales and weights.
_NUMBERS = {"Add", "Cast", "Ceil", "Clip", "Concat", "ConstantOfShape", "Div", "Equal", "Expand", "Floor", "Gather",
            "Max", "Min", "Mul", "Neg", "Pow", "Range", "Slice", "Sqrt", "Sub", "Tile", "Where"}  # fmt: skip
#: Operators that may give a constant.
FOR_CONSTANTS = {"Constant", "Shape"} | _NUMBERS


def constant_of(op, opset):
    """The Constant that a node computes from constants and shapes; None if it does not.

    Parameters
    ----------
    op : Operator
    opset : int
        Version of ONNX's operators.
    """
    if op.kind == "Shape" and op.has(0):
        shape = op.shape_of(op.value(0))
        start, end = op.take("start", 0), op.take("end", len(shape))
        return Constant(np.array(shape[start:end], np.int64))
    if op.kind not in _NUMBERS:
        return None
    values = [op.value(index) for index in range(len(op)) if op.has(index)]
    if not values or not all(isinstance(value, Constant) for value in values):
        return None
    if any(value.scale is not None for value in values):
        return None
    arrays = [value.array for value in values]
    sizes = arrays[0].tolist() if op.kind == "ConstantOfShape" else [array.size for array in arrays]
    op.refuse_if(math.prod(np.ravel(sizes).astype(float)) > _MOST, f"its output may have more than {_MOST:,} elements")
    constant = Constant(_computed(op, opset, arrays))
    op.forget()
    return constant


def _computed(op, opset, arrays):
    given = dict(zip((name for name in op.proto.input if name), arrays, strict=True))
    outputs = [onnx.helper.make_empty_tensor_value_info(op.output)]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in given.items()]
    graph = onnx.helper.make_graph([op.proto], "constant", [], outputs, constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    if op.kind == "Cast":
        _plain_cast(op)
    op.refuse_if(op.kind == "Div" and arrays[1].dtype.kind in "iu" and not arrays[1].all(), "it divides by 0")
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)  # the evaluator checks little
        return np.asarray(ReferenceEvaluator(model).run(None, {})[0])
    except Exception as error:  # any class: attributes or inputs are wrong
        raise op.refusal(f"it cannot be computed from its constants: {' '.join(str(error).split())}") from None


_TYPES = {onnx.TensorProto.UINT8: "uint8", onnx.TensorProto.INT8: "int8"}


@reads("QuantizeLinear")
@reads("QuantizeLinear", domain=MICROSOFT)
def _quantize_linear(op, reading):
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
        op.tensor(0, types=("float32", *(("int32", "int64") if value.name in reading.inputs else ())))
    reading.make(op, value, op.output, y, limits(y.dtype))


@reads("DequantizeLinear")
@reads("DequantizeLinear", domain=MICROSOFT)
def _dequantize_linear(op, reading):
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
        return Constant(np.asarray(quantise(array, scale[0], int(zero[0]), dtype)))
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
