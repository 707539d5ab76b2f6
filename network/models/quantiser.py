"""Models of floats with random weights, for what quantises them."""

import logging
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

__all__ = ["FloatModel", "quantised"]


class FloatModel:
    """A model of floats that grows; tensors are called as their nodes, the input "x".

    Parameters
    ----------
    rng : numpy.random.Generator
        What weights are drawn from.
    shape : tuple of int
        Of the input.
    """

    def __init__(self, rng, shape):
        self._rng, self._shape = rng, shape
        self._nodes, self._constants = [], []

    def constant(self, value, dtype):
        """Its name."""
        self._constants.append(numpy_helper.from_array(np.asarray(value, dtype), f"c{len(self._constants)}"))
        return self._constants[-1].name

    def node(self, kind, *inputs, outputs=1, **attributes):
        """The name of its first result; others are called the same, and their number behind a dot."""
        name = f"{kind.lower()}{len(self._nodes)}"
        names = [name, *(f"{name}.{number}" for number in range(1, outputs))]
        self._nodes.append(helper.make_node(kind, inputs, names, name, **attributes))
        return name

    def weights(self, *shape):
        """Random ones, such that results are about as large as inputs; and biases."""
        spread = np.sqrt(2 / np.prod(shape[1:]))
        weight, bias = self._rng.normal(0, spread, shape), self._rng.normal(0, 0.1, shape[0])
        return [self.constant(weight, np.float32), self.constant(bias, np.float32)]

    def noise(self, *shape):
        """Random numbers."""
        return self._rng.normal(0, 0.3, shape)

    def conv(self, x, outputs, channels, kernel, *, group=1, relu=True, **attributes):
        """A convolution with a kernel of one size, or of rows and columns, and Relu."""
        weights = self.weights(outputs, channels // group, *np.broadcast_to(kernel, 2).tolist())
        y = self.node("Conv", x, *weights, group=group, **attributes)
        return self.node("Relu", y) if relu else y

    def model(self, y):
        """The ``ModelProto`` whose output is ``y``, of the last node; it is called "y"."""
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self._shape)]
        made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        self._nodes[-1].output[0] = "y"
        graph = helper.make_graph(self._nodes, "floats", given, made, self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@contextmanager
def _quiet():
    """Without its advice on speed."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class _Samples(CalibrationDataReader):
    def __init__(self, samples):
        self._left = iter(samples)

    def get_next(self):
        return next(self._left, None)


def quantised(model, samples, *, form="QOperator", signed=False, reduced=False):
    """A model of integers.

    Parameters
    ----------
    model : ModelProto
        Of float32.
    samples : iterable of dict of str to array
        Inputs that show how large activations are.
    form : str
        ``"QOperator"`` or ``"QDQ"``.
    signed : bool
        Whether activations are int8; otherwise uint8.
    reduced : bool
        Weights of 7 bits, with which no kernel of ONNX Runtime saturates; otherwise of 8.

    Returns
    -------
    ModelProto
        Weights are int8, with a scale for each channel.
    """
    with tempfile.TemporaryDirectory() as folder:
        plain, ready, done = (str(Path(folder) / f"{name}.onnx") for name in ("plain", "ready", "done"))
        onnx.save(model, plain)
        kind = QuantType.QInt8 if signed else QuantType.QUInt8
        with _quiet():
            quant_pre_process(plain, ready, skip_symbolic_shape=True)
            quantize_static(ready, done, _Samples(samples), QuantFormat[form], per_channel=True, activation_type=kind,
                            weight_type=QuantType.QInt8, reduce_range=reduced)  # fmt: skip
        return onnx.load(done)
