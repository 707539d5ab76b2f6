"""Kernels over rows: softmax, normalisation, sums, means and maxima. Rows are the last dimension of an array."""

import math

import numpy as np

from tilewright.golden.arguments import integer

from .program import KernelProgram, Space, float_bits, threads_of, two_dimensions

__all__ = ["arg_max", "layer_norm", "max_rows", "mean_rows", "softmax_bytes", "softmax_floats", "sum_rows"]

_BYTES = ("uint8", "int8")
_LARGEST = (1 << 32) - 1
_SHARE = 256  # 1 / scale of a softmax in bytes


def _blocks(count, size):
    return -(-count // size)


def _unsigned(dtype):
    return "u" if np.dtype(dtype) == np.uint8 else ""


def _sign(dtype):
    return "u" if np.dtype(dtype) == np.uint8 else "s"


def softmax_bytes(x, scale, **options):
    """Softmax of the last dimension of ``x``, bytes with this scale, as QLinearSoftmax; a :class:`KernelProgram`.

    The result has the type of ``x``, the scale 1 / 256, and the lowest number as its zero point. ``options`` are those
    of :class:`KernelProgram`. ValueError for rows of less than 16 elements.
    """
    rows = two_dimensions("x", x, _BYTES, 16)
    count, width = rows.shape
    shift = math.log(_LARGEST / width) / float(scale)
    # Entry k: a difference of k − 256 steps, and 0 of none.
    table = [min(int(math.exp((steps + shift) * float(scale))), _LARGEST) for steps in (0, *range(-255, 0))]
    threads = threads_of(options)
    chunks = [_blocks(width, size) for size in (64, 32, 16)]
    arguments = [rows, Space(rows.shape, x.dtype), _blocks(count, threads), threads, width, *chunks]
    variant = {"u": _unsigned(x.dtype), "signed": x.dtype == np.int8, "share": str(_SHARE)}
    return KernelProgram("softmax_bytes", arguments, result=1, lookup=np.array(table, np.uint32), variant=variant,
                         **options).shaped(x.shape)  # fmt: skip


def softmax_floats(x, **options):
    """Softmax of the last dimension of ``x``, float32, by the formulas in the kernel's text; a :class:`KernelProgram`.

    ValueError for rows of less than 12 elements.
    """
    rows = two_dimensions("x", x, ("float32",), 12)
    count, width = rows.shape
    threads = threads_of(options)
    arguments = [rows, Space(rows.shape, x.dtype), _blocks(count, threads), _blocks(width, 12), width - 12, threads,
                 min(12, width - 12), _blocks(width, 24)]  # fmt: skip
    return KernelProgram("softmax_f32", arguments, result=1, **options).shaped(x.shape)


def layer_norm(x, gain, shift, *, x_quant, y_quant, epsilon=1e-5, y_dtype=None, centred=True, **options):
    """Layer normalisation of the last dimension of ``x``, or, if not ``centred``, by the root of the mean square.

    Parameters
    ----------
    x : array of bytes
    gain, shift : float32 arrays
        A number for each column.
    x_quant, y_quant : (float, int)
        Scale and zero point.
    epsilon : float
    y_dtype : type of the result, or None for that of ``x``
    centred : bool
    options
        Of :class:`KernelProgram`.
    """
    rows = two_dimensions("x", x, _BYTES)
    (count, width), threads = rows.shape, threads_of(options)
    (x_scale, x_zero), (y_scale, y_zero) = x_quant, y_quant
    y_dtype = np.dtype(x.dtype if y_dtype is None else y_dtype)
    f32 = np.float32
    gains = (np.asarray(gain, f32) / f32(y_scale)).astype(f32)
    shifts = (np.asarray(shift, f32) / f32(y_scale) + f32(y_zero)).astype(f32)
    for name, values in (("gain", gains), ("shift", shifts)):
        if values.shape != (width,):
            raise ValueError(f"{name} must have a number for each of {width} columns, not shape {values.shape}")
    constants = [
        -width * x_zero, -2 * x_zero, width * x_zero**2, float_bits(1 / f32(width)), float_bits(float(centred)),
        float_bits(f32(epsilon) / (f32(x_scale) * f32(x_scale))), threads,
    ]  # fmt: skip
    words = np.array([word & _LARGEST for word in constants], np.uint32)
    arguments = [rows, Space(rows.shape, y_dtype), gains, shifts, words, _blocks(count, 2 * threads),
                 _blocks(width, 32), _blocks(width, 16)]  # fmt: skip
    table = np.arange(256, dtype=np.uint8).view(x.dtype).astype(f32) - f32(x_zero)
    variant = {"u": _unsigned(y_dtype), "x": _sign(x.dtype)}
    return KernelProgram("layer_norm", arguments, result=1, lookup=table.view(np.uint32), variant=variant,
                         **options).shaped(x.shape)  # fmt: skip


def sum_rows(x, x_zero=0, **options):
    """The sum of x − ``x_zero`` over the last dimension of ``x``, bytes: int32; a :class:`KernelProgram`."""
    return _sums("sum", x, x_zero, np.int32, [0, 0], "", options)


def mean_rows(x, scale, *, x_zero=0, y_zero=0, y_dtype=None, **options):
    """The mean of the last dimension of ``x`` in bytes, as ReduceMean; a :class:`KernelProgram`.

    ``scale`` is fl(sx / fl(sy · fl(n))): the sum of x − ``x_zero`` is multiplied by it, rounded, and ``y_zero`` added.
    """
    y_dtype = np.dtype(x.dtype if y_dtype is None else y_dtype)
    return _sums("mean", x, x_zero, y_dtype, [float_bits(scale), y_zero], _unsigned(y_dtype), options)


def _sums(what, x, x_zero, y_dtype, last, unsigned, options):
    rows = two_dimensions("x", x, _BYTES)
    (count, width), threads = rows.shape, threads_of(options)
    offset = -width * integer("x_zero", x_zero, -128, 255)
    arguments = [rows, Space((count,), y_dtype), _blocks(count, threads), _blocks(width, 64), threads, offset, *last]
    variant = {"x": _sign(x.dtype), "u": unsigned, "sum": what == "sum", "mean": what == "mean"}
    program = KernelProgram("sum_rows", arguments, result=1, variant=variant, elements=rows.size, **options)
    return program.shaped(x.shape[:-1])


def max_rows(x, **options):
    """The largest of the last dimension of ``x``, bytes; a :class:`KernelProgram`. ValueError below 16 columns."""
    return _largest("max_rows", x, x.dtype, 16, 64, options)


def arg_max(x, **options):
    """The index of the first largest of the last dimension of ``x``, bytes: int32; a :class:`KernelProgram`.

    ValueError below 32 columns.
    """
    return _largest("arg_max", x, np.int32, 32, 128, options, more=2)


def _largest(name, x, y_dtype, least, chunk, options, more=0):
    rows = two_dimensions("x", x, _BYTES, least)
    (count, width), threads = rows.shape, threads_of(options)
    arguments = [rows, Space((count,), y_dtype), _blocks(count, threads), threads, width, _blocks(width, chunk) + more]
    span = 2 * least if width >= 2 * least else least
    variant = {"u": _unsigned(x.dtype), "span": str(span), "second": str(span - least)}
    program = KernelProgram(name, arguments, result=1, variant=variant, elements=rows.size, **options)
    return program.shaped(x.shape[:-1])
