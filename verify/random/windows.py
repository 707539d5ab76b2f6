"""Random layers that step a window over pixels: convolutions and pools."""

import math

import numpy as np

from .model import MICROSOFT

__all__ = ["draw_average", "draw_conv", "draw_conv_transpose", "draw_global_average", "draw_max"]


def draw_conv(net):
    """A QLinearConv with any groups, strides, dilations and pads, and perhaps a bias."""
    x, rng = net.pick(rank=4), net.rng
    if x is None:
        return
    channels = x.shape[1]
    groups = int(rng.choice([g for g in range(1, channels + 1) if channels % g == 0]))
    outputs = groups * int(rng.integers(1, 4))
    windows = _windows(rng, x.shape[2:], pool=False)
    if windows is None:
        return
    kernel, size, attributes = windows
    terms = channels // groups * math.prod(kernel)
    weights, scale = net.weights((outputs, channels // groups, *kernel), outputs)
    inputs = [*net.of(x), *weights]
    # Mostly small, and now and then so large that sums wrap.
    bias = rng.integers(-2000, 2000, outputs) if rng.random() < 0.9 else rng.integers(-(2**31), 2**31, outputs)
    y_scale, zero = net.scale(x.scale * scale * 60 * math.sqrt(terms)), net.zero()
    inputs += net.quantity(y_scale, zero) + ([net.constant(bias, np.int32)] if rng.random() < 0.7 else [])
    shape = (x.shape[0], outputs, *size)
    net.add("QLinearConv", inputs, shape, y_scale, zero, group=groups, kernel_shape=list(kernel), **attributes)


def draw_global_average(net):
    """A QLinearGlobalAveragePool."""
    x = net.pick(rank=4)
    if x is not None:
        scale, zero = net.scale(x.scale), net.zero()
        inputs = [*net.of(x), *net.quantity(scale, zero)]
        net.add("QLinearGlobalAveragePool", inputs, (*x.shape[:2], 1, 1), scale, zero, MICROSOFT)


def draw_average(net):
    """A QLinearAveragePool of any window, with or without its padding."""
    x = net.pick(rank=4)
    windows = x and _windows(net.rng, x.shape[2:], dilated=False)
    if windows:
        kernel, size, attributes = windows
        scale, zero = net.scale(x.scale), net.zero()
        inputs = [*net.of(x), *net.quantity(scale, zero)]
        net.add("QLinearAveragePool", inputs, (*x.shape[:2], *size), scale, zero, MICROSOFT, kernel_shape=list(kernel),
                count_include_pad=int(net.rng.integers(0, 2)), **attributes)  # fmt: skip


def draw_max(net):
    """A MaxPool of any window, of which the last may lie partly outside."""
    x = net.pick(rank=4)
    windows = x and _windows(net.rng, x.shape[2:], ceil=True)
    if windows:
        kernel, size, attributes = windows
        net.add("MaxPool", [x.name], (*x.shape[:2], *size), x.scale, x.zero, kernel_shape=list(kernel), **attributes)


def draw_conv_transpose(net):
    """A ConvTranspose between floats."""
    x, rng = net.pick(rank=4), net.rng
    if x is None or max(x.shape[2:]) > 12:
        return
    kernel, strides = (tuple(int(n) for n in rng.integers(1, 4, 2)) for _ in range(2))
    outputs, pads = int(rng.integers(1, 9)), [int(rng.integers(0, length)) for length in (*kernel, *kernel)]
    size = [(given - 1) * stride + length - pads[axis] - pads[axis + 2]
            for axis, (given, stride, length) in enumerate(zip(x.shape[2:], strides, kernel, strict=True))]  # fmt: skip
    if min(size) < 1:
        return
    weight_scale, whole = np.float32(0.02), np.int8(0)
    weights = rng.integers(-64, 64, (x.shape[1], outputs, *kernel)).astype(np.int8)
    name = f"w{len(net.tensors)}"
    net.dequantise(name, weights, weight_scale, whole)
    # Scales of one digit would give halves, which floats of ONNX Runtime round either way.
    scale = net.scale(x.scale * 0.02 * 60 * math.sqrt(x.shape[1] * math.prod(kernel))) * np.float32(1.01)
    net.add_floats("ConvTranspose", [x], [name], (x.shape[0], outputs, *size), scale, net.zero(),
                   strides=list(strides), pads=pads)  # fmt: skip


def _windows(rng, size, *, dilated=True, pool=True, ceil=False):
    """A kernel, how many rows and columns of windows there are, and their attributes; None if none fits."""
    kernel, strides = (tuple(int(n) for n in rng.integers(1, most, 2)) for most in (5, 4))
    dilations = tuple(int(n) for n in rng.integers(1, 3, 2)) if dilated and rng.random() < 0.3 else (1, 1)
    how = str(rng.choice(["NOTSET", "NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    sparse = pool and any(-(-n // s) * s - s + k < n for n, k, s in zip(size, kernel, strides, strict=True))
    if how.startswith("SAME") and (dilations != (1, 1) or sparse):
        how = "NOTSET"  # ONNX Runtime takes no dilation with the others, and shifts windows of pools
    attributes = {"strides": list(strides)} | ({"dilations": list(dilations)} if dilated else {})
    pads, up = [0] * 4, 0
    if how == "NOTSET":
        # A window has to hold an element, also one that steps over most of them.
        pads = [
            int(rng.integers(0, kernel[i % 2] if dilations[i % 2] == 1 else min(kernel[i % 2], 2))) for i in range(4)
        ]
        up = int(rng.integers(0, 2)) if ceil else 0
        attributes |= {"pads": pads} | ({"ceil_mode": up} if ceil else {})
    else:
        attributes["auto_pad"] = how
    counts = []
    for i in range(2):
        if how.startswith("SAME"):
            counts.append(-(-size[i] // strides[i]))
            continue
        room = size[i] + pads[i] + pads[i + 2] - ((kernel[i] - 1) * dilations[i] + 1)
        if room < 0:
            return None
        count = room // strides[i] + 1
        if up and room % strides[i]:
            if count * strides[i] >= size[i] + pads[i]:
                return None  # ONNX and ONNX Runtime disagree on the number of windows
            count += 1
        counts.append(count)
    return kernel, counts, attributes
