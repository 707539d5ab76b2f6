"""Builds models of floats as ``NetworkMaker`` builds networks of integers, so that one description gives both."""

import numpy as np
from onnx import TensorProto, helper

from ..graph import Tensor
from .quantiser import FloatModel

__all__ = ["FloatMaker"]

#: Attributes of functions.
_ATTRIBUTES = {"HardSigmoid": {"alpha": 1 / 6}, "LeakyRelu": {"alpha": 0.1}}


class FloatMaker(FloatModel):
    """Builds a model of float32 with random weights: the method of an operator adds a node and returns its output.

    Shapes of tensors are in ``tensors``. Padding leaves ⌈size / stride⌉ points of odd kernels, unless it is given.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed=0):
        super().__init__(np.random.default_rng(seed), None)
        self.tensors, self.outputs, self.inputs = {}, [], []

    def input(self, shape):
        """An input of the model."""
        self.inputs.append(self._put(f"x{len(self.inputs)}" if self.inputs else "x", shape))
        return self.inputs[-1]

    def shape(self, x):
        """The shape of a tensor."""
        return self.tensors[x].shape

    def conv(self, x, out, kernel=1, *, stride=1, pad=None, dilation=1, groups=1):
        """A convolution; maps of three dimensions take one along the last of them."""
        batch, channels, *sizes = self.shape(x)
        kernel, stride, dilation = (_each(value, sizes) for value in (kernel, stride, dilation))
        pads = _around([(k - 1) * d for k, d in zip(kernel, dilation, strict=True)], pad)
        sizes = [(size + pads[axis] + pads[axis + len(sizes)] - (kernel[axis] - 1) * dilation[axis] - 1)
                 // stride[axis] + 1 for axis, size in enumerate(sizes)]  # fmt: skip
        y = self.node("Conv", x, *self.weights(out, channels // groups, *kernel), group=groups, strides=stride,
                      pads=pads, dilations=dilation)  # fmt: skip
        return self._put(y, (batch, out, *sizes))

    def transposed(self, x, out, kernel, *, stride, pad=0):
        """A transposed convolution."""
        batch, channels, *sizes = self.shape(x)
        weight = self.constant(self.noise(channels, out, kernel, kernel) / np.sqrt(channels), np.float32)
        y = self.node("ConvTranspose", x, weight, strides=[stride] * 2, pads=[pad] * 4)
        return self._put(y, (batch, out, *((size - 1) * stride + kernel - 2 * pad for size in sizes)))

    def matrix(self, x, columns):
        """A product with a constant matrix, and a bias."""
        *rows, inner = self.shape(x)
        if len(rows) == 1:
            return self._put(self.node("Gemm", x, *self.weights(columns, inner), transB=1), (*rows, columns))
        weight, bias = self.noise(inner, columns) * (3 / np.sqrt(inner)), self.noise(columns)
        y = self.node("MatMul", x, self.constant(weight, np.float32))
        return self._put(self.node("Add", y, self.constant(bias, np.float32)), (*rows, columns))

    def product(self, a, b):
        """A product of two computed matrices."""
        return self._put(self.node("MatMul", a, b), (*self.shape(a)[:-1], self.shape(b)[-1]))

    def activate(self, x, kind):
        """A function of each element: an operator of ONNX, "Relu6", "Silu", or None for x itself."""
        if kind == "Relu6":
            y = self.node("Clip", x, self.constant(0, np.float32), self.constant(6, np.float32))
        elif kind == "Silu":
            y = self.node("Mul", x, self.node("Sigmoid", x))
        elif kind == "PRelu":
            slopes = np.abs(self.noise(self.shape(x)[1], *(1 for _ in self.shape(x)[2:])))
            y = self.node("PRelu", x, self.constant(slopes, np.float32))
        else:
            y = self.node(kind, x, **_ATTRIBUTES.get(kind, {})) if kind else x
        return self._put(y, self.shape(x))

    def add(self, a, b):
        """A sum of two tensors, whose smaller one is repeated."""
        return self._put(self.node("Add", a, b), np.broadcast_shapes(self.shape(a), self.shape(b)))

    def mul(self, a, b):
        """A product of two tensors, whose smaller one is repeated."""
        return self._put(self.node("Mul", a, b), np.broadcast_shapes(self.shape(a), self.shape(b)))

    def pool(self, x, kind, kernel, *, stride=1, pad=0, ceil=False):
        """Averages ("sum") or maxima ("max") of windows; of all of a map if they are as large."""
        batch, channels, *sizes = self.shape(x)
        kernel, stride = (_each(value, sizes) for value in (kernel, stride))
        if kind == "sum" and kernel == list(sizes):
            return self._put(self.node("GlobalAveragePool", x), (batch, channels, *(1 for _ in sizes)))
        pads = _around(kernel, pad)
        y = self.node({"sum": "AveragePool", "max": "MaxPool"}[kind], x, kernel_shape=kernel, strides=stride, pads=pads,
                      ceil_mode=int(ceil))  # fmt: skip
        sizes = [(size + 2 * pad - kernel[axis] + ceil * (stride[axis] - 1)) // stride[axis] + 1
                 for axis, size in enumerate(sizes)]  # fmt: skip
        return self._put(y, (batch, channels, *sizes))

    def pad(self, x, before, after):
        """Zeros around a tensor."""
        y = self.node("Pad", x, self.constant([*before, *after], np.int64), self.constant(0, np.float32))
        return self._put(y, tuple(np.add(np.add(self.shape(x), before), after).tolist()))

    def concat(self, axis, *parts):
        """A concatenation."""
        shape = list(self.shape(parts[0]))
        shape[axis] = sum(self.shape(part)[axis] for part in parts)
        return self._put(self.node("Concat", *parts, axis=axis), shape)

    def split(self, x, count):
        """The channels in equal parts."""
        batch, channels, *sizes = self.shape(x)
        sections = self.constant([channels // count] * count, np.int64)
        first = self.node("Split", x, sections, axis=1, outputs=count)
        names = [first, *(f"{first}.{number}" for number in range(1, count))]
        return [self._put(name, (batch, channels // count, *sizes)) for name in names]

    def enlarge(self, x, factor=2, mode="nearest"):
        """Each row and column several times, or "linear"."""
        batch, channels, *sizes = self.shape(x)
        coordinates = "asymmetric" if mode == "nearest" else "half_pixel"
        y = self.node("Resize", x, "", self.constant([1, 1, factor, factor], np.float32), mode=mode,
                      coordinate_transformation_mode=coordinates,
                      **({"nearest_mode": "floor"} if mode == "nearest" else {}))  # fmt: skip
        return self._put(y, (batch, channels, *(size * factor for size in sizes)))

    def to_depth(self, x, factor, kind="DepthToSpace"):
        """Channels as pixels: DepthToSpace."""
        batch, channels, *sizes = self.shape(x)
        y = self.node(kind, x, blocksize=factor, mode="CRD")
        return self._put(y, (batch, channels // factor**2, *(size * factor for size in sizes)))

    def reshape(self, x, *shape):
        """The same elements in another shape."""
        return self._put(self.node("Reshape", x, self.constant(shape, np.int64)), shape)

    def transpose(self, x, *perm):
        """A transpose."""
        return self._put(self.node("Transpose", x, perm=perm), tuple(self.shape(x)[axis] for axis in perm))

    def other(self, kind, *inputs, shape=None, **attributes):
        """Any operator; its result has the shape of its first input, unless one is given."""
        return self._put(self.node(kind, *inputs, **attributes), shape or self.shape(inputs[0]))

    def model(self):
        """The ``ModelProto``, with ``outputs``, or the output of the last node."""
        outputs = self.outputs or [self._nodes[-1].output[0]]
        given, results = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, self.shape(name)) for name in names]
                          for names in (self.inputs, outputs))  # fmt: skip
        graph = helper.make_graph(self._nodes, "floats", given, results, self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def draw(self, seed):
        """Random inputs, by name."""
        rng = np.random.default_rng(seed)
        return {name: rng.normal(0, 1, self.shape(name)).astype(np.float32) for name in self.inputs}

    def _put(self, name, shape):
        self.tensors[name] = Tensor(name, tuple(map(int, shape)), "float32")
        return name


def _each(value, sizes):
    return np.broadcast_to(value, len(sizes)).tolist()


def _around(kernel_spans, pad):
    """ONNX's pads: ``pad`` for each side, or half of what a kernel spans beyond its centre."""
    if pad is None:
        return [span // 2 for span in kernel_spans] * 2
    pads = np.broadcast_to(pad, 2 * len(kernel_spans)) if np.ndim(pad) == 0 else np.asarray(pad)
    return pads.tolist()
