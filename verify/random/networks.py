"""Random quantised networks as ONNX models, a random layer at a time; a layer that does not fit is left out."""

import math

import numpy as np

from .attention import draw_attention, draw_group_normalisation, draw_normalisation, draw_quotient, draw_softmax
from .model import MICROSOFT, DrawnModel
from .recurrent import draw_recurrent
from .windows import draw_average, draw_conv, draw_conv_transpose, draw_global_average, draw_max

__all__ = ["OPERATORS", "draw_inputs", "draw_network"]


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
    "QLinearConv": draw_conv,
    "QLinearAdd": _add,
    "QLinearMul": _mul,
    "QGemm": _gemm,
    "QLinearMatMul": _matmul,
    "QLinearGlobalAveragePool": draw_global_average,
    "QLinearAveragePool": draw_average,
    "MaxPool": draw_max,
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
    "ConvTranspose": draw_conv_transpose,
    "ReduceMean": lambda net: _reduce(net, "ReduceMean"),
    "ReduceMax": lambda net: _reduce(net, "ReduceMax"),
    "Sub": _difference,
    "QLinearSoftmax": draw_softmax,
    "LayerNormalization": draw_normalisation,
}
_BLOCKS = {"attention": draw_attention}
#: What kernels of small engines do not compute.
_LARGE = {"groups": draw_group_normalisation, "quotient": draw_quotient, "recurrent": draw_recurrent}


def _parts(net):
    """One to three tensors that fit, the dimension along which they do, and the shape of all of them."""
    x, rng = net.pick(), net.rng
    axis = int(rng.integers(0, len(x.shape)))

    def rest(tensor):
        return len(tensor.shape), tensor.shape[:axis], tensor.shape[axis + 1 :]

    fitting = [tensor for tensor in net.tensors if rest(tensor) == rest(x)]
    parts = [fitting[int(rng.integers(0, len(fitting)))] for _ in range(int(rng.integers(1, 4)))]
    return parts, axis, (*x.shape[:axis], sum(part.shape[axis] for part in parts), *x.shape[axis + 1 :])


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
