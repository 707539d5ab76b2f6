"""Trains the face detector of ``network/models/face_detector.py``, and writes its quantised model beside it.

It needs JAX, which nothing else needs, and about twenty minutes of two cores::

    pip install jax==0.10.2
    python -m tilewright.tools.network.face_training

Of the 100 faces 80 are for training and 20 for validation. All random numbers have one seed, but sums of floats depend
on the processor, so the model is stored.
"""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime

from tilewright.network.models import face_detector
from tilewright.network.models.face_detector import MODEL, Face, find_faces, overlap
from tilewright.network.models.photographs import SIZE
from tilewright.network.models.quantiser import FloatModel, quantised

from .adam import adam, no_state
from .face_scenes import Scenes, load_sources

__all__ = ["build", "main", "network", "train", "validate"]

_SEED = 20
_STEPS, _BATCH, _RATE, _DECAY = 3000, 16, 2e-3, 2e-2
_VALIDATION = 20  # faces
_SAMPLES = 24  # scenes for calibration
#: Channels before, in and after a block, its kernel and stride.
_BLOCKS = ((16, 16, 24, 3, 2), (24, 72, 24, 3, 1), (24, 72, 40, 3, 2), (40, 120, 40, 5, 1), (40, 120, 40, 5, 1))
_STEM, _SQUEEZE, _HEAD = 16, 4, 64  # channels; channels of a block by those of its excitation; channels


def _windows(x, kernel, stride):
    """Views of x for each tap of a kernel, padded by half of the kernel."""
    half, (_, height, width, _) = kernel // 2, x.shape
    x = jnp.pad(x, ((0, 0), (half, half), (half, half), (0, 0)))
    return [x[:, row : row + height : stride, column : column + width : stride]
            for row in range(kernel) for column in range(kernel)]  # fmt: skip


class _Jax:
    """Operators on arrays, [n, rows, columns, channels]."""

    def __init__(self, weights):
        self._weights = iter(weights)

    def conv(self, x, outputs, kernel=1, stride=1, depthwise=False):
        weight, bias = next(self._weights)
        taps = _windows(x, kernel, stride) if kernel > 1 else [x]
        if depthwise:
            return sum(tap * each for tap, each in zip(taps, weight, strict=True)) + bias
        return jnp.concatenate(taps, -1) @ weight + bias

    silu = staticmethod(jax.nn.silu)
    sigmoid = staticmethod(jax.nn.sigmoid)
    mean = staticmethod(partial(jnp.mean, axis=(1, 2), keepdims=True))
    multiply = staticmethod(jnp.multiply)
    add = staticmethod(jnp.add)


class _Initial(_Jax):
    """Draws the weights of the network so that each convolution of a batch has a spread of 1."""

    def __init__(self, rng):
        self._rng, self.drawn = rng, []

    def conv(self, x, outputs, kernel=1, stride=1, depthwise=False):
        shape = (kernel**2, x.shape[-1]) if depthwise else (kernel**2 * x.shape[-1], outputs)
        weight = self._rng.normal(0, 1, shape).astype(np.float32)
        self._weights = iter([(weight, 0)])
        y = super().conv(x, outputs, kernel, stride, depthwise)
        weight, bias = weight / (np.asarray(y).std() + 1e-3), np.zeros(outputs, np.float32)
        self.drawn.append((weight, bias))
        self._weights = iter(self.drawn[-1:])
        return super().conv(x, outputs, kernel, stride, depthwise)


