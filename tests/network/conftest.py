"""Comparison with ONNX Runtime node by node, and of programs with the evaluation."""

import numpy as np
import pytest

from support.network import compare_program
from tilewright import network
from tilewright.errors import HostError
from tilewright.network.reader import read_model
from tilewright.tools.campaign.networks import witness_differences
from tilewright.verify.races import find_races
from tilewright.verify.random.networks import draw_inputs


@pytest.fixture
def agree():
    """Runs a model on golden and on ONNX Runtime and compares all tensors; returns the graph and them."""

    def agree(model, inputs=None, seed=0):
        graph = read_model(model)
        inputs = draw_inputs(np.random.default_rng(seed), graph) if inputs is None else inputs
        try:
            wrong, values, _ = witness_differences(model, graph, inputs)
        except HostError as error:
            pytest.skip(str(error))
        assert not wrong, "\n".join(wrong)
        return graph, values

    return agree


@pytest.fixture
def check_program():
    """Compiles a network, compares all tensors that the golden core gives with the evaluation, returns the Compiled.

    ``source`` is a NetworkMaker, whose inputs are drawn, or a Graph. ``races``: no engine may meet another at a byte.
    """

    def check(source, machine="default", inputs=None, *, every_tensor=False, races=False):
        graph, inputs = (source, inputs) if inputs else (source.graph(), source.draw())
        compiled = network.compile(graph, machine, every_tensor=every_tensor)
        data, expected = compiled.run_golden(inputs), network.evaluate(graph, inputs)
        names = [node.output for node in graph.nodes] if every_tensor else graph.outputs
        for name, value in compiled.tensors(data, names).items():
            np.testing.assert_array_equal(value, expected[name], err_msg=name, strict=True)
        assert not races or find_races(compiled.words, compiled.image, compiled.plan.machine.smem_bytes) == []
        return compiled

    return check


@pytest.fixture
def check_model(agree):
    """Compares every tensor of a model with ONNX Runtime, and programs with the evaluation; returns the graph."""

    def check(model, inputs=None, presets=("unit",)):
        graph, _ = agree(model, inputs)
        for preset in presets:
            compare_program(graph, inputs, preset)
        return graph

    return check
