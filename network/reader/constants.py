"""Nodes that leave nothing in the graph: computed from constants and shapes, or without effect after training."""

import math

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from ..graph import Tensor
from .operator import Constant

__all__ = ["FOR_CONSTANTS", "cast", "constant_of", "dropout", "identity", "plain_cast"]


def identity(op, reading):
    """Identity."""
    reading.values[op.output] = op.value(0)


def dropout(op, reading):
    """Dropout, which has no effect after training; its mask may not be read."""
    op.take("ratio", 0.5, float)
    op.skip(1)  # the ratio of later versions
    op.take("seed", 0)
    if op.has(2) and op.constant(2, "training mode").array.any():
        raise op.refusal("training mode is not supported")
    reading.values[op.outputs[0]] = op.value(0)


def plain_cast(op):
    """Refuses attributes that have an effect only for types that are not supported."""
    op.require("saturate", 1)
    op.require("round_mode", "up", str)


def cast(op, reading):
    """Cast to the same type."""
    plain_cast(op)
    value = op.value(0)
    kind = value.dtype if isinstance(value, Tensor) else "float32"
    types = {"float32": onnx.TensorProto.FLOAT, "uint8": onnx.TensorProto.UINT8, "int8": onnx.TensorProto.INT8}
    if op.take("to", 0) != types[kind]:
        raise op.refusal(f"it changes the type of {kind}, which only QuantizeLinear and DequantizeLinear do")
    reading.values[op.output] = value


#: Most elements of a constant that is computed.
_MOST = 1 << 24

#: Operators that compute shapes, scales and weights.
_NUMBERS = {"Abs", "Add", "Cast", "Ceil", "Clip", "Concat", "ConstantOfShape", "Div", "Equal", "Exp", "Expand", "Floor",
            "Gather", "Greater", "Less", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Pow", "Range", "Reciprocal",
            "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Round", "Slice", "Sqrt", "Sub", "Tile",
            "Where"}  # fmt: skip
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
        plain_cast(op)
    op.refuse_if(op.kind == "Div" and arrays[1].dtype.kind in "iu" and not arrays[1].all(), "it divides by 0")
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)  # the evaluator checks little
        return np.asarray(ReferenceEvaluator(model).run(None, {})[0])
    except Exception as error:  # any class: attributes or inputs are wrong
        raise op.refusal(f"it cannot be computed from its constants: {' '.join(str(error).split())}") from None