class _Onnx:
    """The same operators as nodes of a model, with weights [outputs, inputs, rows, columns]."""

    def __init__(self, net, weights):
        self._net, self._weights = net, iter(weights)

    def conv(self, x, outputs, kernel=1, stride=1, depthwise=False):
        weight, bias = (np.asarray(each) for each in next(self._weights))
        weight = weight.reshape(kernel, kernel, -1, 1 if depthwise else outputs)
        constants = [self._net.constant(each, np.float32)
                     for each in (weight.transpose((2, 3, 0, 1) if depthwise else (3, 2, 0, 1)), bias)]  # fmt: skip
        return self._net.node("Conv", x, *constants, group=outputs if depthwise else 1, strides=[stride] * 2,
                              pads=[kernel // 2] * 4)  # fmt: skip

    def silu(self, x):
        return self._net.node("Mul", x, self._net.node("Sigmoid", x))

    def sigmoid(self, x):
        return self._net.node("Sigmoid", x)

    def mean(self, x):
        return self._net.node("GlobalAveragePool", x)

    def multiply(self, x, y):
        return self._net.node("Mul", x, y)

    def add(self, x, y):
        return self._net.node("Add", x, y)


def network(on, x):
    """The detector, by the operators of ``on``."""
    x = on.silu(on.conv(x, _STEM, 3, 2))
    for before, inside, after, kernel, stride in _BLOCKS:
        y = x if inside == before else on.silu(on.conv(x, inside))
        y = on.silu(on.conv(y, inside, kernel, stride, depthwise=True))
        excitation = on.silu(on.conv(on.mean(y), inside // _SQUEEZE))
        y = on.multiply(y, on.sigmoid(on.conv(excitation, inside)))
        y = on.conv(y, after)
        x = on.add(y, x) if stride == 1 and before == after else y
    return on.conv(on.silu(on.conv(x, _HEAD)), 4)


def build(weights, scenes):
    """The quantised model, calibrated on scenes; without the sizes of tensors, which follow from the input."""
    net = FloatModel(None, (1, 1, SIZE, SIZE))
    model = net.model(network(_Onnx(net, weights), "x"))
    model = quantised(model, [{"x": scenes.draw()[0][np.newaxis, np.newaxis]} for _ in range(_SAMPLES)])
    del model.graph.value_info[:]
    return model


def _loss(weights, pixels, targets):
    y = network(_Jax(weights), pixels)
    face, weight, boxes = targets[..., 0], targets[..., 1], targets[..., 2:]
    right = jnp.where(face > 0, y[..., 0], -y[..., 0])
    count = face.sum() + 1
    scores = (-weight * jax.nn.log_sigmoid(right) * (1 - jax.nn.sigmoid(right)) ** 2).sum() / count
    return scores + 0.2 * (face[..., jnp.newaxis] * jnp.abs(y[..., 1:] - boxes)).sum() / count


@jax.jit
def _step(weights, state, pixels, targets, number):
    """A step of Adam with decay, at a rate that rises for a twentieth of all steps and then falls as a cosine."""
    loss, slopes = jax.value_and_grad(_loss)(weights, pixels, targets)
    part = number / _STEPS
    rate = _RATE * jnp.minimum(part * 20, 0.5 + 0.5 * jnp.cos(jnp.pi * part))
    norm = jnp.sqrt(sum((slope**2).sum() for slope in jax.tree.leaves(slopes)))
    slopes = jax.tree.map(lambda slope: slope * jnp.minimum(1, 2 / norm), slopes)
    return *adam(weights, state, slopes, rate, _DECAY, number), loss


def train(scenes):
    """The weights of the convolutions, in their order."""
    initial = _Initial(np.random.default_rng(_SEED))
    network(initial, scenes.batch(_BATCH)[0])
    weights = initial.drawn
    state = no_state(weights)
    for number in range(_STEPS):
        weights, state, loss = _step(weights, state, *scenes.batch(_BATCH), number)
        if number % 100 == 0:
            print(f"step {number}: loss {loss:.3f}", flush=True)
    return weights


def validate(model, scenes):
    """Counts over 100 scenes: faces, faces that are found (boxes overlap by 0.4), and boxes without a face."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    faces = hits = boxes = 0
    for _ in range(100):
        pixels, there = scenes.draw()
        found = find_faces(session.run(None, {"x": pixels[np.newaxis, np.newaxis]})[0])
        faces, boxes = faces + len(there), boxes + len(found)
        for y, x, size in there:
            face = Face(x - size / 2, y - size / 2, x + size / 2, y + size / 2, 1)
            hits += any(overlap(face, each) > 0.4 for each in found)
    return faces, hits, boxes - hits


def main():
    """Trains, and writes the model."""
    faces, photographs = load_sources()
    faces = np.random.default_rng(_SEED).permutation(faces)
    theirs, ours = faces[:_VALIDATION], faces[_VALIDATION:]
    weights = train(Scenes(np.random.default_rng(_SEED), ours, photographs))
    model = build(weights, Scenes(np.random.default_rng(_SEED + 1), ours, photographs, SIZE))
    counts = validate(model, Scenes(np.random.default_rng(_SEED + 2), theirs, photographs, SIZE))
    print("100 scenes: {} faces, {} found, {} boxes without a face".format(*counts))
    onnx.save(model, Path(face_detector.__file__).with_name(MODEL))


if __name__ == "__main__":
    main()
