"""What the nodes of a network compute: a class of attributes for each kind (docs/network.md, "Exact arithmetic").

Scales are the binary32 factors of the results, zero points are integers, and padding is explicit.
"""

from dataclasses import dataclass

import numpy as np

__all__ = [
    "Add", "Arithmetic", "Concat", "Conv", "ConvTranspose", "Dequantize", "Floats", "Linear", "MatMul", "Mul",
    "Normalise", "NormaliseChannels", "Pad", "Pairs", "Pool", "Quantize", "Recurrent", "Reshape", "Scale", "Softmax",
    "Take", "Transpose",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Quantize:
    """y = sat(rne(fl(x / scale)) + zero): float32 to 8 bits.

    ``scale`` is a numpy float32, ``zero`` an int.
    """

    scale: np.float32
    zero: int


@dataclass(frozen=True, eq=False)
class Dequantize:
    """y = table[x], 8 bits to float32: fl((x - zero) · scale), or a function of it.

    ``table`` is a float32 array [256], indexed by the byte of x.
    """

    table: np.ndarray


@dataclass(frozen=True, eq=False)
class Floats:
    """What the host computes of its inputs, by ``function`` of arrays: usually float32 of float32.

    ``reason`` is the error of the node if the engines are to compute it, one sentence; it may be empty.
    """

    function: object
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Softmax:
    """y = sat(⌊(e · scale + ⌊s / 2⌋) / s⌋ + y_zero) with e = table[255 + x - m]: 8 bits to 8 bits.

    m is the largest x and s the sum of all e along ``axes``, a tuple of dimensions; ``table`` is an int64 array [256].
    ``scale`` and ``y_zero`` are ints, ``minimum`` and ``maximum`` the clamp of the result.
    """

    axes: tuple[int, ...]
    table: np.ndarray
    scale: int
    y_zero: int
    minimum: int
    maximum: int


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """Floats of tensors of one shape, divided or added in their order, as integers.

    y = sat(rne(fl(f / y_scale)) + y_zero), where f is the quotient or the sum of fl((x - zero) · scale) of each x,
    rounded to binary32 after each operation. What is not a number becomes the least integer.

    Attributes
    ----------
    operation : str
        "Div" or "Sum".
    quantities : tuple of (numpy float32, int)
        Scale and zero point of each input.
    y_scale : numpy float32
    y_zero : int
    """

    operation: str
    quantities: tuple
    y_scale: np.float32
    y_zero: int


@dataclass(frozen=True, eq=False)
class Pairs:
    """y = table[a, b], a function of two tensors of one shape: 8 bits to 8 bits.

    ``table`` is an array [256, 256] of y's type, indexed by the bytes of a and b.
    """

    table: np.ndarray


@dataclass(frozen=True, eq=False)
class Normalise:
    """Rows less their mean, divided by the root of their variance: 8 bits to 8 bits (docs/network.md).

    A row is all elements of the last dimensions, ``dimensions`` of them.

    Attributes
    ----------
    dimensions : int
    x_zero : int
    gain, shift : float32 array
        For each element of a row; they contain the scale and zero point of y.
    epsilon : numpy float32
        Added to the variance, in units of x's scale squared.
    centred : bool
        False: the mean is taken as 0 (RMS normalisation).
    """

    dimensions: int
    x_zero: int
    gain: np.ndarray
    shift: np.ndarray
    epsilon: np.float32
    centred: bool


@dataclass(frozen=True, eq=False)
class NormaliseChannels:
    """Each channel of a feature map less its mean, divided by the root of its variance (docs/network.md).

    ``x_zero`` is an int. ``gain`` and ``shift``, float32 [C], contain the scale and zero point of y; ``epsilon``, numpy
    float32, is in units of x's scale squared. ``members`` neighbouring channels have a mean and a variance in common.
    """

    x_zero: int
    gain: np.ndarray
    shift: np.ndarray
    epsilon: np.float32
    members: int = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Recurrent:
    """A layer that computes a state step by step, of floats: 8 bits to 8 bits (docs/network.md, "Recurrent layers").

    The input has a row for each step and batch, [steps · batch, inputs]; the output has the state after that step.

    Attributes
    ----------
    cells : str
        "LSTM", "GRU" or "RNN".
    after : bool
        Of a GRU: the gate r scales the product of the state, not the state.
    x_scale : numpy float32
    x_zero : int
    weight, recurrence : float32 arrays [gates · hidden, inputs], [gates · hidden, hidden]
        Of the inputs and of the state, gates in ONNX's order.
    bias : tuple of float32 array [sums, hidden]
        For each phase of a step (``network/recurrence.py``).
    hidden, cell : float32 array [batch, hidden]
        The first state, and cells of an LSTM.
    reverse : bool
        The last step comes first.
    clip : numpy float32 or None
        The limit of the absolute value of sums, before functions.
    y_scale : numpy float32
    y_zero, minimum, maximum : int
        Zero point and clamp of the result.
    """

    cells: str
    after: bool
    x_scale: np.float32
    x_zero: int
    weight: np.ndarray
    recurrence: np.ndarray
    bias: tuple
    hidden: np.ndarray
    cell: np.ndarray
    reverse: bool
    clip: np.float32 | None
    y_scale: np.float32
    y_zero: int
    minimum: int
    maximum: int


@dataclass(frozen=True, eq=False)
class Scale:
    """y = fl(fl(x) · scale), or fl(fl(fl(x) · scale) + bias): sums, int32 [..., Co], to float32.

    ``scale`` is a float32 array [Co], ``bias`` another one, or None.
    """

    scale: np.ndarray
    bias: np.ndarray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Conv:
    """A convolution, or a product with a constant matrix, which is a convolution of 1 × 1.

    Attributes
    ----------
    weight : int8 or uint8 array [Co, C / groups, Kh, Kw]
        Weights of the model, without subtracting zero points.
    x_zero : int
        Zero point of x, and the value of padding.
    w_zero : int32 array [Co]
    bias : int32 array [Co]
        Zeros if the model has none. It may be near 2^31: sums wrap.
    scale : float32 array [Co] or None
        fl(fl(sx · sw) / sy). None if the output is the sums, int32.
    y_zero : int
        Added after rounding.
    stride, dilation : (int, int)
        For rows, for columns.
    pad : (int, int, int, int)
        Top, left, bottom, right, each 0 or more.
    groups : int
        1 up to the number of channels (depthwise).
    minimum, maximum : int
        The clamp of the result, within its type.
    matrix : bool
        The input is not a feature map: its last dimension, of K elements, is the channels, and all others are pixels.
        ``weight`` is [Co, K, 1, 1], and the last dimension of the output is Co.
    """

    weight: np.ndarray
    x_zero: int
    w_zero: np.ndarray
    bias: np.ndarray
    scale: np.ndarray | None
    y_zero: int
    stride: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    minimum: int
    maximum: int
    matrix: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class ConvTranspose:
    """A transposed convolution: element (i, j) of x adds its products with the kernel to a window of sums.

    Sum (r, c) before ``pad`` is cut off takes x[i, j] times the weight at (k, l) if r = i · stride + k · dilation, and
    c in the same way; y is requantised as in :class:`Conv`.

    Attributes
    ----------
    weight : int8 or uint8 array [C, Co / groups, Kh, Kw]
    pad : (int, int)
        Rows cut off at the top, columns on the left. The shape of the output says how many follow.
    w_zero, bias : int32 arrays [Co]
    scale : float32 array [Co]
    x_zero, y_zero, stride, dilation, groups, minimum, maximum
        As in :class:`Conv`.
    """

    weight: np.ndarray
    x_zero: int
    w_zero: np.ndarray
    bias: np.ndarray
    scale: np.ndarray
    y_zero: int
    stride: tuple[int, int]
    pad: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    minimum: int
    maximum: int


@dataclass(frozen=True, eq=False)
class Linear:
    """A feature map resized by linear interpolation: y = sat(rne(fl(fl(Σ w (x - x_zero) + bias) · scale)) + y_zero).

    Row i of y takes rows ``first[0][i]`` and the next one of x, weighted by ``weights[0][i]``; columns in the same
    way, and w is the product of both weights, 0 to 255. ``first`` are two arrays of ints, ``weights`` two arrays [n, 2]
    of ints. Where the second weight is 0, there may be no next row.
    """

    first: tuple[np.ndarray, np.ndarray]
    weights: tuple[np.ndarray, np.ndarray]
    x_zero: int
    bias: int
    scale: np.float32
    y_zero: int
    minimum: int
    maximum: int


@dataclass(frozen=True, eq=False)
class Add:
    """y = sat(rne(fma(a, ratio[0], fma(b, ratio[1], offset)))): raw a and b.

    ``ratio`` is two numpy float32, ``offset`` one. ``minimum`` and ``maximum`` are the clamp of the result. b has the
    shape of a, or one number for each channel: then all dimensions have one element but the channels (dimension 1 of 2
    or 4, otherwise the last one) and perhaps the first one. Both inputs may be the same tensor, and their types may
    differ from each other and from the output's.
    """

    ratio: tuple[np.float32, np.float32]
    offset: np.float32
    minimum: int
    maximum: int


@dataclass(frozen=True, eq=False)
class Mul:
    """y = sat(rne(fl(fl((a - a_zero)(b - b_zero) · scale) + y_zero))).

    ``scale`` is a numpy float32, all others are ints. ``minimum`` and ``maximum`` are the clamp of the result.
    b has the shape of a, or one number for each channel, as for Add.
    """

    a_zero: int
    b_zero: int
    scale: np.float32
    y_zero: int
    minimum: int
    maximum: int


@dataclass(frozen=True, eq=False)
class MatMul:
    """The product of two matrices that are both tensors, as numpy's ``matmul`` defines it for any dimensions.

    y = sat(rne(fl(fl(acc) · scale)) + y_zero) with acc = Σ (a - a_zero)(b - b_zero) + bias, 32 bits that wrap.
    ``scale`` is a numpy float32, or None if the output is the sums, int32. ``bias`` is an int32 array with a number for
    each column, or None. All others are ints; ``minimum`` and ``maximum`` are the clamp of the result.
    """

    a_zero: int
    b_zero: int
    scale: np.float32 | None
    y_zero: int
    minimum: int
    maximum: int
    bias: np.ndarray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool:
    """Averages or maxima of windows of a feature map, for each channel.

    Attributes
    ----------
    kind : str
        ``"sum"``: y = sat(rne(fl(fl(acc) · scale)) + y_zero) with acc = Σ (x - x_zero), or with ``zero_first``
        sat(rne(fl(fl(fl(acc) · scale) + y_zero))); ``scale`` includes the divisor of an average. ``"max"``: the largest
        element, without padding; a window without elements has the least number of the type. There is no ``scale``.
    kernel, stride, dilation : (int, int)
        For rows, for columns.
    pad : (int, int, int, int)
        Top, left, bottom, right, each 0 or more.
    x_zero, y_zero : int
    scale : float32 array [1, 1] or [Ho, Wo]
        The latter if windows have different divisors.
    minimum, maximum : int
        The clamp of the result.
    """

    kind: str
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int, int, int]
    dilation: tuple[int, int]
    x_zero: int = 0
    scale: np.ndarray | None = None
    y_zero: int = 0
    zero_first: bool = False
    minimum: int
    maximum: int


@dataclass(frozen=True, eq=False)
class Pad:
    """``before`` and ``after`` elements of ``value`` around each dimension, 0 or more."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    value: int


@dataclass(frozen=True, eq=False)
class Concat:
    """Tensors joined along ``axis``, each through its table; with a single tensor it is a function of elements.

    ``tables`` has an entry for each input: None if bytes are unchanged, or an array of 256 elements of the output's
    type, indexed by the byte of the input (so that -1 is at 255).
    """

    axis: int
    tables: tuple[np.ndarray | None, ...]


@dataclass(frozen=True, eq=False)
class Reshape:
    """The same elements in ``shape``, in the order of the model's layout."""

    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Take:
    """Elements with some indices of each dimension, arrays of one dimension, which may repeat indices."""

    indices: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Transpose:
    """Dimension i of the output is dimension ``perm[i]`` of the input."""

    perm: tuple[int, ...]
