"""Kernels over elements: functions, sums and products of tensors, rearrangements, and gates of recurrent layers."""

import math

import numpy as np

from tilewright.golden.arguments import array, integer, power_of_two, shown
from tilewright.golden.pe.floats import compute
from tilewright.spec import BANKS
from tilewright.spec.arithmetic import Function

from .program import Flat, KernelProgram, Space, float_bits, threads_of, two_dimensions

__all__ = [
    "function_bytes", "gather_rows", "gru_gates", "lstm_gates", "product_bytes", "sum_bytes", "transpose_bytes",
]  # fmt: skip

_BYTES = ("uint8", "int8")
_LARGEST = (1 << 32) - 1
_ROW = 128  # columns of tensors whose rows do not matter


def _blocks(count, size):
    return -(-count // size)


def _unsigned(dtype):
    return "u" if np.dtype(dtype) == np.uint8 else ""


def _values(dtype, zero=0):
    """The number of every byte, less ``zero``, as float32."""
    return np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32) - np.float32(zero)


def function_bytes(x, table, **options):
    """``table``, 256 bytes, of every byte of ``x``; a :class:`KernelProgram` with the type of the table."""
    table = two_dimensions("table", np.asarray(table), _BYTES)
    if table.size != 256:
        raise ValueError(f"table must have 256 entries, not {table.size}")
    rows = two_dimensions("x", x, _BYTES)
    threads = threads_of(options)
    arguments = [rows, Space(rows.shape, table.dtype), _blocks(len(rows), threads), _blocks(rows.shape[1], 64), threads]
    lookup = table.reshape(-1).view(np.uint8).astype(np.uint32)
    return KernelProgram("function", arguments, result=1, lookup=lookup, **options).shaped(x.shape)


def sum_bytes(a, b, *, ratio, offset, y_dtype=None, **options):
    """sat(rne(fma(a, ratio[0], fma(b, ratio[1], offset)))) of bytes, as QLinearAdd; a :class:`KernelProgram`.

    ``b`` broadcasts to the shape of ``a``.
    """
    inner = compute(Function.FMA, _values(b.dtype).view(np.uint32), float_bits(ratio[1]), float_bits(offset))
    return _combined("sum", a, b, _values(a.dtype), inner.view(np.float32), [float_bits(ratio[0])], y_dtype, options)


def product_bytes(a, b, *, a_zero, b_zero, scale, y_zero, y_dtype=None, **options):
    """sat(rne(fl(fl((a − za)(b − zb) · scale) + zy))) of bytes, as QLinearMul; a :class:`KernelProgram`.

    ``b`` broadcasts to the shape of ``a``.
    """
    last = [float_bits(scale), float_bits(y_zero)]
    return _combined("product", a, b, _values(a.dtype, a_zero), _values(b.dtype, b_zero), last, y_dtype, options)


def _combined(name, a, b, a_table, b_table, last, y_dtype, options):
    for operand, values in (("a", a), ("b", b)):
        two_dimensions(operand, np.atleast_1d(values), _BYTES)
    rows, others, along = _views(a, b)
    threads, y_dtype = threads_of(options), np.dtype(a.dtype if y_dtype is None else y_dtype)
    arguments = [rows, others, Space(rows.shape, y_dtype), _blocks(len(rows), threads), _blocks(rows.shape[1], 16),
                 threads, *last]  # fmt: skip
    variant = {"u": _unsigned(y_dtype), "same": along == "same", "row": along == "row"}
    lookup = np.concatenate([a_table, b_table]).view(np.uint32)
    return KernelProgram(name, arguments, result=2, lookup=lookup, variant=variant, **options).shaped(a.shape)


