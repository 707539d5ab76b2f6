"""A quantised ONNX model that is drawn piece by piece: constants, nodes, and what the integers of tensors mean."""

from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["MICROSOFT", "Activation", "DrawnModel"]

#: The domain of operators that ONNX itself has only for floats.
MICROSOFT = "com.microsoft"

_OPSETS = [helper.make_opsetid("", 19), helper.make_opsetid(MICROSOFT, 1)]
_TYPES = {"uint8": onnx.TensorProto.UINT8, "int8": onnx.TensorProto.INT8, "float32": onnx.TensorProto.FLOAT}


class Activation(NamedTuple):
    """A tensor: its name and shape, and what its integers mean."""

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
        """Adds a node, and what it gives as a tensor."""
        name = f"t{len(self.tensors)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], f"n{len(self._nodes)}", domain=domain, **attributes))
        self.tensors.append(Activation(name, tuple(int(size) for size in shape), np.float32(scale), int(zero)))

    def give(self, name, shape, scale, zero):
        """A tensor that is given."""
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
        """A scale within a factor of two of ``about``; some have one digit, as of models made by hand."""
        power = self.rng.uniform(-1, 1)
        scale = about * 2**power
        return np.float32(f"{scale:.1g}" if power < -0.4 else scale)

    def pick(self, rank=None):
        """A tensor with ``rank`` dimensions, rather a late one; None if there is none."""
        found = [tensor for tensor in self.tensors if rank in (None, len(tensor.shape))]
        return found[-1 - min(int(self.rng.exponential(0.7)), len(found) - 1)] if found else None

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
