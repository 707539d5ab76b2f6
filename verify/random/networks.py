"""Random quantised networks as ONNX models, a random layer at a time; a layer that does not fit is left out."""

import math

import numpy as np

from .attention import draw_attention, draw_group_normalisation, draw_normalisation, draw_quotient, draw_softmax
from .model import MICROSOFT, DrawnModel

__all__ = ["OPERATORS", "draw_inputs", "draw_network"]


def _conv(net):
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


def _add(net):
    if net.rng.random() < 0.3:
        _of_channels(net, "QLinearAdd")
        return
    _of_two(net, "QLinearAdd")


def _of_two(net, kind):
    a = net.pick()
    fitting = [tensor for tensor in net.tensors if tensor.shape == a.shape]
    b = fitting[int(net.rng.integers(0, len(fitting)))]
    scale, zero = net.scale(a.scale + b.scale if kind == "QLinearAdd" else a.scale * b.scale * 100), net.zero()
    inputs = [*net.of(a), *net.of(b), *net.quantity(scale, zero)]
    net.add(kind, inputs, a.shape, scale, zero, MICROSOFT)


def _mul(net):
    kind = net.rng.random()
    if kind < 0.8:
        (_of_channels if kind < 0.4 else _of_two)(net, "QLinearMul")
        return
    a, rng = net.pick(), net.rng
    info = np.iinfo(net.dtype)
    number, b_zero, b_scale = rng.integers(info.min, info.max + 1), net.zero(), net.scale(0.02)
    scale, zero = net.scale(a.scale * b_scale * 100), net.zero()
    constant = net.constant(np.full((1,) * int(rng.integers(0, len(a.shape) + 1)), number), net.dtype)
    factors = [net.of(a), [constant, *net.quantity(b_scale, b_zero)]]
    if rng.random() < 0.2:
        factors.reverse()
    net.add("QLinearMul", [*factors[0], *factors[1], *net.quantity(scale, zero)], a.shape, scale, zero, MICROSOFT)


def _gemm(net):
    x, rng = net.pick(rank=2), net.rng
    if x is None:
        return
    length, outputs = x.shape[1], int(rng.integers(1, 12))
    across = int(rng.integers(0, 2))
    weights, scale = net.weights((outputs, length) if across else (length, outputs), outputs)
    bias = [net.constant(rng.integers(-2000, 2000, outputs), np.int32)] if rng.random() < 0.7 else [""]
    y_scale, zero = net.scale(x.scale * scale * 60 * math.sqrt(length)), net.zero()
    inputs = [*net.of(x), *weights, *bias, *net.quantity(y_scale, zero)]
    net.add("QGemm", inputs, (x.shape[0], outputs), y_scale, zero, MICROSOFT, transB=across)


def _matmul(net):
    x, rng = net.pick(), net.rng
    if len(x.shape) < 2:
        return
    # Kernels for int8 by any int8 saturate where they are not exact.
    if rng.random() < 0.5 and not (net.small_weights and net.dtype == "int8"):
        _of_matrices(net, x)
        return
    length, outputs = x.shape[-1], int(rng.integers(1, 12))
    weights, scale = net.weights((length, outputs), outputs)
    y_scale, zero = net.scale(x.scale * scale * 60 * math.sqrt(length)), net.zero()
    net.add(
        "QLinearMatMul", [*net.of(x), *weights, *net.quantity(y_scale, zero)], (*x.shape[:-1], outputs), y_scale, zero
    )


def _of_matrices(net, x):
    """A product of two tensors: of one that fits, or of ``x`` and its transpose; perhaps of one matrix and several."""
    rng, fitting = net.rng, [each for each in net.tensors if each.shape[-2:-1] == x.shape[-1:]]
    fitting = [each for each in fitting if each.shape[:-2] in (x.shape[:-2], ())]
    if fitting and rng.random() < 0.5:
        other = fitting[int(rng.integers(0, len(fitting)))]
    else:
        perm = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
        net.add("Transpose", [x.name], [x.shape[axis] for axis in perm], x.scale, x.zero, perm=perm)
        other = net.tensors[-1]
    scale, zero = net.scale(x.scale * other.scale * 5000 * math.sqrt(x.shape[-1])), net.zero()
    inputs = [*net.of(x), *net.of(other), *net.quantity(scale, zero)]
    net.add("QLinearMatMul", inputs, (*x.shape[:-1], other.shape[-1]), scale, zero)


