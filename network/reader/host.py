"""Operators on floats at the end of a network, which the host computes with ONNX's reference implementation."""

from math import prod

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from ..attributes import Floats
from ..graph import Tensor
from .floats import OWN, attributes_of
from .operator import READERS, Constant, Pending
from .recurrent import RECURRENT

__all__ = ["HOSTED", "on_host"]

#: Operators that the host computes.
HOSTED = frozenset((
    "Abs", "Add", "And", "ArgMax", "ArgMin", "BatchNormalization", "Cast", "Ceil", "Celu", "Clip", "Concat", "Cos",
    "CumSum", "Div", "Elu", "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements",
    "GatherND", "Gelu", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "Greater", "GreaterOrEqual",
    "GRU", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "InstanceNormalization", "LRN", "LSTM",
    "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "Max", "Mean",
    "Min", "Mish", "Mod", "Mul", "Neg", "NonMaxSuppression", "Not", "Or", "PRelu", "Pad", "Pow", "RNN", "Reciprocal",
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare", "Relu", "Reshape", "Resize", "Round", "ScatterElements", "ScatterND", "Selu",
    "Sigmoid", "Sign", "Sin", "Slice", "Softmax", "Softplus", "Softsign", "Split", "Sqrt", "Squeeze", "Sub", "Sum",
    "Tanh", "ThresholdedRelu", "Tile", "TopK", "Transpose", "Unsqueeze", "Where",
))  # fmt: skip
#: Operators whose elements decide the size of the result, and those whose second and further inputs do.
_OPEN, _OPEN_BY_OTHERS = frozenset({"NonMaxSuppression"}), frozenset({"Expand", "Reshape", "Slice", "Tile", "TopK"})
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
        Why the engines cannot do it. It is raised later if much of the network follows.

    Returns
    -------
    bool
        False if an input is not known to the host.
    """
    names = [name for name in dict.fromkeys(op.proto.input) if name]
    values = {name: reading.values.get(name) for name in names}
    if op.kind not in HOSTED or op.proto.domain not in ("", "ai.onnx") or getattr(refusal, "host", "") == "nothing":
        return False
    constants = {name: value.meaning for name, value in values.items() if isinstance(value, Constant)}
    others = [name for name in names if name not in constants]
    if not others or not all(_is_known(op, reading, values[name]) for name in others):
        return False
    shapes = {name: op.shape_of(values[name]) for name in others}
    types = {name: getattr(values[name], "dtype", "float32") for name in others}
    decided = op.kind in _OPEN_BY_OTHERS and not set(others).isdisjoint(op.proto.input[1:])
    meaningless = getattr(refusal, "host", "") == "floats" or any(map(_has_nan, constants.values()))

    def computed(arrays):
        given = dict(zip(others, arrays, strict=True))
        with np.errstate(all="ignore"):
            return [np.asarray(result) for result in function(given)]

    try:
        model = _model(op, reading.opset, constants, shapes, types)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)  # the evaluator checks little
        function = _function(op, model, constants)
        made, larger = (computed([np.zeros(np.where(np.equal(shapes[name], -1), size, shapes[name]), types[name])
                                  for name in others]) for size in (1, 2))  # fmt: skip
    except Exception:  # any class: attributes or inputs are wrong, or the evaluator is not complete
        return False
    for number, (name, example, other) in enumerate(zip(op.outputs, made, larger, strict=False)):
        op.refuse_if(prod(example.shape) > _MOST, f"its output {name!r} has more than {_MOST:,} elements")
        sizes = (one if one == two and not decided else -1 for one, two in zip(example.shape, other.shape, strict=True))
        shape = (-1, *example.shape[1:]) if op.kind in _OPEN else tuple(sizes)
        attributes = Floats(lambda *arrays, number=number: computed(arrays)[number], str(refusal or ""))

        def floats(output, attributes=attributes, shape=shape, dtype=example.dtype.name):
            reading.emit(op, [reading.on_host(name) for name in others], output, attributes, shape, dtype)

        if example.dtype == np.float32 and -1 not in shape:
            finish = _refused(refusal) if meaningless else reading.quantised(op, floats)
            reading.values[name] = Pending(op, shape, finish, floats=floats)
        else:
            floats(name)
    op.forget()
    return True


def _function(op, model, constants):
    """A function of arrays by name that computes the outputs of a node."""
    own = OWN.get(op.kind) or RECURRENT.get(op.kind)
    if own is None:
        evaluator = ReferenceEvaluator(model)
        return lambda given: evaluator.run(None, given)
    attributes, names = attributes_of(op.proto), list(op.proto.input)

    def function(given):
        values = constants | given | {"": np.zeros(0, np.float32)}
        made = own(attributes, *(values[name] for name in names))
        results = made if isinstance(made, list) else [made]
        return [result for name, result in zip(op.proto.output, results, strict=False) if name]

    return function


def _refused(refusal):
    def finish(output, y, clamp):
        raise refusal

    return finish


def _has_nan(array):
    return array.dtype.kind == "f" and np.isnan(array).any()


def _is_known(op, reading, value):
    """Whether the host has the floats of a value, or its numbers of another type."""
    if isinstance(value, Tensor):
        return value.dtype not in ("uint8", "int8") or ("", op.kind) not in READERS or op.kind == "Cast"
    return value is not None and reading.floats_of(value) is not None


def _model(op, opset, constants, shapes, types):
    node = onnx.NodeProto()
    node.CopyFrom(op.proto)
    codes = {name: onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) for name, dtype in types.items()}
    sizes = {name: [None if size < 0 else size for size in shape] for name, shape in shapes.items()}
    inputs = [onnx.helper.make_tensor_value_info(name, codes[name], shape) for name, shape in sizes.items()]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in op.outputs]
    given = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = onnx.helper.make_graph([node], "host", inputs, outputs, given)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
