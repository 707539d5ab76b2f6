"""Models node by node, with QuantizeLinear and DequantizeLinear wherever one likes."""

import numpy as np
from onnx import helper, numpy_helper

from .model import MICROSOFT

__all__ = ["SCALE", "ZERO", "Form"]

#: What floats are quantised with if nothing else is said.
SCALE, ZERO = np.float32(0.03), np.uint8(120)


class Form:
    """A model of nodes without names that grows, as an exporter may write it: floats, constants of any kind.

    Methods return names.

    Parameters
    ----------
    shape : int or str
        Of the input ``x``.
    dtype : str
    opset : int
    """

    def __init__(self, *shape, dtype="float32", opset=13):
        self.opset, self._nodes, self._constants, self._given = opset, [], [], []
        self._domain = MICROSOFT if opset < 10 else ""  # of what ONNX has had since version 10
        self._rng, self._dtype = np.random.default_rng(1), dtype
        self.give("x", shape)

    def give(self, name, shape):
        """An input."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self._dtype))
        self._given.append(helper.make_tensor_value_info(name, kind, shape))

    def constant(self, value):
        """A constant."""
        self._constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self._constants)}"))
        return self._constants[-1].name

    def node(self, kind, *inputs, outputs=1, **attributes):
        """The result of a node, or the first one; arrays are constants."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        made = [f"t{len(self._nodes)}.{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(kind, names, made, **attributes))
        return made[0]

    def quantise(self, x, scale=SCALE, zero=ZERO, **attributes):
        """Integers of floats."""
        return self.node("QuantizeLinear", x, scale, zero, domain=self._domain, **attributes)

    def floats(self, x, scale=SCALE, zero=ZERO, **attributes):
        """Floats of integers."""
        return self.node("DequantizeLinear", x, scale, zero, domain=self._domain, **attributes)

    def both(self, x, *quantity):
        """Floats that integers are."""
        return self.floats(self.quantise(x, *quantity), *quantity)

    def weights(self, *shape, axis=0):
        """Floats that are quantised in the model, with a scale for each index of ``axis``; also their scales."""
        scale = self._rng.uniform(0.005, 0.02, shape[axis]).astype(np.float32)
        sizes = [1] * len(shape)
        sizes[axis] = -1
        values = self._rng.integers(-64, 64, shape).astype(np.float32) * scale.reshape(sizes)
        zeros = np.zeros(shape[axis], np.int8)
        return self.floats(self.quantise(values, scale, zeros, axis=axis), scale, zeros, axis=axis), scale

    def numbers(self, *shape):
        """Random floats."""
        return self._rng.normal(0, 1, shape).astype(np.float32)

    def model(self, *names):
        """The model, with these outputs."""
        ends = [helper.make_empty_tensor_value_info(name) for name in names]
        graph = helper.make_graph(self._nodes, "form", self._given, ends, self._constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)