def _global_average(net):
    x = net.pick(rank=4)
    if x is not None:
        scale, zero = net.scale(x.scale), net.zero()
        inputs = [*net.of(x), *net.quantity(scale, zero)]
        net.add("QLinearGlobalAveragePool", inputs, (*x.shape[:2], 1, 1), scale, zero, MICROSOFT)


def _average(net):
    x = net.pick(rank=4)
    windows = x and _windows(net.rng, x.shape[2:], dilated=False)
    if windows:
        kernel, size, attributes = windows
        scale, zero = net.scale(x.scale), net.zero()
        inputs = [*net.of(x), *net.quantity(scale, zero)]
        net.add("QLinearAveragePool", inputs, (*x.shape[:2], *size), scale, zero, MICROSOFT, kernel_shape=list(kernel),
                count_include_pad=int(net.rng.integers(0, 2)), **attributes)  # fmt: skip


def _max(net):
    x = net.pick(rank=4)
    windows = x and _windows(net.rng, x.shape[2:], ceil=True)
    if windows:
        kernel, size, attributes = windows
        net.add("MaxPool", [x.name], (*x.shape[:2], *size), x.scale, x.zero, kernel_shape=list(kernel), **attributes)


def _pad(net):
    x, rng = net.pick(), net.rng
    before, after = rng.integers(0, 3, (2, len(x.shape)))
    if len(x.shape) > 1 and rng.random() < 0.5:
        # Of channels alone.
        before[:], after[:], after[1] = 0, 0, rng.integers(1, 4)
    inputs = [x.name, net.constant([*before, *after], np.int64)]
    if rng.random() < 0.7:
        inputs.append(net.constant(net.zero(), net.dtype))
    net.add("Pad", inputs, np.array(x.shape) + before + after, x.scale, x.zero)


def _concat(net):
    parts, axis, shape = _parts(net)
    # Bytes alone: they keep the scale and zero point of the first part.
    first = parts[0]
    net.add("Concat", [part.name for part in parts], shape, first.scale, first.zero, axis=axis)


def _quantised_concat(net):
    parts, axis, shape = _parts(net)
    same = net.rng.random() < 0.3
    scale, zero = (parts[0].scale, parts[0].zero) if same else (net.scale(parts[0].scale), net.zero())
    inputs = [*net.quantity(scale, zero), *(name for part in parts for name in net.of(part))]
    net.add("QLinearConcat", inputs, shape, scale, zero, MICROSOFT, axis=axis)


def _flatten(net):
    x = net.pick()
    axis = int(net.rng.integers(0, len(x.shape) + 1))
    net.add("Flatten", [x.name], (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])), x.scale, x.zero, axis=axis)


def _reshape(net):
    x, rng = net.pick(), net.rng
    sizes = [size for size in x.shape if size > 1]
    rng.shuffle(sizes)
    while len(sizes) > 1 and rng.random() < 0.5:
        sizes[-2:] = [sizes[-2] * sizes[-1]]
    sizes = (sizes + [1])[:5] if rng.random() < 0.5 or not sizes else sizes
    if math.prod(sizes) != math.prod(x.shape):
        return
    asked = list(sizes)
    if rng.random() < 0.5:
        asked[int(rng.integers(0, len(asked)))] = -1
    net.add("Reshape", [x.name, net.constant(asked, np.int64)], sizes, x.scale, x.zero)


def _transpose(net):
    x = net.pick()
    perm = [int(i) for i in net.rng.permutation(len(x.shape))]
    net.add("Transpose", [x.name], [x.shape[i] for i in perm], x.scale, x.zero, perm=perm)


def _leaky_relu(net):
    x = net.pick()
    scale, zero = net.scale(x.scale), net.zero()
    inputs = [*net.of(x), *net.quantity(scale, zero)]
    net.add("QLinearLeakyRelu", inputs, x.shape, scale, zero, MICROSOFT, alpha=float(net.rng.uniform(0.01, 0.5)))


def _sigmoid(net):
    x = net.pick()
    scale, zero = net.scale(1 / 200), int(np.iinfo(net.dtype).min)
    net.add("QLinearSigmoid", [*net.of(x), *net.quantity(scale, zero)], x.shape, scale, zero, MICROSOFT)


