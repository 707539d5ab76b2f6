"""Reads a whole model: its constants and inputs, its nodes in order, its outputs."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.external_data_helper import load_external_data_for_model

from tilewright.golden.arguments import instance, shown

from ..arithmetic import numbers
from ..attributes import Reshape
from ..ends import late_nodes
from ..graph import ModelError, Tensor, node_error
from . import (  # noqa: F401 - they enter their READERS
    arithmetic,
    cells,
    channels,
    elements,
    layout,
    normalisation,
    products,
    reductions,
    resize,
    selection,
    sums,
    transposed,
    windows,
)
from .constants import FOR_CONSTANTS, constant_of
from .help import help_for
from .host import HOSTED, on_host
from .operator import READERS, Constant, Operator, Pending, check_opset, check_schema
from .reading import Reading

__all__ = ["READERS", "fold_clamps", "load", "read", "read_model", "read_node", "read_nodes"]


def load(path):
    """The ``ModelProto`` of a file, with weights in other files.

    ModelError if it is not a model; OSError if the file cannot be read.
    """
    if not isinstance(path, str | Path):
        raise TypeError(f"path must be that of a model file, not {shown(path)}")
    with open(path, "rb") as file:  # noqa: PTH123 - its sentence names the file, whatever type the path has
        data = file.read()
    try:
        model = onnx.load_model_from_string(data)
    except Exception:  # the class is defined in a dependency of onnx, and nothing else can fail
        raise ModelError(f"{path} is not an ONNX model, or is truncated") from None
    if not model.graph.node:
        raise ModelError(f"{path} is not an ONNX model, or has no nodes")
    try:
        load_external_data_for_model(model, str(Path(path).parent))
    except Exception as error:  # a class of onnx, of files, or of numbers
        raise ModelError(f"{path} has weights in other files: {' '.join(str(error).split())}") from None
    return model


_CLAMPING = ("Conv", "Add", "MatMul", "Mul", "Pool")


def fold_clamps(graph):
    """The graph with nodes that only clamp joined to the node before, if that has a clamp and no other readers."""
    uses = Counter(name for node in graph.nodes for name in node.inputs) + Counter(graph.outputs)
    tensors, nodes, places = dict(graph.tensors), [], {}
    for node in graph.nodes:
        place = places.get(node.inputs[0])
        ends = _clamp(graph, node)
        if ends and place is not None and _clamps(nodes[place]) and uses[node.inputs[0]] == 1:
            before = nodes[place].attributes
            low, high = (int(np.clip(end, *ends)) for end in (before.minimum, before.maximum))
            attributes = replace(before, minimum=low, maximum=high)
            nodes[place] = replace(nodes[place], output=node.output, attributes=attributes)
            del tensors[node.inputs[0]]
        else:
            place = len(nodes)
            nodes.append(node)
        places[node.output] = place
    return replace(graph, tensors=tensors, nodes=tuple(nodes))


def _clamps(node):
    return node.kind in _CLAMPING and getattr(node.attributes, "kind", "") != "max"


def _clamp(graph, node):
    """Least and largest result of a node that only clamps; None for any other node."""
    if node.kind != "Concat" or len(node.inputs) != 1 or node.attributes.tables[0] is None:
        return None
    dtype, (table,) = graph.tensors[node.inputs[0]].dtype, node.attributes.tables
    ends = int(table.min()), int(table.max())
    same = table.dtype == dtype and np.array_equal(np.clip(numbers(dtype), *ends), table)
    return ends if same else None


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
        If it is not a model, or has something that is not supported; one sentence that names the node.
    OSError
        If the file cannot be read.
    """
    return read_model(load(path))


def read_model(model):
    """The network in an ``onnx.ModelProto``."""
    graph = read_nodes(model, read_node)
    for error in late_nodes(graph):
        raise error
    return graph


@np.errstate(all="ignore")  # results that are not finite are refused
def read_nodes(model, each):
    """The network in a model whose nodes are read by ``each``, a function of a NodeProto and the Reading."""
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
        reading.inputs.add(value.name)
    for proto in graph.node:
        each(proto, reading)
    outputs = [value.name for value in graph.output]
    if not outputs:
        raise ModelError("the model has no outputs")
    for name in outputs:
        value = reading.values.get(name)
        if isinstance(value, Tensor) and value.dtype == "float32" and any(value.name == each.name for each in inputs):
            raise ModelError(f"output {name!r} is input {value.name!r}, which is not computed")
        _end(name, reading)
    graph = fold_clamps(reading.graph([value.name for value in inputs], outputs))
    for node in graph.head:
        if node.output in outputs:
            raise _of_head(node)
    return graph


def _of_head(node):
    """The error of a node before the engines whose output is an output of the model."""
    reason = getattr(node.attributes, "reason", "")
    sentence = f"its output {node.output!r} is float32, which no QuantizeLinear makes integers: quantise it first"
    return ModelError(reason) if reason else node_error(node.name, node.operator, f"{sentence} (docs/quantise.md)")


def read_node(proto, reading):
    """Reads a node: its results become values of their names."""
    op = Operator(proto, reading)
    for name in op.outputs:
        op.refuse_if(name in reading.values, f"its output {name!r} is there already")
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
    op.refuse_if(proto.HasField("overload") and proto.overload, "functions of the model are not supported")
    try:
        reader = READERS.get((domain, proto.op_type))
        of = f" of {domain}" if domain else ""
        where = "only at the end of a network" if not domain and op.kind in HOSTED else "not"
        op.refuse_if(reader is None, f"the operator{of} is {where} supported{help_for(op.kind)}")
        op.refuse_if(not domain and op.kind in HOSTED and _is_open(op, reading),
                     "the elements of its inputs decide their sizes, so that only the host computes it")  # fmt: skip
        reader(op, reading)
        op.end()
    except ModelError as error:
        if not on_host(op, reading, error):
            raise
    else:
        _with_floats(op, reading)


def _is_open(op, reading):
    """Whether the size of an input is known only when the network runs."""
    values = [reading.values.get(name) for name in op.proto.input]
    return any(-1 in op.shape_of(value) for value in values if value is not None and not isinstance(value, Constant))


def _with_floats(op, reading):
    """Lets the host compute the floats of a result, in case that no QuantizeLinear follows."""
    value = reading.values.get(op.outputs[0]) if len(op.outputs) == 1 else None
    if isinstance(value, Pending) and reading.floats_of(value) is None and on_host(op, reading):
        reading.values[op.output] = replace(value, floats=reading.values[op.output].floats)


def _array(tensor, what):
    """The numpy array of a message."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise ModelError(f"{what} lies in another file, which was not read with the model")
    try:
        array = numpy_helper.to_array(tensor)
        packed = {"int4": np.int8, "uint4": np.uint8, "int2": np.int8, "uint2": np.uint8}.get(array.dtype.name)
        return array if packed is None else array.astype(packed)
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{what} cannot be read: {' '.join(str(error).split())}") from None


def _constant(op):
    """The value of a Constant node."""
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
    names = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.UINT8: "uint8", onnx.TensorProto.INT8: "int8",
             onnx.TensorProto.INT32: "int32", onnx.TensorProto.INT64: "int64"}  # fmt: skip
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
    """Makes an output of the model a tensor of the graph."""
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
