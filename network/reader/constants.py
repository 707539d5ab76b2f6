"""Nodes of which nothing is left when a model has been read: what is worked out from constants, and from shapes."""

import math
from dataclasses import replace

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from .values import Constant

__all__ = ["CONSTANT_OPERATORS", "constant_of"]

#: Elements of a constant that is worked out.
_MOST = 1 << 24

#: Of numbers: sizes of shapes, scales of biases.
_NUMBERS = {"Add", "Cast", "Concat", "ConstantOfShape", "Div", "Gather", "Mul", "Slice", "Sub"}
#: Of weights too, also of those to which a DequantizeLinear has given a meaning: they change places alone.
_PLACES = {"Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
#: Operators that may give a constant.
CONSTANT_OPERATORS = {"Constant", "Shape"} | _NUMBERS | _PLACES


def constant_of(op, opset):
    """The Constant that a node gives; None if it does not give one.

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
    if op.kind not in _NUMBERS | _PLACES:
        return None
    values = [op.value(index) for index in range(len(op)) if op.has(index)]
    if not values or not all(isinstance(value, Constant) for value in values):
        return None
    first, *rest = values
    if any(value.scale is not None for value in rest) or (first.scale is not None and op.kind in _NUMBERS):
        return None
    sizes = first.array.tolist() if op.kind == "ConstantOfShape" else [value.array.size for value in values]
    if op.kind in _NUMBERS and math.prod(np.ravel(sizes).astype(float)) > _MOST:
        raise op.refusal(f"its output may have more than {_MOST:,} elements")

    def worked_out(array):
        return _worked_out(op, opset, [array, *(value.array for value in rest)])

    found = _moved(op, first, worked_out)
    op.forget()
    return found


def _worked_out(op, opset, arrays):
    proto = op.proto
    names = dict.fromkeys(name for name in proto.input if name)
    ends = [[onnx.helper.make_empty_tensor_value_info(name) for name in some] for some in (names, proto.output)]
    model = onnx.helper.make_model(
        onnx.helper.make_graph([proto], "constant", *ends), opset_imports=[onnx.helper.make_opsetid("", opset)]
    )
    given = dict(zip((name for name in proto.input if name), arrays, strict=True))
    try:
        return np.asarray(ReferenceEvaluator(model).run(None, given)[0])
    except Exception as error:  # whatever a wrong attribute, or inputs that do not fit, lead to
        raise op.refusal(f"it cannot be worked out from its constants: {' '.join(str(error).split())}") from None


def _moved(op, constant, change):
    """A constant with the places of its elements changed; several scales must still be those of one dimension."""
    array = change(constant.array)
    if constant.scale is None or constant.scale.size == 1:
        return replace(constant, array=array, axis=0)
    along = np.arange(constant.scale.size, dtype=np.int64)
    shape = [1] * constant.array.ndim
    shape[constant.axis] = -1
    numbers = change(np.broadcast_to(along.reshape(shape), constant.array.shape))
    for axis in range(numbers.ndim):
        ones = np.moveaxis(numbers, axis, -1)
        own = ones.reshape(-1, ones.shape[-1])[0]
        if (ones == own).all():
            return Constant(array, constant.scale[own], constant.zero[own], axis)
    raise op.refusal(f"scales of its input {op.input_name(0)!r} are no longer those of one dimension")
