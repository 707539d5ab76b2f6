"""Models of floats with random weights; quantisation by ONNX Runtime's tools, also of EfficientNet-Lite0.

Run as a program it prints scales and zero points of the activations of EfficientNet-Lite0, found with packaged
photographs, as JSON. Sums of ONNX Runtime depend on processor and version, so the result is kept in
``efficientnet_lite0.json``, and the model that is built from it is the same everywhere::

    python -m tilewright.network.models.quantiser
"""

import json
import logging
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from .efficientnet import build_float, layers
from .photographs import PHOTOGRAPHS, load_photograph, prepare

__all__ = ["FloatModel", "calibrate", "quantised"]


class FloatModel:
    """Builds a model of floats; tensors have the names of their nodes, and the input is "x".

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the weights.
    shape : tuple of int
        Shape of the input.
    """

    def __init__(self, rng, shape):
        self._rng, self._shape = rng, shape
        self._nodes, self._constants = [], []

    def constant(self, value, dtype):
        """Adds a constant and returns its name."""
        self._constants.append(numpy_helper.from_array(np.asarray(value, dtype), f"c{len(self._constants)}"))
        return self._constants[-1].name

    def node(self, kind, *inputs, outputs=1, **attributes):
        """Adds a node and returns the name of its first output; others have a dot and their number appended."""
        name = f"{kind.lower()}{len(self._nodes)}"
        names = [name, *(f"{name}.{number}" for number in range(1, outputs))]
        self._nodes.append(helper.make_node(kind, inputs, names, name, **attributes))
        return name

    def weights(self, *shape):
        """Random weights, scaled so that results are about as large as inputs, and biases."""
        spread = np.sqrt(2 / np.prod(shape[1:]))
        weight, bias = self._rng.normal(0, spread, shape), self._rng.normal(0, 0.1, shape[0])
        return [self.constant(weight, np.float32), self.constant(bias, np.float32)]

    def noise(self, *shape):
        """Random numbers."""
        return self._rng.normal(0, 0.3, shape)

    def conv(self, x, outputs, channels, kernel, *, group=1, relu=True, **attributes):
        """A convolution, with a kernel size or one for rows and columns, and a Relu."""
        weights = self.weights(outputs, channels // group, *np.broadcast_to(kernel, 2).tolist())
        y = self.node("Conv", x, *weights, group=group, **attributes)
        return self.node("Relu", y) if relu else y

    def model(self, y):
        """The ``ModelProto`` with the output of the last node, ``y``, renamed to "y"."""
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self._shape)]
        results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        self._nodes[-1].output[0] = "y"
        graph = helper.make_graph(self._nodes, "floats", given, results, self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@contextmanager
def _quiet():
    """Suppresses warnings of ONNX Runtime."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class _Samples(CalibrationDataReader):
    def __init__(self, samples):
        self._samples = iter(samples)

    def get_next(self):
        return next(self._samples, None)


def quantised(model, samples, *, form="QOperator", signed=False, reduced=False):
    """The quantised model, with int8 weights and a scale for each channel.

    Parameters
    ----------
    model : ModelProto
        A model of float32.
    samples : iterable of dict of str to array
        Inputs for calibration.
    form : str
        ``"QOperator"`` or ``"QDQ"``.
    signed : bool
        Activations are int8 instead of uint8.
    reduced : bool
        Weights have 7 bits instead of 8, so that no kernel of ONNX Runtime saturates.
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


def calibrate():
    """Scale and zero point of each activation, by the name of its layer."""
    images = [load_photograph(name) for name in PHOTOGRAPHS]
    samples = [{"image": prepare(each)} for image in images for each in (image, image[:, ::-1])]
    model = quantised(build_float(), samples)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    quantities = {}
    for layer in ("image", *(layer.name for layer in layers())):
        # The tensor before the clamp of a convolution, which the scale includes, or before an average is flattened.
        stem = next(name for name in (f"{layer}.sums", f"{layer}.map", layer) if f"{name}_scale" in constants)
        quantities[layer] = [float(constants[f"{stem}_scale"]), int(constants[f"{stem}_zero_point"])]
    return quantities


if __name__ == "__main__":
    print("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(pair)}" for name, pair in calibrate().items()) + "\n}")
