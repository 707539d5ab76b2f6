"""LSTM, GRU and RNN of integers (docs/network.md, "Recurrent layers"). Every operation rounds to binary32."""

from typing import NamedTuple

import numpy as np

from .arithmetic import dequantise, fused, saturate

__all__ = ["COEFFICIENTS", "LIMIT", "LOG2_E", "PHASES", "Phase", "recur"]

_F32 = np.float32
_ONE, _TWO = _F32(1), _F32(2)
#: Of the exponential: log2 e, the coefficients of f, f², …, and the largest absolute value of its operand.
LOG2_E = _F32(1.442695)
COEFFICIENTS = tuple(map(_F32, (0.693147, 0.24022242, 0.05550734, 0.009671514, 0.0013264719)))
LIMIT = 86.0
#: Sums of a product.
_SUMS = 4


class Phase(NamedTuple):
    """Sums that need no result of each other.

    Attributes
    ----------
    products : tuple of (str, tuple of (int, int))
        Vectors in order: "x", the state "h", or "s", the state that the gate r has scaled. Each with the sums that it
        is added to, and for each of them the gate whose weights it is multiplied by.
    biases : tuple of (int, ...)
        For each sum the numbers of the biases whose sum is its bias: those of x first, then those of h, by gate.
    """

    products: tuple
    biases: tuple


def _all(count):
    return tuple((gate, gate) for gate in range(count))


#: By the kind of a layer, and whether a GRU scales the state after its product: the phases of a step.
PHASES = {
    ("LSTM", False): (Phase((("x", _all(4)), ("h", _all(4))), ((0, 4), (1, 5), (2, 6), (3, 7))),),
    ("GRU", True): (
        Phase((("x", _all(3)), ("h", ((0, 0), (1, 1), (3, 2)))), ((0, 3), (1, 4), (2,), (5,))),
    ),
    ("GRU", False): (
        Phase((("x", _all(3)), ("h", _all(2))), ((0, 3), (1, 4), (2,))),
        Phase((("s", ((0, 2),)),), ((5,),)),
    ),
    ("RNN", False): (Phase((("x", _all(1)), ("h", _all(1))), ((0, 1),)),),
}  # fmt: skip


def recur(x, node, dtype):
    """The states of all steps, [steps · batch, hidden], as integers, from ``x``, [steps · batch, inputs].

    ``node`` is a ``Recurrent``.
    """
    batch, hidden = node.hidden.shape
    floats = dequantise(x, node.x_scale, node.x_zero).reshape(-1, batch, x.shape[1])
    h, c = node.hidden, node.cell
    made = np.empty((len(floats), batch, hidden), _F32)
    order = range(len(floats))
    for step in reversed(order) if node.reverse else order:
        h, c = _STEPS[node.cells](node, {"x": floats[step], "h": h}, c)
        made[step] = h
    with np.errstate(over="ignore"):  # infinity saturates
        scaled = made / node.y_scale
    return saturate(scaled, node.y_zero, node.minimum, node.maximum, dtype).reshape(-1, hidden)


def _lstm(node, vectors, c):
    i, o, f, g = _sums(node, vectors, 0)
    i, o, f, g = _sigmoid(i), _sigmoid(o), _sigmoid(f), _tanh(g)
    c = fused(f, c, i * g)
    return o * _tanh(c), c


def _gru(node, vectors, c):
    h = vectors["h"]
    if node.after:
        z, r, n, q = _sums(node, vectors, 0)
        z, n = _sigmoid(z), _tanh(fused(_sigmoid(r), q, n))
    else:
        z, r, n = _sums(node, vectors, 0)
        (q,) = _sums(node, {"s": _sigmoid(r) * h}, 1)
        z, n = _sigmoid(z), _tanh(n + q)
    return fused(z, h - n, n), c


def _rnn(node, vectors, c):
    (sums,) = _sums(node, vectors, 0)
    return _tanh(sums), c


_STEPS = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}


def _sums(node, vectors, number):
    """The sums of a phase, arrays [batch, hidden], with their biases."""
    phase = PHASES[node.cells, node.after][number]
    batch, hidden = node.hidden.shape
    parts = np.zeros((len(phase.biases), _SUMS, batch, hidden), _F32)
    for name, gates in phase.products:
        vector, weights = vectors[name], node.weight if name == "x" else node.recurrence
        own, taken = (list(numbers) for numbers in zip(*gates, strict=True))
        weights = weights.reshape(-1, hidden, weights.shape[1])[taken]
        for first in range(0, vector.shape[1], _SUMS):
            some = slice(first, first + _SUMS)
            terms = vector.T[some, :, np.newaxis], weights[:, :, some].transpose(0, 2, 1)[:, :, np.newaxis]
            count = len(terms[0])
            parts[own, :count] = fused(terms[1], terms[0], parts[own, :count])
    totals = (parts[:, 0] + parts[:, 2]) + (parts[:, 1] + parts[:, 3])
    totals += node.bias[number][:, np.newaxis]
    return totals if node.clip is None else np.clip(totals, -node.clip, node.clip)


def _exp(x):
    """e^x of |x| up to ``LIMIT``, and of larger ones that limit."""
    d = np.clip(x, _F32(-LIMIT), _F32(LIMIT))
    n = np.rint(d.astype(np.float64) * np.float64(LOG2_E))  # the product is exact
    f, p = fused(d, LOG2_E, -n), COEFFICIENTS[-1]
    for coefficient in (*COEFFICIENTS[-2::-1], _ONE):
        p = fused(p, f, coefficient)
    return np.ldexp(p, n.astype(int))


def _sigmoid(x):
    return _ONE / (_ONE + _exp(-x))


def _tanh(x):
    return fused(-_TWO, _ONE / (_ONE + _exp(_TWO * x)), _ONE)
