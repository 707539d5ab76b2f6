"""LSTM, GRU and RNN of integers, which the engines compute (docs/network.md, "Recurrent layers").

What they do not, other functions for example, the host computes at the end of a network (``recurrent.py``).
"""

from dataclasses import replace
from math import prod

import numpy as np

from ..attributes import Concat, Recurrent, Reshape, Take
from ..recurrence import PHASES
from .host import on_host
from .operator import Constant, reads

__all__ = []

_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
_FUNCTIONS = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh"), "RNN": ("Tanh",)}
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
#: Sums up to this are far from infinite.
_LARGEST = 1e30


@reads("GRU", "LSTM", "RNN")
def _recurrent(op, reading):
    """X, W, R, B, sequence_lens, initial_h, initial_c, P: outputs are all states, the last ones, and cells."""
    real, made = op.real(0), {}
    shape = reading.shape(real.name)
    op.refuse_if(len(shape) != 3, f"its input is {list(shape)}, which has not three dimensions")
    (steps, batch, inputs), layers = shape, _layers(op, *shape, real.quantity)

    def states(y, clamp):
        """Names of the states of each direction, [steps · batch, hidden]."""
        if (y, clamp) not in made:
            rows, made[y, clamp] = reading.fresh(f"{op.outputs[0]}.rows"), []
            shape = steps * batch, inputs
            reading.emit(op, (real.name,), rows, Reshape(shape), shape, real.quantity.dtype)
            for layer in layers:
                made[y, clamp].append(reading.fresh(f"{op.outputs[0]}.states"))
                node = replace(layer, y_scale=y.scale, y_zero=y.zero, minimum=clamp[0], maximum=clamp[1])
                reading.emit(op, (rows,), made[y, clamp][-1], node, (steps * batch, layer.hidden.shape[1]), y.dtype)
        return made[y, clamp]

    def joined(parts, output, axis, shape, y):
        """Adds nodes that join tensors of the directions, each of ``shape``, whose dimension ``axis`` is 1."""
        names = [reading.fresh(f"{output}.{number}") for number in range(len(parts))] if len(parts) > 1 else [output]
        for part, name in zip(parts, names, strict=True):
            reading.emit(op, (part,), name, Reshape(shape), shape, y.dtype)
        if len(parts) > 1:
            whole = *shape[:axis], len(parts), *shape[axis + 1 :]
            reading.emit(op, names, output, Concat(axis, (None,) * len(parts)), whole, y.dtype)

    def all_states(output, y, clamp):
        names = states(y, clamp)
        joined(names, output, 1, (steps, 1, batch, reading.shape(names[0])[1]), y)

    def last_states(output, y, clamp):
        parts = []
        for layer, name in zip(layers, states(y, clamp), strict=True):
            parts.append(reading.fresh(f"{output}.last"))
            first, shape = 0 if layer.reverse else (steps - 1) * batch, layer.hidden.shape
            indices = np.arange(first, first + batch), np.arange(shape[1])
            reading.emit(op, (name,), parts[-1], Take(indices), shape, y.dtype)
        joined(parts, output, 0, (1, *shape), y)

    op.refuse_if(not on_host(op, reading), "its inputs or attributes do not fit")
    for name, finish in zip(op.proto.output, (all_states, last_states), strict=False):
        if name:
            reading.values[name] = replace(reading.values[name], finish=finish)


def _layers(op, steps, batch, inputs, x):
    """A :class:`Recurrent` for each direction of inputs of Quantity ``x``, without the quantity of the results."""
    gates, functions = _GATES[op.kind], _FUNCTIONS[op.kind]
    direction = op.take("direction", "forward", str)
    op.refuse_if(direction not in _DIRECTIONS, f"its direction is {direction!r}")
    ways, after, clip = _DIRECTIONS[direction], bool(op.take("linear_before_reset", 0)), op.take("clip", None, float)
    names = tuple(name.decode() for name in op.take("activations", (), bytes)) or functions * len(ways)
    for condition, what in (
        (names != functions * len(ways), f"functions {', '.join(names)} are"),
        (op.take("input_forget", 0) != 0, "an input_forget is"),
        (op.take("layout", 0) != 0, "a layout with the batch first is"),
        (op.has(7), "weights of peepholes are"),
        (op.kind == "GRU" and clip is not None, "a GRU with a clip is"),
        (op.has(4) and (op.constant(4, "lengths").array != steps).any(), "sequences of different lengths are"),
    ):
        op.refuse_if(condition, f"{what} supported only at the end of a network")
    op.take("hidden_size", 0)
    for name in ("activation_alpha", "activation_beta"):
        op.take(name, (), float)
    hidden = op.shape_of(op.value(2))[-1:]
    op.refuse_if(not hidden, f"its input {op.input_name(2)!r} has no dimensions")
    states = batch, *hidden
    sizes = {1: (gates * hidden[0], inputs), 2: (gates * hidden[0], *hidden), 3: (2, gates, *hidden), 5: states,
             6: states}  # fmt: skip
    arrays = {index: _numbers(op, index, (len(ways), *size)) for index, size in sizes.items()}
    key, layers = (op.kind, op.kind == "GRU" and after), []
    for way, reverse in enumerate(ways):
        w, r, b, h, c = (arrays[index][way] for index in sizes)
        largest = np.abs(w).sum(axis=1, dtype=float).max() * 255 * x.scale + 2 * np.abs(b).max()
        largest += np.abs(r).sum(axis=1, dtype=float).max() * max(1, np.abs(h).max()) + np.abs(c).max()
        op.refuse_if(not largest < _LARGEST, "sums of more than 10³⁰ are supported only at the end of a network")
        numbers = b.reshape(-1, *hidden)
        bias = tuple(np.stack([np.add.reduce(numbers[list(own)]) for own in phase.biases]) for phase in PHASES[key])
        layers.append(Recurrent(
            cells=op.kind, after=key[1], x_scale=x.scale, x_zero=x.zero, weight=w, recurrence=r, bias=bias, hidden=h,
            cell=c, reverse=reverse, clip=None if clip is None else np.float32(clip), y_scale=np.float32(1), y_zero=0,
            minimum=0, maximum=0,
        ))  # fmt: skip
    return layers


def _numbers(op, index, shape):
    """A constant of float32 with the elements of ``shape``; zeros if the input is left out."""
    if not op.has(index):
        return np.zeros(shape, np.float32)
    value, name = op.value(index), op.input_name(index)
    op.refuse_if(not isinstance(value, Constant), f"its input {name!r} is computed, and only a constant is supported")
    array = value.meaning
    op.refuse_if(array.dtype != np.float32, f"its input {name!r} is {array.dtype}, not float32")
    op.refuse_if((array.size, array.shape[:1]) != (prod(shape), shape[:1]),
                 f"its input {name!r} is {list(array.shape)}, which does not fit")  # fmt: skip
    return array.reshape(shape)
