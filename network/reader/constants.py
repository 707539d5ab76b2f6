"""Nodes of which nothing is left when a model has been read: what is worked out from constants, and from shapes."""

import math

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from .aliases import plain_cast
from .values import Constant

__all__ = ["FOR_CONSTANTS", "constant_of"]

#: Elements of a constant that is worked out.
_MOST = 1 << 24

#: Operators on numbers: sizes of shapes, scales of biases.
_NUMBERS = {"Add", "Cast", "Concat", "ConstantOfShape", "Div", "Gather", "Mul", "Slice", "Sub"}
#: All that may give a constant here.
FOR_CONSTANTS = {"Constant", "Shape"} | _NUMBERS


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
    if op.kind not in _NUMBERS:
        return None
    values = [op.value(index) for index in range(len(op)) if op.has(index)]
    if not values or not all(isinstance(value, Constant) for value in values):
        return None
    if any(value.scale is not None for value in values):
        return None
    arrays = [value.array for value in values]
    sizes = arrays[0].tolist() if op.kind == "ConstantOfShape" else [array.size for array in arrays]
    if math.prod(np.ravel(sizes).astype(float)) > _MOST:
        raise op.refusal(f"its output may have more than {_MOST:,} elements")
    found = Constant(_worked_out(op, opset, arrays))
    op.forget()
    return found


def _worked_out(op, opset, arrays):
    given = dict(zip((name for name in op.proto.input if name), arrays, strict=True))
    outputs = [onnx.helper.make_empty_tensor_value_info(op.output)]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in given.items()]
    graph = onnx.helper.make_graph([op.proto], "constant", [], outputs, constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    if op.kind == "Cast":
        plain_cast(op)
    if op.kind == "Div" and arrays[1].dtype.kind in "iu" and not arrays[1].all():
        raise op.refusal("it divides by 0")
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)  # the evaluator checks little
        with np.errstate(all="ignore"):
            return np.asarray(ReferenceEvaluator(model).run(None, {})[0])
    except Exception as error:  # whatever a wrong attribute, or inputs that do not fit, lead to
        raise op.refusal(f"it cannot be worked out from its constants: {' '.join(str(error).split())}") from None
