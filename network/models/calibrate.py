"""Finds scales and zero points of the activations of EfficientNet-Lite0, and prints them as JSON.

It runs the model of floats on packaged photographs with ONNX Runtime, whose sums depend on processor and version. So
its result is kept in ``efficientnet_lite0.json``, and the model that is built from it is the same everywhere::

    python -m tilewright.network.models.calibrate
"""

import json

from onnx import numpy_helper

from .efficientnet import build_float, layers
from .photographs import PHOTOGRAPHS, load_photograph, prepare
from .quantiser import quantised

__all__ = ["calibrate"]


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
