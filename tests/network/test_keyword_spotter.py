"""The spotter of keywords: its words, its inputs and pictures, its answers, and its program."""

import numpy as np
import pytest

from tilewright import network
from tilewright.network.compiled import first_nodes
from tilewright.network.models.keyword_spotter import (
    BANDS,
    COUNT,
    FRAMES,
    TRAINED,
    draw_words,
    load_model,
    prepare_words,
    spoken_words,
)
from tilewright.network.models.speech import LENGTH, RATE, WORDS, speak
from tilewright.network.reader import read_model
from tilewright.tools.campaign import networks as campaign


@pytest.fixture(scope="module")
def graph():
    return read_model(load_model())


def tone(hertz, first, end):
    """A tone between two samples."""
    times = np.arange(LENGTH)
    return np.sin(2 * np.pi * hertz * times / RATE) * ((times >= first) & (times < end))


def test_a_tone_is_in_its_band_and_frame():
    low, high = prepare_words(np.stack([tone(300, 4000, 8000), tone(3000, 12000, 16000)]))
    assert low.shape == (BANDS, FRAMES) and low.dtype == np.float32
    frames = LENGTH // FRAMES
    for inputs, (first, end) in ((low, (4000, 8000)), (high, (12000, 16000))):
        loud = np.flatnonzero(inputs.max(axis=0) > inputs.max() - 0.5)
        assert abs(loud[0] * frames - first) < 2 * frames and abs(loud[-1] * frames - end) < 2 * frames
        np.testing.assert_allclose(inputs.mean(), 0, atol=1e-5)
    assert low.max(axis=1).argmax() < BANDS // 4 < high.max(axis=1).argmax()


def test_loudness_does_not_matter():
    sounds, _ = spoken_words(count=2)
    np.testing.assert_allclose(prepare_words(sounds), prepare_words(2 * sounds), atol=0.01)


def test_the_hiss_of_an_s_is_higher_than_a_vowel():
    """In the word yes, of several speakers: its beginning has a voice, its end has noise."""
    for seed in range(4):
        sound = speak("yes", np.random.default_rng(seed))
        assert sound.shape == (LENGTH,) and np.abs(sound).max() <= 1
        energies = prepare_words(sound[np.newaxis])[0]
        hiss, vowel = energies[-4:].mean(axis=0).argmax(), energies[:8].mean(axis=0).argmax()
        assert 2 <= hiss - vowel <= 20


def test_words_come_in_blocks_of_all_with_speakers_of_their_own():
    sounds, classes = spoken_words(first=TRAINED)
    others, more = spoken_words(first=TRAINED + COUNT)
    assert sorted(classes) == sorted(more) == list(range(len(WORDS))) and (classes != more).any()
    assert len({sound.tobytes() for sound in (*sounds, *others)}) == 2 * COUNT
    again, _ = spoken_words(first=TRAINED + 3, count=1)
    np.testing.assert_array_equal(again[0], sounds[3])


def test_a_picture_of_words():
    inputs = np.zeros((COUNT, BANDS, FRAMES), np.float32)
    inputs[0, 0, 0] = 1  # the lowest band is at the bottom
    picture = draw_words(inputs)
    assert picture.shape == (200, 784, 3) and picture.dtype == np.uint8
    assert picture[95, 0, 0] == 255 and picture[0, 0, 0] == 0


def test_words_of_other_speakers_are_heard(graph):
    """At least nine of ten."""
    right, count = 0, 10 * COUNT
    sounds, classes = spoken_words(count=count)
    for inputs, targets in zip(prepare_words(sounds).reshape(-1, COUNT, BANDS, FRAMES), classes.reshape(-1, COUNT),
                               strict=True):  # fmt: skip
        (answer,) = (network.evaluate(graph, inputs)[name] for name in graph.outputs)
        right += (answer.argmax(axis=1) == targets).sum()
    print(f"{right} of {count} words")
    assert right >= 0.9 * count


def test_the_program_gives_the_same():
    """With a GRU that the processing engine computes."""
    graph, inputs = read_model(load_model(2)), {"x": prepare_words(spoken_words(count=2)[0])}
    compiled = network.compile(graph)
    (name,) = graph.outputs
    np.testing.assert_array_equal(compiled.run(inputs)[name], network.evaluate(graph, inputs)[name])
    assert [layer.kernel.name for layer in compiled.plan.layers if layer.kernel] == ["gru"]


@pytest.mark.parametrize("step", [0, 1, 2])
def test_states_may_differ_from_onnx_runtime_by_one(monkeypatch, step):
    """ONNX Runtime shows them behind the Squeeze that follows the GRU, and only there."""
    model, inputs = load_model(2), {"x": prepare_words(spoken_words(count=2)[0])}
    graph = first_nodes(read_model(model), 10)
    output = graph.nodes[-1].output
    assert graph.nodes[-1].operator == "Squeeze"

    def run(*arguments):
        values = run_witness(*arguments)
        values[output] = network.evaluate(graph, inputs)[output]
        values[output][0, 0] += step
        return values

    run_witness = campaign.run_witness
    monkeypatch.setattr(campaign, "run_witness", run)
    sentences, _, floats = campaign.witness_differences(model, graph, inputs)
    assert len(sentences) == (step > 1) and floats == {"GRU": (step > 0, 64)}


def test_fewer_words_at_once(graph):
    inputs = prepare_words(spoken_words()[0])
    few = read_model(load_model(2))
    (name,) = few.outputs
    np.testing.assert_array_equal(network.evaluate(few, inputs[:2])[name], network.evaluate(graph, inputs)[name][:2])
