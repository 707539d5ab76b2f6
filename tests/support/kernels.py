"""What kernels compute, in numpy, from the formulas in their texts."""

from types import SimpleNamespace

import numpy as np

from tilewright.network.arithmetic import fused

__all__ = ["any_bytes", "equal", "gru", "layer_norm", "lstm", "node", "saturated", "softmax_floats"]

_F32 = np.float32
_COEFFICIENTS = [_F32(c) for c in (0.693147, 0.24022242, 0.05550734, 0.009671514, 0.0013264719)]


def any_bytes(rng, shape, dtype):
    """Random bytes of all values."""
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max + 1, shape).astype(dtype)


def node(dtype, **fields):
    """Attributes of a node of a network whose result has the type."""
    limits = np.iinfo(dtype)
    return SimpleNamespace(minimum=limits.min, maximum=limits.max, **fields)


def equal(program, wanted):
    """Checks the result of a ``KernelProgram`` on the golden model."""
    result = program.run()
    assert result.dtype == wanted.dtype and result.shape == wanted.shape
    assert (result == wanted).all()


def saturated(values, dtype):
    """Rounded to nearest even and clamped to the type."""
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values.astype(np.float64)), limits.min, limits.max).astype(dtype)


def softmax_floats(x):
    """Softmax of rows, float32."""
    d = np.maximum(x - x.max(axis=1, keepdims=True), _F32(-86))
    n = np.rint(d.astype(np.float64) * np.float64(_F32(1.442695)))  # the product is exact
    f = fused(d, _F32(1.442695), -n)
    p = _COEFFICIENTS[4]
    for c in (*_COEFFICIENTS[3::-1], _F32(1)):
        p = fused(p, f, c)
    e = np.ldexp(p, n.astype(int))
    parts = np.zeros((12, len(x)), _F32)
    for column in range(x.shape[1]):
        parts[column % 12] += e[:, column]
    parts = parts[:6] + parts[6:]
    a, b, c = parts[:3] + parts[3:]
    total = a + b + c
    return e * (_F32(1) / total)[:, np.newaxis]


def layer_norm(x, gain, shift, x_quant, y_quant, epsilon, dtype, *, centred):
    """Layer normalisation of rows of bytes, or by the root of the mean square."""
    (x_scale, x_zero), (y_scale, y_zero) = x_quant, y_quant
    u = x.astype(np.int64) - x_zero
    i = _F32(1) / _F32(x.shape[1])
    m = u.sum(axis=1).astype(_F32) * i * _F32(centred)
    v = np.maximum(fused(-m, m, (u**2).sum(axis=1).astype(_F32) * i), _F32(0))
    r = _F32(1) / np.sqrt(v + _F32(epsilon) / (_F32(x_scale) * _F32(x_scale)))
    inner = fused(u, r[:, np.newaxis], (-m * r)[:, np.newaxis])
    return saturated(fused(inner, gain / _F32(y_scale), shift / _F32(y_scale) + _F32(y_zero)), dtype)


def _tables(gates, quant):
    scale, zero = quant
    x = [((gate.astype(np.int64) - zero).astype(_F32) * _F32(scale)).astype(np.float64) for gate in gates]
    return [(1 / (1 + np.exp(-values))).astype(_F32) for values in x], [np.tanh(values).astype(_F32) for values in x]


def _quantised(values, scale, zero, dtype):
    limits = np.iinfo(dtype)
    rounded = np.rint(values * (_F32(1) / _F32(scale))).astype(np.float64)
    return np.clip(rounded + zero, limits.min, limits.max).astype(dtype)


def lstm(gates, c, gate_quant, h_quant, h_dtype):
    """The next state, and h."""
    (i, o, f, _), (*_, g) = _tables(gates, gate_quant)
    state = fused(f, c, i * g)
    (tanh,) = _tables([_quantised(state, *gate_quant, gates[0].dtype)], gate_quant)[1]
    return state, _quantised(o * tanh, *h_quant, h_dtype)


def gru(gates, h, gate_quant, y_quant, y_dtype):
    """The next state, and it in bytes."""
    (z, r, *_), _ = _tables(gates, gate_quant)
    scale, zero = gate_quant
    a, b = ((gate.astype(np.int64) - zero).astype(_F32) * _F32(scale) for gate in gates[2:])
    t = fused(r, b, a)
    (n,) = _tables([_quantised(t, *gate_quant, gates[0].dtype)], gate_quant)[1]
    state = fused(z, h - n, n)
    return state, _quantised(state, *y_quant, y_dtype)
