"""What tests of networks share: the sentence of a refusal, and programs against the evaluation."""

import numpy as np
import pytest

from tilewright import network
from tilewright.network import ModelError
from tilewright.network.reader import read_model
from tilewright.verify.random.networks import draw_inputs

__all__ = ["compare_program", "refusal"]


def refusal(model):
    """The sentence that says why a model is refused."""
    with pytest.raises(ModelError) as error:
        read_model(model)
    return str(error.value)


def compare_program(graph, inputs=None, preset="unit"):
    """Compares the outputs of the program of a network with the evaluation; returns both, by name, and the Compiled."""
    inputs = draw_inputs(np.random.default_rng(0), graph) if inputs is None else inputs
    expected, compiled = network.evaluate(graph, inputs), network.compile(graph, preset)
    for name, value in compiled.run(inputs).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=f"{name} on {preset}", strict=True)
    return [expected[name] for name in graph.outputs], compiled
