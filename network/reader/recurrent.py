"""LSTM, GRU and RNN of floats, which the host computes. Each operation rounds to binary32."""

import numpy as np

__all__ = ["RECURRENT"]

_ONE = np.float32(1)
_FUNCTIONS = {
    b"Relu": lambda x: np.maximum(x, np.float32(0)),
    b"Sigmoid": lambda x: _ONE / (_ONE + np.exp(-x)),
    b"Tanh": np.tanh,
}


def _lstm(attributes, functions, x, h, weights, bias, c, peepholes):
    """A step of an LSTM, gates in the order i, o, f, c; returns the new h and c."""
    i, o, f, g = np.split(_products(attributes, x, h, weights, bias), 4, axis=1)
    first, second, third = functions
    pi, po, pf = np.split(peepholes, 3)
    i, f = first(_limited(attributes, i + pi * c)), first(_limited(attributes, f + pf * c))
    c = f * c + i * second(_limited(attributes, g))
    o = first(_limited(attributes, o + po * c))
    return o * third(c), c


def _gru(attributes, functions, x, h, weights, bias, c, peepholes):
    """A step of a GRU, gates in the order z, r, h."""
    w, r = weights
    size, (first, second) = r.shape[1], functions
    wb, rb = np.split(bias, 2)
    given, kept = x @ w.T + wb, h @ r[: 2 * size].T + rb[: 2 * size]
    z, reset = np.split(first(_limited(attributes, given[:, : 2 * size] + kept)), 2, axis=1)
    if attributes.get("linear_before_reset", 0):
        hidden = reset * (h @ r[2 * size :].T + rb[2 * size :])
    else:
        hidden = (reset * h) @ r[2 * size :].T + rb[2 * size :]
    new = second(_limited(attributes, given[:, 2 * size :] + hidden))
    return (_ONE - z) * new + z * h, c


def _rnn(attributes, functions, x, h, weights, bias, c, peepholes):
    """A step of an RNN."""
    return functions[0](_limited(attributes, _products(attributes, x, h, weights, bias))), c


def _products(attributes, x, h, weights, bias):
    w, r = weights
    return x @ w.T + h @ r.T + np.add(*np.split(bias, 2))


def _limited(attributes, x):
    clip = attributes.get("clip")
    return x if clip is None else np.clip(x, np.float32(-clip), np.float32(clip))


#: By operator: gates, a step, and the functions of a direction by default.
_CELLS = {
    "GRU": (3, _gru, [b"Sigmoid", b"Tanh"]),
    "LSTM": (4, _lstm, [b"Sigmoid", b"Tanh", b"Tanh"]),
    "RNN": (1, _rnn, [b"Tanh"]),
}
_DIRECTIONS = {b"forward": (1,), b"reverse": (-1,), b"bidirectional": (1, -1)}


def _recurrent(kind):
    def function(attributes, x, w, r, bias=None, lengths=None, h=None, c=None, peepholes=None):
        """Results of all steps, those of the last step, and of an LSTM its cells."""
        gates, step, defaults = _CELLS[kind]
        directions = _DIRECTIONS[attributes.get("direction", b"forward")]
        names = attributes.get("activations") or defaults * len(directions)
        if attributes.get("input_forget", 0):
            raise ValueError("input_forget is not supported")
        batch_first, size = attributes.get("layout", 0), r.shape[2]
        x, h, c = (
            part.swapaxes(0, 1) if batch_first and part is not None and part.size else part for part in (x, h, c)
        )
        if _has(lengths) and (lengths != len(x)).any():
            raise ValueError("sequences of different lengths are not supported")
        start = np.zeros((len(directions), x.shape[1], size), np.float32)
        h, c = (part if _has(part) else start for part in (h, c))
        bias = bias if _has(bias) else np.zeros((len(directions), 2 * gates * size), np.float32)
        peepholes = peepholes if _has(peepholes) else np.zeros((len(directions), 3 * size), np.float32)
        results, last = [], []
        for number, way in enumerate(directions):
            own = [_FUNCTIONS[name] for name in names[number * len(defaults) : (number + 1) * len(defaults)]]
            state, made = (h[number], c[number]), []
            for frame in x[::way]:
                state = step(attributes, own, frame, state[0], (w[number], r[number]), bias[number], state[1],
                             peepholes[number])  # fmt: skip
                made.append(state[0])
            results.append(np.stack(made[::way]))
            last.append(state)
        y, (y_h, y_c) = np.stack(results, axis=1), (np.stack(states) for states in zip(*last, strict=True))
        if batch_first:
            y, y_h, y_c = y.transpose(2, 0, 1, 3), y_h.swapaxes(0, 1), y_c.swapaxes(0, 1)
        return [y, y_h, y_c] if kind == "LSTM" else [y, y_h]

    return function


def _has(array):
    return array is not None and array.size > 0


#: By operator: a function of its attributes, as they are in the model, and of the arrays of its inputs.
RECURRENT = {kind: _recurrent(kind) for kind in _CELLS}
