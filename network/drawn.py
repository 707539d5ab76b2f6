"""Networks with random weights, built node by node, for tests and examples."""

import numpy as np

from .attributes import (
    Add,
    Arithmetic,
    Concat,
    Conv,
    MatMul,
    Mul,
    Normalise,
    NormaliseChannels,
    Pad,
    Pairs,
    Pool,
    Recurrent,
    Reshape,
    Scale,
    Softmax,
    Take,
    Transpose,
)
from .functions import exponentials
from .graph import Graph, Node, Tensor
from .recurrence import PHASES

__all__ = ["NetworkMaker"]


class NetworkMaker:
    """Builds a network: the method of an operator adds a node and returns the name of its output.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.tensors, self.nodes, self.inputs, self.outputs = {}, [], [], []

    def input(self, shape, dtype="uint8"):
        """An input of the network."""
        self.inputs.append(self._tensor(shape, dtype))
        return self.inputs[-1]

    def graph(self, *outputs):
        """The network with these outputs, by default ``outputs``, or the output of the last node."""
        outputs = outputs or tuple(self.outputs) or (self.nodes[-1].output,)
        return Graph(tuple(self.inputs), outputs, self.tensors, tuple(self.nodes))

    def draw(self):
        """Random inputs, by name."""
        return {name: self._numbers(self.tensors[name].dtype, self.tensors[name].shape) for name in self.inputs}

    def conv(self, x, out_channels, kernel=1, *, stride=1, pad=None, dilation=1, groups=1, dtype="uint8",
             weights="int8", zeros=0):  # fmt: skip
        """A convolution; ``zeros``: zero points of weights, or "channels" for random ones."""
        batch, channels, height, width = self.tensors[x].shape
        kernel, stride, dilation = (np.broadcast_to(value, 2).tolist() for value in (kernel, stride, dilation))
        if pad is None:
            pad = [(kernel[0] - 1) * dilation[0] // 2, (kernel[1] - 1) * dilation[1] // 2] * 2
        pad = tuple(np.broadcast_to(pad, 4).tolist())
        sizes = [
            (size + pad[axis] + pad[axis + 2] - (kernel[axis] - 1) * dilation[axis] - 1) // stride[axis] + 1
            for axis, size in enumerate((height, width))
        ]
        weight = self._numbers(weights, (out_channels, channels // groups, *kernel))
        node = Conv(
            weight=weight, w_zero=self._zeros(weights, out_channels, zeros), stride=tuple(stride), pad=pad,
            dilation=tuple(dilation), groups=groups, **self._sums(x, weight, dtype),
        )  # fmt: skip
        return self._node((x,), (batch, out_channels, *sizes), dtype, node)

    def matrix(self, x, columns, *, dtype="uint8", weights="int8"):
        """A product with a constant matrix."""
        shape = self.tensors[x].shape
        weight = self._numbers(weights, (columns, shape[-1], 1, 1))
        node = Conv(weight=weight, w_zero=self._zeros(weights, columns, 0), matrix=True, **self._sums(x, weight, dtype))
        return self._node((x,), (*shape[:-1], columns), dtype, node)

    def product(self, a, b, dtype="uint8"):
        """A product of two computed matrices, or of several; "int32" for the sums."""
        (*rows, deep), other = self.tensors[a].shape, self.tensors[b].shape
        shape = (*np.broadcast_shapes(rows[:-1], other[:-2]), rows[-1], other[-1])
        ends = {"minimum": 0, "maximum": 0} if dtype == "int32" else self._clamp(dtype)
        zeros = [self._zero(self.tensors[name].dtype) for name in (a, b)]
        node = MatMul(*zeros, *((None, 0) if dtype == "int32" else (np.float32(0.02 / deep**0.5), self._zero(dtype))),
                      **ends)  # fmt: skip
        return self._node((a, b), shape, dtype, node)

    def floats(self, x, columns):
        """A product with a constant matrix whose results are floats, at the end of a network."""
        sums = self.matrix(x, columns, dtype="int32")
        scale, bias = self.random.normal(0, 1e-3, (2, columns)).astype(np.float32)
        return self._node((sums,), self.tensors[sums].shape, "float32", Scale(scale, bias))

    def _sums(self, x, weight, dtype):
        count = len(weight)
        size = np.prod(weight.shape[1:]) ** 0.5 * 60
        return {
            "x_zero": self._zero(self.tensors[x].dtype), "y_zero": self._zero(dtype), **self._clamp(dtype),
            "bias": self.random.integers(-1 << 31, (1 << 31) - 1, count).astype(np.int32)
            >> self.random.integers(0, 31, count).astype(np.int32),
            "scale": None if dtype == "int32" else (self.random.random(count) / size + 1e-4).astype(np.float32),
        }  # fmt: skip

    def add(self, a, b):
        """A sum of two tensors of one type."""
        tensor = self.tensors[a]
        ratio = tuple(np.float32(value) for value in self.random.random(2) + 0.2)
        node = Add(ratio, np.float32(self.random.normal() * 20), **self._clamp(tensor.dtype))
        return self._node((a, b), tensor.shape, tensor.dtype, node)

    def mul(self, a, b, dtype=None):
        """A product with a tensor of a number for each channel."""
        tensor, dtype = self.tensors[a], dtype or self.tensors[a].dtype
        node = Mul(self._zero(tensor.dtype), self._zero(self.tensors[b].dtype),
                   np.float32(self.random.random() * 0.01 + 1e-3), self._zero(dtype), **self._clamp(dtype))  # fmt: skip
        return self._node((a, b), tensor.shape, dtype, node)

    def softmax(self, x, axis=-1, *, dtype=None, share=256, zero=None, scale=0.05):
        """A softmax along a dimension; results have the scale 1 / ``share``, and by default the lowest zero point."""
        tensor, dtype = self.tensors[x], dtype or self.tensors[x].dtype
        axis %= len(tensor.shape)
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        table = exponentials(np.float32(scale), tensor.shape[axis])
        return self._node(
            (x,), tensor.shape, dtype, Softmax((axis,), table, share, low if zero is None else zero, low, high)
        )

    def normalise(self, x, dimensions=1, *, dtype=None, centred=True):
        """A normalisation of the last dimensions, with random gains."""
        tensor, dtype = self.tensors[x], dtype or self.tensors[x].dtype
        gain, shift = self.random.normal(0, 40, (2, int(np.prod(tensor.shape[-dimensions:])))).astype(np.float32)
        node = Normalise(dimensions, self._zero(tensor.dtype), gain, shift + np.float32(self._zero(dtype)),
                         np.float32(self.random.random()), centred)  # fmt: skip
        return self._node((x,), tensor.shape, dtype, node)

    def normalise_channels(self, x, *, dtype=None, members=1):
        """A normalisation of each channel, or of groups of ``members`` channels, with random gains."""
        tensor, dtype = self.tensors[x], dtype or self.tensors[x].dtype
        gain, shift = self.random.normal(0, 40, (2, tensor.shape[1])).astype(np.float32)
        node = NormaliseChannels(self._zero(tensor.dtype), gain, shift + np.float32(self._zero(dtype)),
                                 np.float32(self.random.random()), members)  # fmt: skip
        return self._node((x,), tensor.shape, dtype, node)

    def arithmetic(self, operation, *parts):
        """A quotient or a sum of tensors of one shape, computed in floats."""
        quantities = tuple((np.float32(self.random.uniform(0.01, 0.1)), self._zero(self.tensors[part].dtype))
                           for part in parts)  # fmt: skip
        tensor = self.tensors[parts[0]]
        node = Arithmetic(operation, quantities, np.float32(self.random.uniform(0.02, 0.2)), self._zero(tensor.dtype))
        return self._node(parts, tensor.shape, tensor.dtype, node)

    def recurrent(self, x, cells, hidden, *, batch=1, after=False, reverse=False, dtype=None, clip=None):
        """An LSTM, GRU or RNN of rows, those of all steps, with random first states."""
        (rows, inputs), dtype = self.tensors[x].shape, dtype or self.tensors[x].dtype
        gates = max(gate for phase in PHASES[cells, after] for _, own in phase.products for _, gate in own) + 1

        def numbers(*shape):
            return self.random.uniform(-1, 1, shape).astype(np.float32)

        node = Recurrent(
            cells=cells, after=after, x_scale=np.float32(0.02), x_zero=self._zero(self.tensors[x].dtype),
            weight=numbers(gates * hidden, inputs) * np.float32(2 / inputs**0.5),
            recurrence=numbers(gates * hidden, hidden) * np.float32(2 / hidden**0.5),
            bias=tuple(numbers(len(phase.biases), hidden) for phase in PHASES[cells, after]),
            hidden=numbers(batch, hidden), cell=numbers(batch, hidden), reverse=reverse,
            clip=None if clip is None else np.float32(clip), y_scale=np.float32(0.01), y_zero=self._zero(dtype),
            **self._clamp(dtype),
        )  # fmt: skip
        return self._node((x,), (rows, hidden), dtype, node)

    def pairs(self, a, b):
        """A random function of two tensors of one shape."""
        tensor = self.tensors[a]
        return self._node((a, b), tensor.shape, tensor.dtype, Pairs(self._numbers(tensor.dtype, (256, 256))))

    def function(self, x, dtype=None):
        """A random function of each element."""
        return self.through(x, self._numbers(dtype or self.tensors[x].dtype, 256))

    def activate(self, x, kind):
        """A random function of each element in place of ``kind``; clamps, "Relu" and "Relu6", are those of nodes."""
        return x if kind in ("Relu", "Relu6", None) else self.function(x)

    def enlarge(self, x, factor=2):
        """Each row and column several times."""
        _, channels, height, width = self.tensors[x].shape
        rows, columns = ([index for index in range(size) for _ in range(factor)] for size in (height, width))
        return self.take(x, [0], range(channels), rows, columns)

    def pool(self, x, kind, kernel, *, stride=1, pad=0, dtype=None, counted=True):
        """Averages or maxima of windows; ``counted``: padding counts in averages."""
        batch, channels, height, width = self.tensors[x].shape
        kernel, stride = (np.broadcast_to(value, 2).tolist() for value in (kernel, stride))
        pad = tuple(np.broadcast_to(pad, 4).tolist())
        sizes = [(size + pad[axis] + pad[axis + 2] - kernel[axis]) // stride[axis] + 1
                 for axis, size in enumerate((height, width))]  # fmt: skip
        dtype = dtype or self.tensors[x].dtype
        node = {"kind": kind, "kernel": tuple(kernel), "stride": tuple(stride), "pad": pad, "dilation": (1, 1)}
        if kind == "sum":
            taps = [np.array([np.prod(kernel)])] if counted else [
                [min(point * stride[axis] - pad[axis] + kernel[axis], size) - max(point * stride[axis] - pad[axis], 0)
                 for point in range(sizes[axis])] for axis, size in enumerate((height, width))
            ]  # fmt: skip
            divisors = taps[0].reshape(1, 1) if counted else np.outer(*taps)
            node |= {"scale": (np.float32(1.1) / divisors).astype(np.float32), "y_zero": self._zero(dtype),
                     "x_zero": self._zero(self.tensors[x].dtype)}  # fmt: skip
        return self._node((x,), (batch, channels, *sizes), dtype, Pool(**node, **self._clamp(dtype)))

    def pad(self, x, before, after):
        """Padding of one random value around a tensor."""
        tensor = self.tensors[x]
        shape = tuple(np.add(np.add(tensor.shape, before), after).tolist())
        return self._node((x,), shape, tensor.dtype, Pad(tuple(before), tuple(after), self._zero(tensor.dtype)))

    def concat(self, axis, *parts, scales=None):
        """A concatenation; ``scales`` are (scale, zero point) of each input, None if equal, and of the output."""
        first = self.tensors[parts[0]]
        shape = list(first.shape)
        shape[axis] = sum(self.tensors[part].shape[axis] for part in parts)
        tables = [None] * len(parts)
        if scales:
            tables = [scale and self._table(self.tensors[part].dtype, first.dtype, scale, scales[-1])
                      for part, scale in zip(parts, scales, strict=False)]  # fmt: skip
        return self._node(parts, tuple(shape), first.dtype, Concat(axis, tuple(tables)))

    def through(self, x, table):
        """Each element through a table of 256 results."""
        return self._node((x,), self.tensors[x].shape, table.dtype.name, Concat(0, (table,)))

    @staticmethod
    def _table(dtype, made, given, wanted):
        x = np.arange(256).astype(np.uint8).view(dtype).astype(np.float32)
        real = (x - np.float32(given[1])) * np.float32(given[0])
        limits = np.iinfo(made)
        rounded = np.rint(real / np.float32(wanted[0])) + wanted[1]
        return np.clip(rounded, limits.min, limits.max).astype(made)

    def take(self, x, *indices):
        """Elements with some indices of each dimension."""
        indices = tuple(map(np.asarray, indices))
        return self._node((x,), tuple(map(len, indices)), self.tensors[x].dtype, Take(indices))

    def reshape(self, x, *shape):
        """The same elements in another shape."""
        return self._node((x,), shape, self.tensors[x].dtype, Reshape(shape))

    def transpose(self, x, *perm):
        """A transpose."""
        tensor = self.tensors[x]
        return self._node((x,), tuple(tensor.shape[axis] for axis in perm), tensor.dtype, Transpose(perm))

    def _tensor(self, shape, dtype):
        name = f"t{len(self.tensors)}"
        self.tensors[name] = Tensor(name, tuple(shape), dtype)
        return name

    def _node(self, inputs, shape, dtype, attributes):
        output = self._tensor(shape, dtype)
        self.nodes.append(Node(f"n{len(self.nodes)}", tuple(inputs), output, attributes, type(attributes).__name__))
        return output

    def _numbers(self, dtype, shape):
        return self.random.integers(0, 256, shape).astype(np.uint8).view(dtype)

    def _zero(self, dtype):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        return int(self.random.integers(low, high + 1))

    def _zeros(self, dtype, count, zeros):
        if zeros == "channels":
            return np.sort(self.random.integers(0, 3, count)).astype(np.int32)
        return np.full(count, zeros, np.int32)

    def _clamp(self, dtype):
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        cut = self.random.integers(0, 40, 2) * self.random.integers(0, 2, 2)
        return {"minimum": low + int(cut[0]), "maximum": high - int(cut[1])}
