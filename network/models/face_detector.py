"""A detector of faces: blocks of depthwise convolutions with SiLU and squeeze-and-excitation, and boxes of its answer.

It was trained by ``tilewright.tools.network.face_training``; the quantised model is stored in ``face_detector.onnx``.
"""

from importlib.resources import files
from typing import NamedTuple

import numpy as np
import onnx
from PIL import Image, ImageDraw

from ..graph import ModelError
from .efficientnet import SIZE

__all__ = ["CELL", "FACE", "MODEL", "STEP", "Face", "draw_faces", "find_faces", "load_model", "overlap", "prepare_grey"]

MODEL = "face_detector.onnx"
#: Pixels of a cell, in each direction; the model answers with four numbers for each.
CELL = 8
#: Pixels of a face for which the third number is 0.
FACE = 48
#: What a number of a box is divided by, so that all four are about equally large.
STEP = 4
_LEAST = 0.65  # score; chosen on scenes for validation
_OVERLAP = 0.3  # of two boxes, by area, of which the better one is kept
_FRAME = (255, 220, 0)


class Face(NamedTuple):
    """A box in pixels, and how sure the detector is, 0 to 1."""

    left: float
    top: float
    right: float
    bottom: float
    score: float


def load_model(height=SIZE, width=SIZE):
    """The model for photographs of a size, of multiples of CELL.

    Its input is float32 [1, 1, height, width], its output [1, 4, height / CELL, width / CELL]: see
    :func:`prepare_grey` and :func:`find_faces`.
    """
    if min(height, width) < CELL or height % CELL or width % CELL:
        raise ModelError(f"height and width must be multiples of {CELL}, not {height} and {width}")
    model = onnx.load_from_string(files(__package__).joinpath(MODEL).read_bytes())
    for value, sides in (
        (model.graph.input[0], (height, width)),
        (model.graph.output[0], (height // CELL, width // CELL)),
    ):
        for dim, side in zip(value.type.tensor_type.shape.dim[2:], sides, strict=True):
            dim.dim_value = side
    return model


def prepare_grey(pixels):
    """The input of the model for a photograph [height, width, 3]: its grey as (pixel - 127) / 128."""
    grey = np.asarray(Image.fromarray(pixels).convert("L"), np.float32)
    return ((grey - 127) / 128)[np.newaxis, np.newaxis]


def find_faces(answer):
    """A list of Face for an answer, float32 [1, 4, rows, columns]: the best first, without boxes that overlap a better.

    The numbers of a cell are the logarithm of the odds that a face has its centre there; the distance of the centre
    from the cell's, in cells down and to the right; and the logarithm of the face's size in FACE pixels. The
    last three are multiplied by STEP.
    """
    odds, down, right, size = answer[0].astype(np.float64)
    scores, faces = 1 / (1 + np.exp(-odds)), []
    for row, column in zip(*np.nonzero(scores >= _LEAST), strict=True):
        y = CELL * (row + 0.5 + down[row, column] / STEP)
        x = CELL * (column + 0.5 + right[row, column] / STEP)
        half = FACE / 2 * np.exp(size[row, column] / STEP)
        faces.append(Face(x - half, y - half, x + half, y + half, scores[row, column]))
    kept = []
    for face in sorted(faces, key=lambda face: -face.score):
        if all(overlap(face, other) < _OVERLAP for other in kept):
            kept.append(face)
    return kept


def overlap(one, other):
    """The area that two boxes share, by the area that they cover together."""
    height = min(one.bottom, other.bottom) - max(one.top, other.top)
    width = min(one.right, other.right) - max(one.left, other.left)
    both = max(height, 0) * max(width, 0)
    areas = ((face.bottom - face.top) * (face.right - face.left) for face in (one, other))
    return both / (sum(areas) - both)


def draw_faces(pixels, faces):
    """The photograph with a frame around each face."""
    image = Image.fromarray(pixels)
    draw = ImageDraw.Draw(image)
    for face in faces:
        draw.rectangle(face[:4], outline=_FRAME, width=2)
    return np.asarray(image)
