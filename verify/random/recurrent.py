"""LSTM, GRU and RNN, for random networks."""

import math

import numpy as np

__all__ = ["draw_recurrent"]

_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
#: Most rows, and elements of a row: the golden core computes a step for each row.
_ROWS, _LONGEST = 24, 48


def draw_recurrent(net):
    """A layer of the rows of a tensor, those of one batch or two: all its states, or the last one."""
    x, rng = net.pick(), net.rng
    rows, inputs = math.prod(x.shape[:-1]), x.shape[-1]
    if rows > _ROWS or inputs > _LONGEST:
        return
    batch = 1 + int(rows % 2 == 0 and rng.integers(0, 2))
    steps = rows // batch
    shape = steps, batch, inputs
    net.add("Reshape", [x.name, net.constant(shape, np.int64)], shape, x.scale, x.zero)
    kind, direction = str(rng.choice([*_GATES])), str(rng.choice([*_DIRECTIONS]))
    ways, gates, hidden = _DIRECTIONS[direction], _GATES[kind], int(rng.integers(1, 21))

    def numbers(*shape):
        return rng.uniform(-1, 1, (ways, *shape)).astype(np.float32)

    weights = [numbers(gates * hidden, size) * np.float32(1.5 / size**0.5) for size in (inputs, hidden)]
    weights[0] /= np.float32(max(50 * x.scale, 1e-3))  # products with all bytes are about as large as those of states
    bias = numbers(2 * gates * hidden) if rng.random() < 0.8 else ""
    lengths = np.full(batch, steps, np.int32) if rng.random() < 0.3 else ""
    states = [numbers(batch, hidden) if rng.random() < 0.5 else "" for _ in range(1 + (kind == "LSTM"))]
    attributes = {"linear_before_reset": int(rng.integers(0, 2))} if kind == "GRU" else {}
    if kind != "GRU" and rng.random() < 0.2:
        attributes["clip"] = 0.7
    last = int(rng.integers(0, 2))
    shape = (ways, batch, hidden) if last else (steps, ways, batch, hidden)
    net.add_floats(kind, [net.tensors[-1]], [*weights, bias, lengths, *states], shape, net.scale(0.01), net.zero(),
                   last, hidden_size=hidden, direction=direction, **attributes)  # fmt: skip