def _views(a, b):
    """``a`` as rows; ``b`` as rows, one row or a column; and "same" or "row", the kernel's variant.

    ValueError if ``b`` does not broadcast to the shape of ``a``.
    """
    try:
        whole = np.broadcast_to(b, a.shape)
    except ValueError:
        raise ValueError(f"b must broadcast to the shape {a.shape} of a, not {b.shape}") from None
    sizes = (1,) * (a.ndim - b.ndim) + b.shape
    constant = next((n for n, size in enumerate(reversed(sizes)) if size > 1), a.ndim)  # trailing dimensions
    width = math.prod(a.shape[a.ndim - constant :])
    if width > 1:
        part = _ROW if width % _ROW == 0 else width
        column = whole.reshape(-1, width)[:, 0]
        return np.ascontiguousarray(a.reshape(-1, part)), np.repeat(column, width // part), "row"
    full = next((n for n, size in enumerate(reversed(sizes)) if size == 1), a.ndim)
    width = math.prod(a.shape[a.ndim - full :])
    if b.size == width and full < a.ndim:
        return a.reshape(-1, width), np.ascontiguousarray(b).reshape(-1), "same"
    return _rows(a.reshape(-1, a.shape[-1])), _rows(whole.reshape(-1, a.shape[-1])), "same"


def _rows(values):
    """An array of rank 2, with rows of 128 elements if that divides their number."""
    return np.ascontiguousarray(values.reshape(-1, _ROW) if values.size % _ROW == 0 else values)


def transpose_bytes(x, **options):
    """The transpose of a matrix of bytes; a :class:`KernelProgram`. ValueError unless threads are a power of two."""
    matrix, threads = two_dimensions("x", x, _BYTES), power_of_two("threads", threads_of(options))
    count, width = matrix.shape
    groups = min(threads, 1 << (_blocks(width, 16) - 1).bit_length())
    rows, columns = 4 * threads // groups, 16 * groups  # of a block
    blocks = _blocks(count, rows)
    # Eight threads read 16 bytes of different banks, and write to different banks.
    pitch = width + (4 * groups - width) % 32 if groups < BANKS else 4 * _blocks(width, 4)
    y_pitch = 8 * (_blocks(rows * blocks, 8) | 1)
    padded = np.zeros((count, pitch), x.dtype)
    padded[:, :width] = matrix
    steps = rows * pitch, columns - blocks * rows * pitch, rows, columns * y_pitch - blocks * rows
    variant = {f"x{n}": str(n * pitch) for n in range(1, 5)} | {f"y{n}": str(n * y_pitch) for n in range(1, 17)}
    variant |= {"last": str(groups - 1), "log2": str(groups.bit_length() - 1)}
    arguments = [Flat(padded), Flat(np.zeros((width, y_pitch), x.dtype)), blocks, _blocks(width, columns), *steps]
    program = KernelProgram("transpose", arguments, result=1, variant=variant, elements=matrix.size, **options)
    return program.shaped((width, y_pitch), (slice(None), slice(count)))


def gather_rows(x, index, **options):
    """The rows of ``x``, bytes, with the numbers in ``index``, int32, or zeros without such a row.

    A :class:`KernelProgram`.
    """
    rows, threads = two_dimensions("x", x, _BYTES), threads_of(options)
    if array("index", index).dtype != np.int32 or index.ndim != 1:
        raise TypeError(f"index must be int32 with one dimension, not {index.dtype} with {index.ndim}")
    width = rows.shape[1]
    arguments = [rows, index, Space((len(index), width), x.dtype), _blocks(len(index), threads), _blocks(width, 64),
                 threads]  # fmt: skip
    return KernelProgram("gather_rows", arguments, result=2, **options)


def lstm_gates(gates, c, *, gate_quant, h_quant, h_dtype=None, **options):
    """A step of an LSTM from the sums of its gates; a :class:`KernelProgram` whose result is h.

    Parameters
    ----------
    gates : sequence of four arrays of bytes
        Sums of the gates i, o, f and g.
    c : float32 array
        The state, of the same shape; :meth:`KernelProgram.read_argument` 4 is the next one.
    gate_quant, h_quant : (float, int)
        Scale and zero point of the sums and of h.
    """
    scale, zero = gate_quant
    constants = [float_bits(1 / np.float32(scale)), zero]
    return _gates("lstm_gates", gates, c, constants, [], gate_quant, h_quant, h_dtype, options)


def gru_gates(gates, h, *, gate_quant, y_quant, y_dtype=None, **options):
    """A step of a GRU from its sums; a :class:`KernelProgram` whose result is the next state in bytes.

    Parameters
    ----------
    gates : sequence of four arrays of bytes
        Sums of the gates z and r, and those of the new state: of the input, and of the state.
    h : float32 array
        The state, of the same shape; :meth:`KernelProgram.read_argument` 4 is the next one.
    gate_quant, y_quant : (float, int)
        Scale and zero point of the sums and of the result.
    """
    scale, zero = gate_quant
    constants = [float_bits(1 / np.float32(scale)), zero]
    last = [float_bits(scale), -integer("zero", zero, -128, 255)]
    return _gates("gru_gates", gates, h, constants, last, gate_quant, y_quant, y_dtype, options)


def _gates(name, gates, state, constants, last, gate_quant, y_quant, y_dtype, options):
    if len(gates) != 4 or len({(gate.shape, gate.dtype.name) for gate in gates}) != 1:
        raise ValueError("gates must be four arrays of one shape and type")
    two_dimensions("gates", gates[0], _BYTES)
    shape, kind = gates[0].shape, gates[0].dtype
    if state.shape != shape or state.dtype != np.float32 or not state.size:
        raise ValueError(f"the state must be float32 of shape {shape}, not {shown(state)}")
    y_dtype, step = np.dtype(kind if y_dtype is None else y_dtype), 12 * threads_of(options)
    (scale, zero), (y_scale, y_zero) = gate_quant, y_quant
    constants = [*constants, float_bits(1 / np.float32(y_scale)), y_zero, step, *last]
    words = np.array([word & _LARGEST for word in constants], np.uint32)
    x = (np.arange(256, dtype=np.uint8).view(kind).astype(np.float32) - np.float32(zero)) * np.float32(scale)
    x = x.astype(np.float64)
    table = np.concatenate([1 / (1 + np.exp(-x)), np.tanh(x)]).astype(np.float32).view(np.uint32)
    arguments = [*(gate.reshape(-1) for gate in gates), state.reshape(-1), Space((state.size,), y_dtype), words,
                 _blocks(state.size, step)]  # fmt: skip
    variant = {"u": _unsigned(kind), "y": _unsigned(y_dtype)}
    return KernelProgram(name, arguments, result=5, lookup=table, variant=variant, **options).shaped(shape)
