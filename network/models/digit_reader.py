"""A reader of written digits: an encoder with attention, for the digits that come with scikit-learn.

It was trained by ``tilewright.tools.network.digit_training``; the quantised model is stored in ``digit_reader.onnx``.
"""

import gzip
from importlib.metadata import distribution
from importlib.resources import files

import numpy as np
import onnx

__all__ = ["COUNT", "MODEL", "TOKENS", "TRAINED", "draw_digits", "load_model", "prepare_digits", "written_digits"]

MODEL = "digit_reader.onnx"
#: Digits that the model reads at once; patches of 2 × 2 pixels of a digit.
COUNT, TOKENS = 16, 16
#: Of the 1797 digits, the first ones are those that the model was trained on.
TRAINED = 1400
_DIGITS = "sklearn/datasets/data/digits.csv.gz"
_SIDE, _LARGEST, _ZOOM, _COLUMNS = 8, 16, 8, 8


def load_model(count=COUNT):
    """The model that reads ``count`` digits at once.

    Its input is float32 [count, 16, 4], digits as :func:`prepare_digits` makes them, its output [count, 10].
    """
    model = onnx.load_from_string(files(__package__).joinpath(MODEL).read_bytes())
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = count
    for constant in model.graph.initializer:
        if constant.data_type == onnx.TensorProto.INT64:  # a shape: its first number counts digits, or their patches
            shape = onnx.numpy_helper.to_array(constant).copy()
            shape[0] = shape[0] * count // COUNT
            constant.CopyFrom(onnx.numpy_helper.from_array(shape, constant.name))
    return model


def written_digits(first=TRAINED, count=COUNT):
    """Digits as pixels, float64 [count, 8, 8] from 0 to 16, and what they are."""
    with gzip.open(distribution("scikit-learn").locate_file(_DIGITS), "rt") as lines:
        digits = np.loadtxt(lines, delimiter=",")[first : first + count]
    return digits[:, :-1].reshape(-1, _SIDE, _SIDE), digits[:, -1].astype(int)


def prepare_digits(pixels):
    """The input of the model for digits [n, 8, 8]: patches [n, 16, 4] of numbers from -1 to 1."""
    half = _SIDE // 2
    patches = np.asarray(pixels).reshape(-1, half, 2, half, 2).transpose(0, 1, 3, 2, 4)
    return (patches.reshape(-1, TOKENS, 4) / (_LARGEST / 2) - 1).astype(np.float32)


def draw_digits(pixels):
    """All digits as one picture, uint8 [height, width, 3], eight in a row."""
    grey = np.rint(np.asarray(pixels) * (255 / _LARGEST)).astype(np.uint8)
    large = np.kron(grey, np.ones((1, _ZOOM, _ZOOM), np.uint8))
    rows = [np.concatenate(list(large[first : first + _COLUMNS]), axis=1) for first in range(0, len(large), _COLUMNS)]
    return np.repeat(np.concatenate(rows)[:, :, np.newaxis], 3, axis=2)
