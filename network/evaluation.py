"""Evaluates a network tensor by tensor. Everything else that runs it must give the same."""

import numpy as np

from tilewright.golden.arguments import instance, shown
from tilewright.progress import report, work

from .arithmetic import (
    add,
    change,
    convolve,
    convolve_transposed,
    interpolate,
    multiply,
    multiply_matrices,
    multiply_matrix,
    operate,
    pool,
    quantise,
    scale_sums,
)
from .functions import softmax
from .graph import Graph, ModelError
from .normalisation import normalise, normalise_channels
from .recurrence import recur

__all__ = ["check_inputs", "compute", "evaluate"]


def evaluate(graph, inputs):
    """Computes all tensors of a network.

    Parameters
    ----------
    graph : Graph
    inputs : dict of str to array, or array
        Arrays of the shapes and types of ``graph.inputs``, in either byte order; one input may be the array alone.

    Returns
    -------
    dict of str to array
        Every tensor by its name, including the inputs.

    Raises
    ------
    ModelError
        If the inputs are not those of the network; one sentence.
    """
    inputs = check_inputs(instance("graph", graph, Graph, "network"), inputs)
    values = graph.constants | inputs
    with work("golden"):
        for done, node in enumerate(graph.nodes):
            report("layers", done, len(graph.nodes))
            values[node.output] = compute(graph, node, values)
    return {name: value for name, value in values.items() if name not in graph.constants}


def compute(graph, node, values):
    """The output of a node, from the arrays of its inputs in ``values``."""
    output, inputs = graph.tensors[node.output], (values[name] for name in node.inputs)
    if node.kind == "ConvTranspose":
        return convolve_transposed(*inputs, node.attributes, output.dtype, output.shape[2:])
    result = np.ascontiguousarray(_RULES[node.kind](node.attributes, output.dtype, *inputs))
    return result if -1 in output.shape else result.reshape(output.shape)


def check_inputs(graph, inputs):
    """``inputs``, by name or the array of the only input, as a dict in the order of the network.

    ModelError if they are not the inputs of the network.
    """
    names = ", ".join(map(repr, graph.inputs))
    if isinstance(inputs, np.ndarray):
        if len(graph.inputs) != 1:
            raise ModelError(f"the network has the inputs {names}: they must be a dictionary, not {shown(inputs)}")
        inputs = {graph.inputs[0]: inputs}
    if not isinstance(inputs, dict):
        alone = ", or the array alone" if len(graph.inputs) == 1 else ""
        raise ModelError(f"inputs must be a dictionary with an array for {names}{alone}, not {shown(inputs)}")
    for name in inputs:
        if not isinstance(name, str) or name not in graph.inputs:
            raise ModelError(f"the network has no input {shown(name)}, but {names}")
    values = {}
    for name in graph.inputs:
        if name not in inputs:
            raise ModelError(f"input {name!r} is missing")
        tensor, value = graph.tensors[name], inputs[name]
        if not isinstance(value, np.ndarray):
            raise ModelError(f"input {name!r} must be a numpy array, not {shown(value)}")
        if value.dtype.newbyteorder("=") != tensor.dtype:
            raise ModelError(f"input {name!r} must be {tensor.dtype}, not {value.dtype}")
        if value.shape != tensor.shape:
            raise ModelError(f"input {name!r} must be {list(tensor.shape)}, not {list(value.shape)}")
        value = np.ascontiguousarray(value, tensor.dtype)
        if value.dtype == np.float32 and np.isnan(value).any():
            raise ModelError(f"input {name!r} has elements that are not a number")
        values[name] = value
    return values


def _padded(node, dtype, x):
    return np.pad(x, list(zip(node.before, node.after, strict=True)), constant_values=node.value)


def _joined(node, dtype, *parts):
    changed = [change(part, table) for part, table in zip(parts, node.tables, strict=True)]
    return np.concatenate(changed, axis=node.axis)


#: Functions that compute each kind of node, of its attributes, the type of the result, and its inputs.
_RULES = {
    "Quantize": lambda node, dtype, x: quantise(x, node.scale, node.zero, dtype),
    "Dequantize": lambda node, dtype, x: change(x, node.table),
    "Floats": lambda node, dtype, *arrays: node.function(*arrays),
    "Softmax": lambda node, dtype, x: softmax(x, node, dtype),
    "Arithmetic": lambda node, dtype, *arrays: operate(arrays, node, dtype),
    "Pairs": lambda node, dtype, a, b: node.table[a.view(np.uint8), b.view(np.uint8)],
    "NormaliseChannels": lambda node, dtype, x: normalise_channels(x, node, dtype),
    "Normalise": lambda node, dtype, x: normalise(x, node, dtype),
    "Recurrent": lambda node, dtype, x: recur(x, node, dtype),
    "Scale": lambda node, dtype, x: scale_sums(x, node.scale, node.bias),
    "Conv": lambda node, dtype, x: (multiply_matrix if node.matrix else convolve)(x, node, dtype),
    "Linear": lambda node, dtype, x: interpolate(x, node, dtype),
    "Add": lambda node, dtype, a, b: add(a, b, node, dtype),
    "MatMul": lambda node, dtype, a, b: multiply_matrices(a, b, node, dtype),
    "Mul": lambda node, dtype, a, b: multiply(a, b, node, dtype),
    "Pool": lambda node, dtype, x: pool(x, node, dtype),
    "Pad": _padded,
    "Concat": _joined,
    "Reshape": lambda node, dtype, x: x.reshape(node.shape),
    "Take": lambda node, dtype, x: x[np.ix_(*node.indices)],
    "Transpose": lambda node, dtype, x: x.transpose(node.perm),
}
