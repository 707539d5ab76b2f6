"""Two small networks with random weights, with operators that EfficientNet-Lite0 does not have.

``signed`` has int8 activations: residual blocks, an average and a maximum, a classifier. ``mixed`` has odd numbers of
channels: depthwise convolutions, padding of channels, concatenations, dilation, groups.
"""

import numpy as np

__all__ = ["SMALL", "build_small", "small_input"]

_SHAPES = {"signed": (1, 3, 32, 32), "mixed": (1, 5, 33, 27)}

#: Names of the networks.
SMALL = tuple(_SHAPES)


def small_input(name, seed):
    """An input of a network, as {"x": float32}."""
    return {"x": np.random.default_rng(seed).normal(0, 1, _SHAPES[name]).astype(np.float32)}


def build_small(name, *, form="QOperator", reduced=False):
    """A network of ``SMALL``; ``form`` and ``reduced`` are those of :func:`quantised`."""
    from .quantiser import FloatModel, quantised  # names of the networks do not need ONNX

    net = FloatModel(np.random.default_rng(SMALL.index(name)), _SHAPES[name])
    model = net.model(_signed(net) if name == "signed" else _mixed(net))
    samples = [small_input(name, seed) for seed in range(1000, 1008)]
    return quantised(model, samples, form=form, signed=name == "signed", reduced=reduced)


def _signed(net):
    x = net.conv("x", 16, 3, 3, pads=[1] * 4, strides=[2, 2])
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for channels in (16, 24):
        if channels != 16:
            x = net.conv(x, channels, 16, 1, strides=[2, 2])
        path = net.conv(x, channels, channels, 3, pads=[1] * 4)
        path = net.conv(path, channels, channels, 3, pads=[1] * 4, relu=False)
        x = net.node("Relu", net.node("Add", x, path))
    x = net.node("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.node("Flatten", x)
    return net.node("Gemm", x, *net.weights(10, 96), transB=1)


def _mixed(net):
    x = net.conv("x", 7, 5, 3, strides=[2, 1])
    deep = net.conv(x, 7, 7, 5, group=7, auto_pad="SAME_UPPER")
    wide = net.node("Pad", x, net.constant([0, 0, 0, 0, 0, 4, 0, 0], np.int64), net.constant(0, np.float32))
    x = net.node("Concat", deep, wide, axis=1)
    x = net.conv(x, 21, 18, 3, pads=[2, 2, 2, 2], dilations=[2, 2], group=3)
    left = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    right = net.node("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.node("Concat", left, right, axis=1)
    x = net.node("Mul", net.conv(x, 13, 42, 1), net.constant(0.75, np.float32))
    x = net.node("Transpose", net.node("GlobalAveragePool", x), perm=[0, 2, 3, 1])
    x = net.node("Reshape", x, net.constant([1, -1], np.int64))
    return net.node("MatMul", x, net.constant(net.noise(13, 9), np.float32))
