"""Random quantised networks as ONNX models: a few layers of every operator, with ragged shapes.

A layer that does not fit what is there, say a sum where no two tensors have one shape, is drawn again. Scales are such
that most results are neither 0 nor saturated.
"""

import numpy as np

from .model import DrawnModel
from .network_layers import OPERATORS

__all__ = ["OPERATORS", "draw_inputs", "draw_network"]

#: Drawn more often than others.
_OFTEN = ("QLinearConv",) * 5 + ("QLinearAdd",)


def draw_network(rng, layers=None, *, dtype=None, floats=None, small_weights=False, size=13, channels=8):
    """A model.

    Parameters
    ----------
    rng : numpy.random.Generator
    layers : int
        2 to 8 unless it is given.
    dtype : str
        Of activations; drawn unless it is given.
    floats : bool
        Whether input and outputs are float32.
    small_weights : bool
        As that of a ``DrawnModel``.
    size, channels : int
        What rows and columns, and channels, of the input are less than.

    Returns
    -------
    ModelProto
    """
    dtype = dtype or str(rng.choice(["uint8", "int8"]))
    floats = rng.random() < 0.5 if floats is None else floats
    net = DrawnModel(rng, dtype, small_weights)
    shape = (int(rng.integers(1, 3)), int(rng.integers(1, channels)), *(int(n) for n in rng.integers(1, size, 2)))
    scale, zero = net.scale(0.05), net.zero()
    if floats:
        net.add("QuantizeLinear", ["x", *net.quantity(scale, zero)], shape, scale, zero)
    else:
        net.give("x", shape, scale, zero)
    wanted = len(net.tensors) + (layers or int(rng.integers(2, 9)))
    while len(net.tensors) < wanted:
        OPERATORS[str(rng.choice([*OPERATORS, *_OFTEN]))](net)
    last = net.tensors[-1]
    outputs = [(last.name, dtype, last.shape)]
    if floats:
        net.add("DequantizeLinear", net.of(last), last.shape, last.scale, last.zero)
        outputs = [(net.tensors[-1].name, "float32", last.shape)]
    return net.model([("x", "float32" if floats else dtype, shape)], outputs)


def draw_inputs(rng, graph):
    """Numbers for the inputs of a ``Graph``: floats about as large as the first scale asks for."""
    inputs = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype == "float32":
            inputs[name] = rng.normal(0, 4, tensor.shape).astype(np.float32)
        else:
            info = np.iinfo(tensor.dtype)
            inputs[name] = rng.integers(info.min, info.max + 1, tensor.shape).astype(tensor.dtype)
    return inputs
