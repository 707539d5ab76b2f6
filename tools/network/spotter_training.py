"""Trains the spotter of keywords of ``network/models/keyword_spotter.py``, and writes its quantised model beside it.

It needs JAX, which nothing else needs, and a few minutes of a core::

    pip install jax==0.10.2
    python -m tilewright.tools.network.spotter_training

All random numbers have one seed, but sums of floats depend on the processor, so the model is stored.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime

from tilewright.network.models import keyword_spotter
from tilewright.network.models.keyword_spotter import BANDS, COUNT, FRAMES, MODEL, TRAINED, prepare_words, spoken_words
from tilewright.network.models.quantiser import FloatModel, quantised
from tilewright.network.models.speech import WORDS

from .adam import fit

__all__ = ["build", "main", "network", "train", "validate"]

_SEED = 7
_STEPS, _BATCH, _RATE, _DECAY = 1500, 64, 3e-3, 2e-2
_CHANNELS, _HIDDEN = 24, 32
_KERNEL, _STRIDE = 5, 3  # frames; a step of the GRU is a stride of the convolution
_SAMPLES = 40  # batches for calibration
_OTHERS = 1024  # words of speakers that the model was not trained on


def _initial(rng):
    """Weights by name."""

    def drawn(*shape):
        return rng.normal(0, np.prod(shape[1:]) ** -0.5, shape).astype(np.float32)

    return {
        "conv": drawn(_CHANNELS, BANDS, _KERNEL), "conv_bias": np.zeros(_CHANNELS, np.float32),
        "gates": drawn(1, 3 * _HIDDEN, _CHANNELS), "recurrence": drawn(1, 3 * _HIDDEN, _HIDDEN),
        "gates_bias": np.zeros((1, 6 * _HIDDEN), np.float32),
        "classes": drawn(len(WORDS), _HIDDEN), "classes_bias": np.zeros(len(WORDS), np.float32),
    }  # fmt: skip


def network(weights, x):
    """The scores of words, [n, 8], of inputs [n, 24, 48]."""
    w = weights
    x = jax.lax.conv_general_dilated(x, w["conv"], (_STRIDE,), [(1, 1)]) + w["conv_bias"][:, None]
    x = jax.nn.relu(x).transpose(2, 0, 1)
    bias, more = w["gates_bias"].reshape(2, -1)

    def step(h, gates):
        z, r, n = jnp.split(gates, 3, axis=-1)
        own = jnp.split(h @ w["recurrence"][0].T + more, 3, axis=-1)
        z, r = jax.nn.sigmoid(z + own[0]), jax.nn.sigmoid(r + own[1])
        n = jnp.tanh(n + r * own[2])
        return n + z * (h - n), None

    h, _ = jax.lax.scan(step, jnp.zeros((x.shape[1], _HIDDEN)), x @ w["gates"][0].T + bias)
    return h @ w["classes"].T + w["classes_bias"]


def build(weights, samples):
    """The model of floats, and the quantised one, calibrated on ``samples``, inputs of words."""
    net = FloatModel(None, (COUNT, BANDS, FRAMES))
    w = {name: net.constant(each, np.float32) for name, each in weights.items()}
    y = net.node("Conv", "x", w["conv"], w["conv_bias"], strides=[_STRIDE], pads=[1, 1])
    y = net.node("Transpose", net.node("Relu", y), perm=[2, 0, 1])
    y = net.node(
        "GRU", y, w["gates"], w["recurrence"], w["gates_bias"], outputs=2, hidden_size=_HIDDEN, linear_before_reset=1
    )
    y = net.node("Squeeze", f"{y}.1", net.constant([0], np.int64))
    floats = net.model(net.node("Gemm", y, w["classes"], w["classes_bias"], transB=1))
    model = quantised(floats, [{"x": each} for each in samples.reshape(_SAMPLES, COUNT, BANDS, FRAMES)], form="QDQ")
    del model.graph.value_info[:]
    return floats, model


def train(inputs, targets):
    """The weights, by name, after training on words and their classes."""
    rng = np.random.default_rng(_SEED)

    def draw():
        chosen = rng.integers(0, len(inputs), _BATCH)
        return inputs[chosen], targets[chosen]

    return fit(network, _initial(rng), draw, steps=_STEPS, rate=_RATE, decay=_DECAY)


def validate(model, inputs, targets):
    """The share of words that a model hears rightly."""
    session, right = onnxruntime.InferenceSession(model.SerializeToString()), 0
    for first in range(0, len(inputs), COUNT):
        some = slice(first, first + COUNT)
        right += int((session.run(None, {"x": inputs[some]})[0].argmax(axis=1) == targets[some]).sum())
    return right / len(inputs)


def main():
    """Trains, and writes the model."""
    (inputs, targets), (others, answers) = (
        (prepare_words(sounds), classes)
        for sounds, classes in (spoken_words(0, TRAINED), spoken_words(TRAINED, _OTHERS))
    )
    floats, model = build(train(inputs, targets), inputs[: _SAMPLES * COUNT])
    for each, name in ((floats, "floats"), (model, "quantised")):
        print(f"{name}: of {_OTHERS} words of other speakers {validate(each, others, answers):.1%} are heard rightly")
    onnx.save(model, Path(keyword_spotter.__file__).with_name(MODEL))


if __name__ == "__main__":
    main()
