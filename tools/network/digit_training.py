"""Trains the reader of digits of ``network/models/digit_reader.py``, and writes its quantised model beside it.

It needs JAX, which nothing else needs, and a few minutes of a core::

    pip install jax==0.10.2
    python -m tilewright.tools.network.digit_training

All random numbers have one seed, but sums of floats depend on the processor, so the model is stored.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime

from tilewright.network.models import digit_reader
from tilewright.network.models.digit_reader import COUNT, MODEL, TOKENS, TRAINED, prepare_digits, written_digits
from tilewright.network.models.quantiser import FloatModel, quantised

from .adam import fit

__all__ = ["build", "main", "network", "train", "validate"]

_SEED = 5
_STEPS, _BATCH, _RATE, _DECAY = 2500, 64, 2e-3, 2e-2
_WIDE, _HEADS, _INNER, _LAYERS, _CLASSES = 64, 4, 128, 2, 10
_ALL = 1797  # digits
_SAMPLES = 20  # batches for calibration
_EPSILON = 1e-5


class _Jax:
    """Operators on arrays [digits, tokens, channels]."""

    def __init__(self, weights):
        self._weights = iter(weights)

    def product(self, x, columns):
        weight, bias = next(self._weights)
        return x @ weight + bias

    def places(self, x):
        return x + next(self._weights)[0]

    def norm(self, x):
        gain, shift = next(self._weights)
        mean = x.mean(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + _EPSILON) * gain + shift

    def heads(self, x, order):
        return x.reshape(-1, TOKENS, _HEADS, _WIDE // _HEADS).transpose(order)

    def attend(self, q, k, v):
        shares = jax.nn.softmax(q @ k / jnp.sqrt(_WIDE // _HEADS), axis=-1)
        return (shares @ v).transpose(0, 2, 1, 3).reshape(-1, TOKENS, _WIDE)

    def gelu(self, x):
        return jax.nn.gelu(x, approximate=False)

    def add(self, x, y):
        return x + y

    def mean(self, x):
        return x.mean(1)


class _Initial(_Jax):
    """Draws the weights of the network."""

    def __init__(self, rng):
        self._rng, self.drawn = rng, []

    def _draw(self, *arrays):
        self.drawn.append(tuple(np.asarray(each, np.float32) for each in arrays))
        self._weights = iter(self.drawn[-1:])

    def product(self, x, columns):
        depth = x.shape[-1]
        self._draw(self._rng.normal(0, depth**-0.5, (depth, columns)), np.zeros(columns))
        return super().product(x, columns)

    def places(self, x):
        self._draw(self._rng.normal(0, 0.1, x.shape[1:]))
        return super().places(x)

    def norm(self, x):
        self._draw(np.ones(x.shape[-1]), np.zeros(x.shape[-1]))
        return super().norm(x)


class _Onnx:
    """The same operators as nodes of a model."""

    def __init__(self, net, weights):
        self._net, self._weights = net, iter(weights)

    def _constants(self):
        return [self._net.constant(np.asarray(each), np.float32) for each in next(self._weights)]

    def product(self, x, columns):
        weight, bias = self._constants()
        return self._net.node("Add", self._net.node("MatMul", x, weight), bias)

    def places(self, x):
        return self._net.node("Add", x, *self._constants())

    def norm(self, x):
        return self._net.node("LayerNormalization", x, *self._constants(), axis=-1, epsilon=_EPSILON)

    def heads(self, x, order):
        shape = self._net.constant((COUNT, TOKENS, _HEADS, _WIDE // _HEADS), np.int64)
        return self._net.node("Transpose", self._net.node("Reshape", x, shape), perm=list(order))

    def attend(self, q, k, v):
        scale = self._net.constant((_WIDE // _HEADS) ** -0.5, np.float32)
        scores = self._net.node("Mul", self._net.node("MatMul", q, k), scale)
        y = self._net.node("MatMul", self._net.node("Softmax", scores, axis=-1), v)
        shape = self._net.constant((COUNT, TOKENS, _WIDE), np.int64)
        return self._net.node("Reshape", self._net.node("Transpose", y, perm=[0, 2, 1, 3]), shape)

    def gelu(self, x):
        erf = self._net.node("Erf", self._net.node("Div", x, self._net.constant(2**0.5, np.float32)))
        half = self._net.node("Mul", x, self._net.constant(0.5, np.float32))
        return self._net.node("Mul", half, self._net.node("Add", erf, self._net.constant(1, np.float32)))

    def add(self, x, y):
        return self._net.node("Add", x, y)

    def mean(self, x):
        return self._net.node("ReduceMean", x, axes=[1], keepdims=0)


def network(on, x):
    """The reader, by the operators of ``on``."""
    x = on.places(on.product(x, _WIDE))
    for _ in range(_LAYERS):
        y = on.norm(x)
        q, k, v = (on.heads(on.product(y, _WIDE), order) for order in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
        x = on.add(on.product(on.attend(q, k, v), _WIDE), x)
        x = on.add(on.product(on.gelu(on.product(on.norm(x), _INNER)), _WIDE), x)
    return on.product(on.mean(on.norm(x)), _CLASSES)


def build(weights):
    """The quantised model, calibrated on digits that it was trained on."""
    net = FloatModel(None, (COUNT, TOKENS, 4))
    model = net.model(network(_Onnx(net, weights), "x"))
    samples = [{"x": prepare_digits(written_digits(COUNT * number)[0])} for number in range(_SAMPLES)]
    model = quantised(model, samples, form="QDQ")
    del model.graph.value_info[:]
    return model


def train():
    """The weights, in the order of their use."""
    rng = np.random.default_rng(_SEED)
    pixels, targets = written_digits(0, TRAINED)
    initial = _Initial(rng)
    network(initial, prepare_digits(pixels[:_BATCH]))

    def draw():
        chosen = rng.integers(0, TRAINED, _BATCH)
        moved = np.stack([np.roll(pixels[each], rng.integers(-1, 2, 2), (0, 1)) for each in chosen])
        return prepare_digits(moved), targets[chosen]

    return fit(lambda weights, x: network(_Jax(weights), x), initial.drawn, draw, steps=_STEPS, rate=_RATE,
               decay=_DECAY)  # fmt: skip


def validate(model):
    """Digits that the model was not trained on, and how many of them it reads rightly."""
    session, right, count = onnxruntime.InferenceSession(model.SerializeToString()), 0, 0
    for first in range(TRAINED, _ALL - COUNT + 1, COUNT):
        pixels, targets = written_digits(first)
        answers = session.run(None, {"x": prepare_digits(pixels)})[0].argmax(axis=1)
        right, count = right + int((answers == targets).sum()), count + COUNT
    return count, right


def main():
    """Trains, and writes the model."""
    model = build(train())
    print("{} other digits, {} read rightly".format(*validate(model)))
    onnx.save(model, Path(digit_reader.__file__).with_name(MODEL))


if __name__ == "__main__":
    main()
