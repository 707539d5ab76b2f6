"""A whole model: its constants and inputs, its nodes one after the other, its outputs."""

import onnx
from onnx import numpy_helper

from tilewright.golden.arguments import instance

from ..arithmetic.functions import FUNCTIONS, OPERATIONS
from ..errors import ModelError
from ..graph import Reshape, Tensor
from . import aliases, elements, functions, layout, pools, products, quantisation, selection
from .clamps import fold_clamps
from .constants import FOR_CONSTANTS, constant_of
from .file import load
from .operator import Operator
from .reading import Reading
from .resize import resize
from .rows import in_one_row
from .schema import check_opset, check_schema
from .values import Constant, Pending

__all__ = ["READERS", "read", "read_model"]

_MICROSOFT = "com.microsoft"

#: What reads a node, by its domain and operator.
READERS = {
    ("", "AveragePool"): in_one_row(pools.average_pool),
    ("", "Add"): elements.add,
    ("", "Cast"): aliases.cast,
    ("", "Clip"): elements.clip,
    ("", "Concat"): layout.concat,
    ("", "Conv"): in_one_row(products.conv, 1),
    ("", "DequantizeLinear"): quantisation.dequantize_linear,
    ("", "DepthToSpace"): selection.depth_to_space,
    ("", "Dropout"): aliases.dropout,
    ("", "Flatten"): layout.flatten,
    ("", "Gather"): selection.gather,
    ("", "Gemm"): products.gemm,
    ("", "GlobalAveragePool"): in_one_row(pools.global_average_pool),
    ("", "GlobalMaxPool"): in_one_row(pools.global_max_pool),
    ("", "Identity"): aliases.identity,
    ("", "MatMul"): products.matmul,
    ("", "MaxPool"): in_one_row(pools.max_pool),
    ("", "Mul"): elements.mul,
    ("", "Pad"): layout.pad,
    ("", "QLinearConv"): in_one_row(products.qlinear_conv, 3),
    ("", "QLinearMatMul"): products.qlinear_matmul,
    ("", "QuantizeLinear"): quantisation.quantize_linear,
    ("", "ReduceMean"): pools.reduce_mean,
    ("", "Relu"): elements.relu,
    ("", "Reshape"): layout.reshape,
    ("", "Resize"): resize,
    ("", "Slice"): selection.slice_of,
    ("", "Softmax"): functions.softmax,
    ("", "SpaceToDepth"): selection.space_to_depth,
    ("", "Split"): selection.split,
    ("", "Squeeze"): layout.squeeze,
    ("", "Transpose"): layout.transpose,
    ("", "Unsqueeze"): layout.unsqueeze,
    **{("", name): functions.unary for name in FUNCTIONS},
    **{("", name): functions.binary for name in OPERATIONS.keys() - {"Add", "Mul"}},
    (_MICROSOFT, "DequantizeLinear"): quantisation.dequantize_linear,
    (_MICROSOFT, "Gelu"): functions.unary,
    (_MICROSOFT, "QGemm"): products.qgemm,
    (_MICROSOFT, "QLinearAdd"): elements.qlinear_add,
    (_MICROSOFT, "QLinearAveragePool"): in_one_row(pools.qlinear_average_pool),
    (_MICROSOFT, "QLinearConcat"): layout.qlinear_concat,
    (_MICROSOFT, "QLinearGlobalAveragePool"): in_one_row(pools.qlinear_global_average_pool),
    (_MICROSOFT, "QLinearLeakyRelu"): functions.qlinear_unary,
    (_MICROSOFT, "QLinearMul"): elements.qlinear_mul,
    (_MICROSOFT, "QLinearSigmoid"): functions.qlinear_unary,
    (_MICROSOFT, "QLinearSoftmax"): functions.qlinear_softmax,
    (_MICROSOFT, "QuantizeLinear"): quantisation.quantize_linear,
}


def read(path):
    """The network in an ONNX file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Graph

    Raises
    ------
    ModelError
        If it is no model, or has what is not supported; one sentence that names the node.
    OSError
        If the file cannot be read.
    """
    return read_model(load(path))


