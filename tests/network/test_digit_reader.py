"""The reader of digits: its inputs and pictures, its answers, and its program."""

import numpy as np
import pytest

from tilewright import network
from tilewright.network.models.digit_reader import (
    COUNT,
    TOKENS,
    TRAINED,
    draw_digits,
    load_model,
    prepare_digits,
    written_digits,
)
from tilewright.network.reader import read_model


@pytest.fixture(scope="module")
def graph():
    return read_model(load_model())


def test_patches_of_a_digit():
    pixels = np.arange(64).reshape(1, 8, 8)
    patches = prepare_digits(pixels)
    assert patches.shape == (1, TOKENS, 4) and patches.dtype == np.float32
    np.testing.assert_array_equal(patches[0, 5], np.float32([18, 19, 26, 27]) / 8 - 1)


def test_a_picture_of_digits():
    picture = draw_digits(16 * np.eye(8)[np.newaxis].repeat(COUNT, axis=0))
    assert picture.shape == (128, 512, 3) and picture[0, 0, 0] == 255 and picture[0, 9, 0] == 0


def test_other_digits_are_read(graph):
    """At least nine of ten of those that the model was not trained on."""
    right = 0
    for first in range(TRAINED, TRAINED + 10 * COUNT, COUNT):
        pixels, targets = written_digits(first)
        (answer,) = (network.evaluate(graph, prepare_digits(pixels))[name] for name in graph.outputs)
        right += (answer.argmax(axis=1) == targets).sum()
    print(f"{right} of {10 * COUNT} digits")
    assert right >= 9 * COUNT


def test_the_program_gives_the_same(graph):
    inputs = {"x": prepare_digits(written_digits()[0])}
    compiled = network.compile(graph)
    (name,) = graph.outputs
    np.testing.assert_array_equal(compiled.run(inputs)[name], network.evaluate(graph, inputs)[name])
    assert {layer.kernel.name for layer in compiled.plan.layers if layer.kernel} == {"layer_norm", "softmax_bytes"}
