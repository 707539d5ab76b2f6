"""What transformers are made of, for random networks: softmax, normalisation, attention."""

import math

import numpy as np

from .model import MICROSOFT

__all__ = ["draw_attention", "draw_group_normalisation", "draw_normalisation", "draw_quotient", "draw_softmax"]


def draw_softmax(net):
    """A softmax along a dimension; some have a scale that is not 1 / 256."""
    x, rng = net.pick(), net.rng
    if rng.random() < 0.7:
        _softmax_of(net, x, int(rng.integers(0, len(x.shape))))
        return
    y = net.scale(1 / 200), net.zero()
    net.add("QLinearSoftmax", [*net.of(x), *net.quantity(*y)], x.shape, *y, MICROSOFT, axis=-1, opset=13)


def _softmax_of(net, x, axis):
    y = np.float32(1 / 256), int(np.iinfo(net.dtype).min)
    net.add("QLinearSoftmax", [*net.of(x), *net.quantity(*y)], x.shape, *y, MICROSOFT, axis=axis, opset=13)


def draw_normalisation(net):
    """A layer normalisation from a dimension on."""
    x, rng = net.pick(), net.rng
    axis = int(rng.integers(0, len(x.shape)))
    if math.prod(x.shape[axis:]) < 2:
        return
    numbers = [rng.uniform(-2, 2, x.shape[axis:]).astype(np.float32) for _ in range(int(rng.integers(1, 3)))]
    net.add_floats("LayerNormalization", [x], numbers, x.shape, net.scale(0.03), net.zero(), axis=axis)


def draw_group_normalisation(net):
    """A normalisation of groups of channels."""
    x, rng = net.pick(rank=4), net.rng
    if x is None or math.prod(x.shape[2:]) < 2:
        return
    groups = int(rng.choice([size for size in range(1, x.shape[1] + 1) if x.shape[1] % size == 0]))
    numbers = rng.uniform(-2, 2, (2, groups)).astype(np.float32)
    net.add_floats("GroupNormalization", [x], list(numbers), x.shape, net.scale(0.03), net.zero(), num_groups=groups)


def draw_quotient(net):
    """A tensor divided by a function of means of its absolute values: no node quantises the function."""
    x = net.pick()
    scale, least = net.scale(x.scale) * np.float32(1.01), int(np.iinfo(net.dtype).min)
    net.add_floats("ReduceMean", [[x, "Abs"]], [np.int64([-1])], (*x.shape[:-1], 1), scale, least)
    means = net.tensors[-1]
    net.add_floats("Div", [x, [means, "Softplus"]], [], x.shape, net.scale(x.scale) * np.float32(1.01), net.zero())


def draw_attention(net):
    """One head or several, of the rows of a tensor: softmax(Q · Kᵀ) · V."""
    x, rng = net.pick(), net.rng
    rows, heads, deep = math.prod(x.shape[:-1]), int(rng.integers(1, 4)), int(rng.choice([3, 8, 16]))
    if len(x.shape) < 2 or not 2 <= rows <= 80 or (net.small_weights and net.dtype == "int8"):
        return

    def moved(kind, x, shape, *constants, **attributes):
        net.add(kind, [x.name, *constants], shape, x.scale, x.zero, **attributes)
        return net.tensors[-1]

    def product(a, b, shape, terms):
        scale, zero = net.scale(a.scale * b.scale * 3000 * math.sqrt(terms)), net.zero()
        net.add("QLinearMatMul", [*net.of(a), *net.of(b), *net.quantity(scale, zero)], shape, scale, zero)
        return net.tensors[-1]

    flat, parts = moved("Reshape", x, (rows, x.shape[-1]), net.constant((rows, x.shape[-1]), np.int64)), []
    for perm in ((1, 0, 2), (1, 2, 0), (1, 0, 2)):
        weights, weight_scale = net.weights((x.shape[-1], heads * deep), 1)
        scale, zero = net.scale(flat.scale * weight_scale * 60 * math.sqrt(x.shape[-1])), net.zero()
        inputs = [*net.of(flat), *weights, *net.quantity(scale, zero)]
        net.add("QLinearMatMul", inputs, (rows, heads * deep), scale, zero)
        split = rows, heads, deep
        part = moved("Reshape", net.tensors[-1], split, net.constant(split, np.int64))
        parts.append(moved("Transpose", part, [split[axis] for axis in perm], perm=list(perm)))
    q, k, v = parts
    _softmax_of(net, product(q, k, (heads, rows, rows), deep), 2)
    y = product(net.tensors[-1], v, (heads, rows, deep), 10)
    y = moved("Transpose", y, (rows, heads, deep), perm=[1, 0, 2])
    moved("Reshape", y, (rows, heads * deep), net.constant((rows, heads * deep), np.int64))
