"""Quantised ONNX models that grow node by node: random ones, and ones in the forms of an exporter."""

from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["MICROSOFT", "SCALE", "ZERO", "Activation", "DrawnModel", "Form"]

#: The domain of operators that ONNX itself has only for floats.
MICROSOFT = "com.microsoft"

_OPSETS = [helper.make_opsetid("", 19), helper.make_opsetid(MICROSOFT, 1)]
_TYPES = {"uint8": onnx.TensorProto.UINT8, "int8": onnx.TensorProto.INT8, "float32": onnx.TensorProto.FLOAT}


class Activation(NamedTuple):
    """A tensor: its name and shape, and the scale and zero point of its integers."""

    name: str
    shape: tuple[int, ...]
    scale: np.float32
    zero: int


class DrawnModel:
    """A model that grows.

    Parameters
    ----------
    rng : numpy.random.Generator
    dtype : str
        Of all activations, ``"uint8"`` or ``"int8"``.
    small_weights : bool
        Weights less their zero points stay within 7 bits, with which no kernel of ONNX Runtime saturates.

    Attributes
    ----------
    tensors : list of Activation
    """

    def __init__(self, rng, dtype, small_weights):
        self.rng, self.dtype, self.small_weights = rng, dtype, small_weights
        self.tensors = []
        self._nodes, self._constants = [], []

    def constant(self, value, dtype=None):
        """Adds an array, and returns its name."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def add(self, kind, inputs, shape, scale, zero, domain="", **attributes):
        """Adds a node, and its result as a tensor."""
        name = f"t{len(self.tensors)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], f"n{len(self._nodes)}", domain=domain, **attributes))
        self.tensors.append(Activation(name, tuple(int(size) for size in shape), np.float32(scale), int(zero)))

    def dequantise(self, name, array, scale, zero):
        """Adds a constant of integers as floats."""
        inputs = [self.constant(array), self.constant(scale), self.constant(zero)]
        self._nodes.append(helper.make_node("DequantizeLinear", inputs, [name]))

    def add_floats(self, kind, parts, constants, shape, scale, zero, place=0, **attributes):
        """Adds an operator on the floats of tensors, with constants as further inputs, and quantises its result.

        A part may be a list of a tensor and the functions that its floats go through first. The result is the output
        number ``place``.
        """
        names = []
        for part in parts:
            tensor, *functions = part if isinstance(part, list) else [part]
            name, inputs = "", self.of(tensor)
            for function in ("DequantizeLinear", *functions):
                name = f"f{len(self._nodes)}"
                self._nodes.append(helper.make_node(function, inputs, [name]))
                inputs = [name]
            names.append(name)
        names += [value if isinstance(value, str) else self.constant(value) for value in constants]
        result = f"f{len(self._nodes)}"
        outputs = [*[""] * place, result]
        self._nodes.append(helper.make_node(kind, names, outputs, f"n{len(self._nodes)}", **attributes))
        self.add("QuantizeLinear", [result, *self.quantity(scale, zero)], shape, scale, zero)

    def give(self, name, shape, scale, zero):
        """Adds a tensor that is an input."""
        self.tensors.append(Activation(name, tuple(shape), np.float32(scale), int(zero)))

    def model(self, inputs, outputs):
        """The ``ModelProto``; ``inputs`` and ``outputs`` are names with types and shapes."""
        given, made = (
            [helper.make_tensor_value_info(name, _TYPES[dtype], shape) for name, dtype, shape in ends]
            for ends in (inputs, outputs)
        )
        graph = helper.make_graph(self._nodes, "drawn", given, made, self._constants)
        return helper.make_model(graph, opset_imports=_OPSETS, ir_version=9)

    def quantity(self, scale, zero):
        """Names of a scale and of a zero point of an activation."""
        return [self.constant(scale, np.float32), self.constant(zero, self.dtype)]

    def of(self, tensor):
        """A tensor, its scale and its zero point, by their names."""
        return [tensor.name, *self.quantity(tensor.scale, tensor.zero)]

    def zero(self):
        """A zero point of an activation."""
        info = np.iinfo(self.dtype)
        return int(self.rng.choice([info.min, info.max, 0, self.rng.integers(info.min, info.max + 1)]))

    def scale(self, about):
        """A scale within a factor of two of ``about``; some have one digit, like those of models made by hand."""
        power = self.rng.uniform(-1, 1)
        scale = about * 2**power
        return np.float32(f"{scale:.1g}" if power < -0.4 else scale)

    def pick(self, rank=None):
        """A tensor with ``rank`` dimensions, rather a late one; None if there is none."""
        candidates = [tensor for tensor in self.tensors if rank in (None, len(tensor.shape))]
        return candidates[-1 - min(int(self.rng.exponential(0.7)), len(candidates) - 1)] if candidates else None

    def weights(self, shape, channels):
        """Names of weights, their scales and zero points; and the largest scale.

        ONNX Runtime takes no zero points that differ from channel to channel.
        """
        rng = self.rng
        kind = "int8" if self.dtype == "int8" or rng.random() < 0.8 else "uint8"
        middle, half = (0 if kind == "int8" else 128), (64 if self.small_weights else 128)
        values = rng.integers(middle - half, middle + half, shape)
        scale = np.float32(0.02 * 2 ** rng.uniform(-1, 1, channels if rng.random() < 0.5 else 1))
        zero = middle if self.small_weights or rng.random() < 0.6 else rng.integers(middle - half, middle + half)
        size = () if scale.size == 1 else scale.shape
        names = [
            self.constant(values, kind),
            self.constant(scale.reshape(size)),
            self.constant(np.full(size, zero), kind),
        ]
        return names, float(scale.max())


#: Default scale and zero point.
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
