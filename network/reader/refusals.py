"""Every reason why a model is refused (docs/network.md, "Commands")."""

import onnx

from ..ends import late_nodes
from ..graph import ModelError, Tensor
from .model import read_node, read_nodes
from .operator import Operator, Pending

__all__ = ["refusals_of"]

_TYPES = {onnx.TensorProto.UINT8: "uint8", onnx.TensorProto.INT8: "int8", onnx.TensorProto.FLOAT: "float32"}


def refusals_of(model):
    """Why a model is refused, in the order of its nodes: every reason, one sentence each; none if it is read.

    Parameters
    ----------
    model : ModelProto

    Returns
    -------
    list of str
    """
    reasons, standing, read = {}, set(), []
    inferred = _inferred(model)

    def each(proto, reading):
        read.append(proto)
        try:
            read_node(proto, reading)
        except ModelError as error:
            # What reads a stand-in as floats may be refused for that alone.
            if standing.isdisjoint(proto.input):
                reasons[str(error)] = len(read)
            for name in filter(None, proto.output):
                _stand_in(Operator(proto, reading), reading, name, inferred.get(name))
                standing.add(name)

    try:
        graph = read_nodes(model, each)
    except ModelError as error:
        return sorted(reasons, key=reasons.get) or [str(error)]
    if not reasons:
        return [str(error) for error in late_nodes(graph)]
    reasons |= _in_the_middle(model, graph)
    return sorted(reasons, key=reasons.get)


#: Operators that only the engines do.
_MULTIPLYING = ("Conv", "ConvTranspose", "Gemm", "MatMul", "QGemm", "QLinearConv", "QLinearMatMul")


def _in_the_middle(model, graph):
    """Errors of nodes that only the host computes, and that products follow, with the numbers of the nodes."""
    reasons = {node.name: node.attributes.reason for node in graph.nodes if node.kind == "Floats"}
    needed, late = set(), {}
    for number, proto in reversed(list(enumerate(model.graph.node, 1))):
        follows = not needed.isdisjoint(proto.output)
        reason = reasons.get(proto.name or proto.output[0]) if follows else None
        if reason:
            late[reason] = number
        if follows or proto.op_type in _MULTIPLYING:
            needed.update(proto.input)
    return late


def _inferred(model):
    """Types and shapes of all names, as far as ONNX knows; sizes without numbers are 1."""
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except Exception:  # any class: the model is wrong, which reading it shows
        return {}
    kinds = {each.name: each.type.tensor_type for each in (*graph.value_info, *graph.output)}
    return {name: (_TYPES.get(kind.elem_type), tuple(max(each.dim_value, 1) for each in kind.shape.dim))
            for name, kind in kinds.items() if kind.HasField("shape")}  # fmt: skip


def _stand_in(op, reading, name, kind):
    """Gives the result of a refused node a value, so that the nodes after it are read too."""
    dtype, shape = kind or (None, None)
    reading.values.pop(name, None)
    if dtype in ("uint8", "int8"):
        reading.give(Tensor(name, shape, dtype))
    elif dtype:
        reading.values[name] = Pending(op, shape, lambda output, y, clamp: reading.give(Tensor(output, shape, y.dtype)))