def read_model(model):
    """The same of an ``onnx.ModelProto``."""
    graph = instance("model", model, onnx.ModelProto, "onnx").graph
    opset = max((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), default=13)
    check_opset(opset)
    reading = Reading(opset)
    for tensor in graph.initializer:
        reading.values[tensor.name] = Constant(_array(tensor, f"constant {tensor.name!r}"))
    if graph.sparse_initializer:
        raise ModelError(f"constant {graph.sparse_initializer[0].values.name!r} is sparse, which is not supported")
    inputs = [value for value in graph.input if value.name not in reading.values]
    for value in inputs:
        reading.give(_given(value))
    for proto in graph.node:
        _read_node(proto, reading)
    outputs = [value.name for value in graph.output]
    if not outputs:
        raise ModelError("the model has no outputs")
    for name in outputs:
        value = reading.values.get(name)
        if isinstance(value, Tensor) and value.dtype == "float32" and any(value.name == each.name for each in inputs):
            raise ModelError(f"output {name!r} is input {value.name!r}, of which nothing is computed")
        _end(name, reading)
    return fold_clamps(reading.graph([value.name for value in inputs], outputs))


def _read_node(proto, reading):
    op = Operator(proto, reading)
    for name in op.outputs:
        if name in reading.values:
            raise op.refusal(f"its output {name!r} is there already")
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    if not domain and (proto.op_type in FOR_CONSTANTS or (domain, proto.op_type) in READERS):
        check_schema(op, reading.opset)
    if (domain, proto.op_type) == ("", "Constant"):
        reading.values[op.output] = _constant(op)
        op.end()
        return
    constant = None if domain else constant_of(op, reading.opset)
    if constant is not None:
        reading.values[op.output] = constant
        op.end()
        return
    reader = READERS.get((domain, proto.op_type))
    if reader is None:
        raise op.refusal(f"the operator{f' of {domain}' if domain else ''} is not supported")
    if proto.HasField("overload") and proto.overload:
        raise op.refusal("functions of the model are not supported")
    reader(op, reading)
    op.end()


def _array(tensor, what):
    """The numpy array of a message."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise ModelError(f"{what} lies in another file, which was not read with the model")
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{what} cannot be read: {' '.join(str(error).split())}") from None


def _constant(op):
    """What a Constant node gives."""
    for name, kind in (("value", onnx.TensorProto), ("value_int", int), ("value_ints", int), ("value_float", float),
                       ("value_floats", float)):  # fmt: skip
        value = op.take(name, None, kind)
        if value is not None:
            if kind is onnx.TensorProto:
                return Constant(_array(value, f"constant {op.name!r}"))
            tensor_type = onnx.TensorProto.INT64 if kind is int else onnx.TensorProto.FLOAT
            shape = (len(value),) if isinstance(value, tuple) else ()
            numbers = value if isinstance(value, tuple) else (value,)
            return Constant(numpy_helper.to_array(onnx.helper.make_tensor("", tensor_type, shape, numbers)))
    raise op.refusal("only numbers are supported")


def _given(value):
    """The tensor that an input of the model is."""
    kind = value.type.tensor_type
    names = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.UINT8: "uint8", onnx.TensorProto.INT8: "int8"}
    if kind.elem_type not in names:
        try:
            name = onnx.TensorProto.DataType.Name(kind.elem_type).lower()
        except ValueError:
            name = f"of type {kind.elem_type}"
        raise ModelError(f"input {value.name!r} is {name}, which is not supported")
    if not kind.HasField("shape"):
        raise ModelError(f"input {value.name!r} has no shape")
    shape = []
    for i, dimension in enumerate(kind.shape.dim):
        size = dimension.dim_value if dimension.HasField("dim_value") else dimension.dim_param or -1
        if i == 0 and len(kind.shape.dim) > 1 and (isinstance(size, str) or size < 0):
            size = 1  # the batch, of any size
        if isinstance(size, str) or size < 1:
            raise ModelError(f"dimension {i} of input {value.name!r} is {size!r}: only fixed sizes are supported")
        shape.append(size)
    return Tensor(value.name, tuple(shape), names[kind.elem_type])


def _end(name, reading):
    """Makes sure that an output of the model is a tensor."""
    value = reading.values.get(name)
    if isinstance(value, Tensor) and value.name == name:
        return
    real = None if value is None else reading.real(name)
    floats = reading.floats_of(real or value)
    if floats is not None:
        floats(name)
    elif isinstance(value, Pending):
        raise value.node.float_refusal(f"its output {name!r} is float32, which no QuantizeLinear makes integers")
    elif isinstance(value, Tensor):
        again = Operator(onnx.helper.make_node("Identity", [value.name], [name]), reading)
        reading.emit(again, [value.name], name, Reshape(value.shape), value.shape, value.dtype)
    else:
        raise ModelError(f"output {name!r} is {'given by nothing' if value is None else 'a constant'}")
