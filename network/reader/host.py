"""Operators on floats at the end of a network, which the host computes with ONNX's reference implementation."""

from math import prod

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from ..graph import Floats, Tensor
from .operator import Constant, Pending

__all__ = ["HOSTED", "on_host"]

#: Operators that the host computes.
HOSTED = frozenset((
    "Abs", "Add", "And", "ArgMax", "ArgMin", "Ceil", "Clip", "Concat", "Cos", "Div",
    "Elu", "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Gelu",
    "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "InstanceNormalization", "LayerNormalization",
    "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "Max", "Mean", "Min", "Mod", "Mul",
    "Neg", "NonMaxSuppression", "Not", "Or", "PRelu", "Pow", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu",
    "Reshape", "Round", "Sigmoid", "Sign", "Sin", "Slice", "Softmax", "Softplus", "Split", "Sqrt", "Squeeze", "Sub",
    "Sum", "Tanh", "Tile", "TopK", "Transpose", "Unsqueeze", "Where",
))  # fmt: skip
#: Operators whose elements decide the size of the result.
_OPEN = frozenset({"NonMaxSuppression"})
#: Most elements of a result.
_MOST = 1 << 26


def on_host(op, reading, refusal=None):
    """Makes the outputs of a node floats, or numbers of another type, that the host computes.

    Parameters
    ----------
    op : Operator
        One of ``HOSTED``.
    reading : Reading
    refusal : ModelError or None
        Why its results cannot be integers of the engines; raised if a QuantizeLinear asks for them.

    Returns
    -------
    bool
        False if an input is not known to the host.
    """
    names = [name for name in dict.fromkeys(op.proto.input) if name]
    values = {name: reading.values.get(name) for name in names}
    if op.kind not in HOSTED or op.proto.domain not in ("", "ai.onnx"):
        return False
    constants = {name: _array(value) for name, value in values.items() if isinstance(value, Constant)}
    others = [name for name in names if name not in constants]
    if not others or not all(_is_known(reading, values[name]) for name in others):
        return False
    shapes = {name: op.shape_of(values[name]) for name in others}
    types = {name: getattr(values[name], "dtype", "float32") for name in others}
    if any(min(shape, default=1) < 0 for shape in shapes.values()):
        return False
    evaluator = ReferenceEvaluator(_model(op, reading.opset, constants, shapes, types))

    def computed(arrays):
        with np.errstate(all="ignore"):
            return [np.asarray(result) for result in evaluator.run(None, dict(zip(others, arrays, strict=True)))]

    try:
        made = computed([np.zeros(shapes[name], types[name]) for name in others])
    except Exception as error:  # any class: attributes or inputs are wrong
        if refusal:
            return False
        raise op.refusal(f"it cannot be computed: {' '.join(str(error).split())}") from None
    for number, (name, example) in enumerate(zip(op.outputs, made, strict=False)):
        op.refuse_if(prod(example.shape) > _MOST, f"its output {name!r} has more than {_MOST:,} elements")
        shape = (-1,) * example.ndim if op.kind in _OPEN else example.shape
        attributes = Floats(lambda *arrays, number=number: computed(arrays)[number])

        def floats(output, attributes=attributes, shape=shape, dtype=example.dtype.name):
            reading.emit(op, [reading.on_host(name) for name in others], output, attributes, shape, dtype)

        if example.dtype == np.float32 and op.kind not in _OPEN:
            reading.values[name] = Pending(op, shape, _refused(op, refusal), floats=floats)
        else:
            floats(name)
    op.forget()
    return True


def _refused(op, refusal):
    def finish(output, y, clamp):
        raise refusal or op.refusal("it reads what the host computes, and only the end of a network does that")

    return finish


def _is_known(reading, value):
    """Whether the host has the floats of a value, or its numbers of another type."""
    if isinstance(value, Tensor):
        return value.dtype not in ("uint8", "int8") and value.name not in reading.inputs
    return value is not None and reading.floats_of(value) is not None


def _array(constant):
    """A constant as the floats that it means."""
    if constant.scale is None:
        return constant.array
    sizes = [1] * constant.array.ndim
    if constant.scale.size > 1:
        sizes[constant.axis] = -1
    scale, zero = (part.reshape(sizes) for part in (constant.scale, constant.zero))
    return (constant.array.astype(np.int64) - zero).astype(np.float32) * scale


def _model(op, opset, constants, shapes, types):
    node = onnx.NodeProto()
    node.CopyFrom(op.proto)
    codes = {name: onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) for name, dtype in types.items()}
    inputs = [onnx.helper.make_tensor_value_info(name, codes[name], shape) for name, shape in shapes.items()]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in op.outputs]
    given = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = onnx.helper.make_graph([node], "host", inputs, outputs, given)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
