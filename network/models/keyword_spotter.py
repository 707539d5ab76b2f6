"""A spotter of keywords: a convolution over time, a GRU and a product, for words of ``speech.py``.

It was trained by ``tilewright.tools.network.spotter_training``; the quantised model is in ``keyword_spotter.onnx``.
"""

from importlib.resources import files

import numpy as np
import onnx

from .speech import LENGTH, RATE, WORDS, speak

__all__ = ["BANDS", "COUNT", "FRAMES", "MODEL", "TRAINED", "draw_words", "load_model", "prepare_words", "spoken_words"]

MODEL = "keyword_spotter.onnx"
#: Words that the model hears at once; bands of frequencies and frames of a word.
COUNT, BANDS, FRAMES = 8, 24, 48
#: Each word has a number, and with it a speaker: the model was trained on those below this one.
TRAINED = 4000
_SEED = 11
_WINDOW, _POINTS, _LOWEST = 400, 512, 100.0  # samples, and Hz
_FLOOR, _SPREAD = 1e-6, 4.0
_ZOOM, _COLUMNS = 4, 4


def load_model(count=COUNT):
    """The model that hears ``count`` words at once.

    Its input is float32 [count, 24, 48], words as :func:`prepare_words` makes them, its output [count, 8].
    """
    model = onnx.load_from_string(files(__package__).joinpath(MODEL).read_bytes())
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = count
    return model


def spoken_words(first=TRAINED, count=COUNT):
    """Words as sound, float64 [count, 16000] from -1 to 1, 16,000 samples a second, and which of ``WORDS`` they are."""
    numbers = range(first, first + count)
    classes = np.array([_order(number // len(WORDS))[number % len(WORDS)] for number in numbers])
    speakers = [np.random.default_rng([_SEED, number]) for number in numbers]
    return np.stack([speak(WORDS[each], rng) for each, rng in zip(classes, speakers, strict=True)]), classes


def _order(block):
    """The order of all words in a block of numbers."""
    return np.random.default_rng([_SEED, block, 1]).permutation(len(WORDS))


def prepare_words(sounds):
    """The input of the model for sounds [n, 16000]: [n, 24, 48], logarithms of energies less their mean for a word."""
    hop = LENGTH // FRAMES
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(sounds, [(0, 0), (0, _WINDOW)]), _WINDOW, axis=1)
    frames = frames[:, : FRAMES * hop : hop] * np.hanning(_WINDOW)
    energies = np.log(np.abs(np.fft.rfft(frames, _POINTS)) ** 2 @ _bands().T + _FLOOR)
    energies -= energies.mean(axis=(1, 2), keepdims=True)
    return (energies.transpose(0, 2, 1) / _SPREAD).astype(np.float32)


def _bands():
    """Triangles at equal distances on the mel scale, [24, frequencies]."""
    mels = np.linspace(*(np.log1p(hertz / 700) for hertz in (_LOWEST, RATE / 2)), BANDS + 2)
    edges, frequencies = 700 * np.expm1(mels)[:, np.newaxis], np.fft.rfftfreq(_POINTS, 1 / RATE)
    rise = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    return np.minimum(rise, fall).clip(0)


def draw_words(inputs):
    """Inputs of the model as one picture, uint8 [height, width, 3], four in a row; high frequencies are at the top."""
    low, high = inputs.min(), inputs.max()
    grey = np.rint((inputs[:, ::-1] - low) / (high - low) * 255).astype(np.uint8)
    large = np.pad(np.kron(grey, np.ones((1, _ZOOM, _ZOOM), np.uint8)), [(0, 0), (0, _ZOOM), (0, _ZOOM)])
    rows = [np.concatenate(list(large[first : first + _COLUMNS]), axis=1) for first in range(0, len(large), _COLUMNS)]
    return np.repeat(np.concatenate(rows)[:, :, np.newaxis], 3, axis=2)