def _slice(net):
    x, rng = net.pick(), net.rng
    steps = [int(rng.choice([1, 1, 1, 2, 3])) for _ in x.shape]
    starts = [int(rng.integers(0, (size + 1) // 2)) for size in x.shape]
    ends = [int(rng.integers(first + 1, size + 1)) for first, size in zip(starts, x.shape, strict=True)]
    shape = [len(range(*each)) for each in zip(starts, ends, steps, strict=True)]
    numbers = (net.constant(each, np.int64) for each in (starts, ends, range(len(shape)), steps))
    net.add("Slice", [x.name, *numbers], shape, x.scale, x.zero)


def _resize(net):
    x, rng = net.pick(rank=4), net.rng
    if x is None or max(x.shape[2:]) > 12:
        return
    factors = [1, 1, *(int(factor) for factor in rng.integers(1, 4, 2))]
    shape = [size * factor for size, factor in zip(x.shape, factors, strict=True)]
    inputs = [x.name, "", net.constant(factors, np.float32)]
    net.add("Resize", inputs, shape, x.scale, x.zero, mode="nearest")


def _number_of_channels(net, x):
    """A tensor of a number for each channel of ``x``, its scale and zero point; a constant if there is none."""
    fitting = [each for each in net.tensors if each.shape in ((1, x.shape[1], 1, 1), (x.shape[0], x.shape[1], 1, 1))]
    if fitting and net.rng.random() < 0.8:
        part = fitting[int(net.rng.integers(0, len(fitting)))]
        return net.of(part), part.scale
    info, scale = np.iinfo(net.dtype), net.scale(0.02)
    numbers = net.rng.integers(info.min, info.max + 1, (1, x.shape[1], 1, 1))
    return [net.constant(numbers, net.dtype), *net.quantity(scale, net.zero())], scale


def _of_channels(net, kind):
    x = net.pick(rank=4)
    if x is None:
        return
    other, other_scale = _number_of_channels(net, x)
    scale = net.scale(x.scale + other_scale if kind == "QLinearAdd" else x.scale * other_scale * 100)
    zero, both = net.zero(), [net.of(x), other]
    if net.rng.random() < 0.3:
        both.reverse()
    net.add(kind, [*both[0], *both[1], *net.quantity(scale, zero)], x.shape, scale, zero, MICROSOFT)


def _silu(net):
    x, sigmoid = net.pick(), (np.float32(1 / 255), int(np.iinfo(net.dtype).min))
    net.add_floats("Sigmoid", [x], [], x.shape, *sigmoid)
    net.add_floats("Mul", [x, net.tensors[-1]], [], x.shape, net.scale(x.scale), net.zero())


def _batch_normalisation(net):
    x, rng = net.pick(), net.rng
    if len(x.shape) > 1:
        numbers = [rng.uniform(0.3, 2, x.shape[1]).astype(np.float32) for _ in range(4)]
        net.add_floats("BatchNormalization", [x], numbers, x.shape, net.scale(2 * x.scale), net.zero())


def _prelu(net):
    x, rng = net.pick(rank=4), net.rng
    if x is not None:
        slopes = rng.uniform(-0.5 if rng.random() < 0.3 else 0, 1, (x.shape[1], 1, 1)).astype(np.float32)
        # Two scales of one digit would give halves, which floats of ONNX Runtime round either way.
        net.add_floats("PRelu", [x], [slopes], x.shape, net.scale(x.scale) * np.float32(1.01), net.zero())


def _conv_transpose(net):
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


def _reduce(net, kind):
    x, rng = net.pick(), net.rng
    axes = sorted(int(axis) for axis in rng.choice(len(x.shape), int(rng.integers(1, len(x.shape) + 1)), replace=False))
    if math.prod(x.shape[axis] for axis in axes) > 256:
        return
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    if kind == "ReduceMean" and rng.random() < 0.4:
        # Scales of one digit would give halves, which floats of ONNX Runtime round either way.
        scale = net.scale(x.scale) * np.float32(1.01)
        net.add_floats(kind, [[x, "Abs"]], [np.int64(axes)], shape, scale, net.zero())
        return
    net.add_floats(kind, [x], [np.int64(axes)], shape, net.scale(x.scale), net.zero())


def _difference(net):
    a = net.pick()
    fitting = [tensor for tensor in net.tensors if tensor.shape == a.shape]
    b = fitting[int(net.rng.integers(0, len(fitting)))]
    net.add_floats("Sub", [a, b], [], a.shape, net.scale(a.scale + b.scale), net.zero())


#: Functions that draw a layer, by operator.
OPERATORS = {
    "QLinearConv": _conv,
    "QLinearAdd": _add,
    "QLinearMul": _mul,
    "QGemm": _gemm,
    "QLinearMatMul": _matmul,
    "QLinearGlobalAveragePool": _global_average,
    "QLinearAveragePool": _average,
    "MaxPool": _max,
    "Pad": _pad,
    "Concat": _concat,
    "QLinearConcat": _quantised_concat,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "QLinearLeakyRelu": _leaky_relu,
    "QLinearSigmoid": _sigmoid,
    "Slice": _slice,
    "Resize": _resize,
    "Sigmoid": _silu,
    "BatchNormalization": _batch_normalisation,
    "PRelu": _prelu,
    "ConvTranspose": _conv_transpose,
    "ReduceMean": lambda net: _reduce(net, "ReduceMean"),
    "ReduceMax": lambda net: _reduce(net, "ReduceMax"),
    "Sub": _difference,
    "QLinearSoftmax": draw_softmax,
    "LayerNormalization": draw_normalisation,
}
_BLOCKS = {"attention": draw_attention}
#: What kernels of small engines do not compute.
_LARGE = {"groups": draw_group_normalisation, "quotient": draw_quotient}


def _parts(net):
    """One to three tensors that fit, the dimension along which they do, and the shape of all of them."""
    x, rng = net.pick(), net.rng
    axis = int(rng.integers(0, len(x.shape)))

    def rest(tensor):
        return len(tensor.shape), tensor.shape[:axis], tensor.shape[axis + 1 :]

    fitting = [tensor for tensor in net.tensors if rest(tensor) == rest(x)]
    parts = [fitting[int(rng.integers(0, len(fitting)))] for _ in range(int(rng.integers(1, 4)))]
    return parts, axis, (*x.shape[:axis], sum(part.shape[axis] for part in parts), *x.shape[axis + 1 :])


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


#: Drawn more often than others.
_OFTEN = ("QLinearConv",) * 5 + ("QLinearAdd", "LayerNormalization", *_BLOCKS)


def draw_network(rng, layers=None, *, dtype=None, floats=None, small_weights=False, size=13, channels=8, large=False):
    """A model.

    Parameters
    ----------
    rng : numpy.random.Generator
    layers : int
        2 to 8 unless it is given.
    dtype : str
        Of activations; drawn unless it is given.
    floats : bool
        Whether input and outputs are float32.
    small_weights : bool
        See ``DrawnModel``.
    size, channels : int
        Exclusive limits of rows and columns, and of channels, of the input.
    large : bool
        Also layers that need an engine with room for large kernels.

    Returns
    -------
    ModelProto
    """
    dtype = dtype or str(rng.choice(["uint8", "int8"]))
    floats = rng.random() < 0.5 if floats is None else floats
    net = DrawnModel(rng, dtype, small_weights)
    shape = (int(rng.integers(1, 3)), int(rng.integers(1, channels)), *(int(n) for n in rng.integers(1, size, 2)))
    scale, zero = net.scale(0.05), net.zero()
    if floats:
        net.add("QuantizeLinear", ["x", *net.quantity(scale, zero)], shape, scale, zero)
    else:
        net.give("x", shape, scale, zero)
    wanted = len(net.tensors) + (layers or int(rng.integers(2, 9)))
    more = _LARGE if large else {}
    while len(net.tensors) < wanted:
        (OPERATORS | _BLOCKS | more)[str(rng.choice([*OPERATORS, *_OFTEN, *more]))](net)
    last = net.tensors[-1]
    outputs = [(last.name, dtype, last.shape)]
    if floats:
        net.add("DequantizeLinear", net.of(last), last.shape, last.scale, last.zero)
        outputs = [(net.tensors[-1].name, "float32", last.shape)]
    return net.model([("x", "float32" if floats else dtype, shape)], outputs)


def draw_inputs(rng, graph):
    """Numbers for the inputs of a ``Graph``: floats about as large as the first scale asks for."""
    inputs = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        if tensor.dtype == "float32":
            inputs[name] = rng.normal(0, 4, tensor.shape).astype(np.float32)
        else:
            info = np.iinfo(tensor.dtype)
            inputs[name] = rng.integers(info.min, info.max + 1, tensor.shape).astype(tensor.dtype)
    return inputs
