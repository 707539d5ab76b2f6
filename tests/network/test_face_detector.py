"""The detector of faces: boxes of an answer, and on a photograph that it was not trained on."""

import numpy as np
import pytest
from skimage.data import lbp_frontal_face_cascade_filename
from skimage.feature import Cascade

from tilewright.network.evaluation import evaluate
from tilewright.network.graph import ModelError
from tilewright.network.models.face_detector import (
    CELL,
    FACE,
    STEP,
    Face,
    draw_faces,
    find_faces,
    load_model,
    overlap,
    prepare_grey,
)
from tilewright.network.models.photographs import load_photograph
from tilewright.network.reader import read_model


def test_boxes_of_an_answer():
    answer = np.full((1, 4, 6, 8), -9, np.float32)
    answer[0, :, 3, 2] = 2, 0.5 * STEP, -0.25 * STEP, np.log(0.5) * STEP
    answer[0, :, 3, 3] = 1, 0.5 * STEP, -1.25 * STEP, np.log(0.5) * STEP  # the same face
    answer[0, :, 0, 7] = 0.7, 0, 0, 0
    answer[0, :, 5, 5] = 0.6, 0, 0, 0
    best, other = find_faces(answer)
    y, x, half = 4 * CELL, 2.25 * CELL, FACE / 4
    np.testing.assert_allclose(best, (x - half, y - half, x + half, y + half, 1 / (1 + np.exp(-2))), rtol=1e-6)
    assert (other.left + other.right, other.top + other.bottom) == (15 * CELL, CELL)


@pytest.mark.parametrize(
    ("box", "share"), [((0, 0, 4, 4), 1), ((2, 0, 6, 4), 1 / 3), ((4, 0, 8, 4), 0), ((5, 5, 9, 9), 0)]
)
def test_overlap(box, share):
    assert overlap(Face(0, 0, 4, 4, 1), Face(*box, 1)) == pytest.approx(share)


@pytest.mark.parametrize("size", [(224, 220), (0, 8), (-8, 8)])
def test_other_sizes_are_refused(size):
    with pytest.raises(ModelError, match="must be multiples of 8, not {} and {}$".format(*size)):
        load_model(*size)


@pytest.fixture(scope="module")
def model():
    return load_model()


def faces_of(model, name):
    return find_faces(evaluate(read_model(model), {"x": prepare_grey(load_photograph(name))})["y"])


def test_a_face_is_found_where_others_find_it(model):
    """The detector of scikit-image, whose features and training are different, is the witness."""
    pixels = load_photograph("astronaut")
    (theirs,) = Cascade(lbp_frontal_face_cascade_filename()).detect_multi_scale(
        img=pixels, scale_factor=1.2, step_ratio=1, min_size=(40, 40), max_size=(70, 70)
    )
    left, top = theirs["c"], theirs["r"]
    (face,) = faces_of(model, "astronaut")
    assert overlap(face, Face(left, top, left + theirs["width"], top + theirs["height"], 1)) > 0.5
    changed = np.argwhere((draw_faces(pixels, [face]) != pixels).any(axis=2))
    assert np.abs(changed.min(axis=0) - (face.top, face.left)).max() < 2


def test_no_face_is_found_where_there_is_none(model):
    assert faces_of(model, "coffee") == []


def test_every_tensor_equals_onnx_runtime(model, agree):
    """Squeeze-and-excitation and SiLU in five blocks; no tolerance is needed."""
    graph, _ = agree(model, {"x": prepare_grey(load_photograph("astronaut"))})
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("QLinearGlobalAveragePool") == 5 and operators.count("QLinearSigmoid") == 21
    assert len(graph.nodes) == len(operators)
