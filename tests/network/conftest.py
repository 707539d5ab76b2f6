"""Comparison with ONNX Runtime node by node, and of programs with the evaluation."""

import numpy as np
import pytest

from support.network import compare_program
from tilewright import network
from tilewright.errors import HostError
from tilewright.network.evaluation import compute
from tilewright.network.reader import read_model
from tilewright.network.witness import run_witness
from tilewright.verify.races import find_races
from tilewright.verify.random.networks import draw_inputs

#: Operators that ONNX Runtime computes in floats, and the share of their results that may differ by one.
IN_FLOATS = dict.fromkeys(
    ("BatchNormalization", "ConvTranspose", "PRelu", "ReduceMean", "ReduceSum", "Sub", "Sum"), 0.005
)
IN_FLOATS["Resize"] = 0.15  # every sixteenth sum may be halfway between two integers


def near_half(node, x):
    """Where the average of a window lies so near the middle between two integers that sums of floats may differ."""
    pool = node.attributes
    if node.operator not in ("AveragePool", "QLinearAveragePool"):
        return False
    top, left, bottom, right = pool.pad
    padded = np.pad(x.astype(np.int64) - pool.x_zero, ((0, 0), (0, 0), (top, bottom), (left, right)))
    views = np.lib.stride_tricks.sliding_window_view(padded, pool.kernel, axis=(2, 3))
    exact = views[:, :, :: pool.stride[0], :: pool.stride[1]].sum(axis=(-2, -1)) * pool.scale.astype(np.float64)
    return np.abs(exact - np.floor(exact) - 0.5) < 1e-4


@pytest.fixture
def agree():
    """Runs a model on golden and on ONNX Runtime and compares all tensors; returns the graph and them.

    Each node is computed from what ONNX Runtime has for its inputs. Averages of windows may differ by one where they
    are halves, as ONNX Runtime adds floats there (docs/network.md, "Averages"), and so may a few results of other
    operators that it computes in floats.
    """

    def agree(model, inputs=None, seed=0):
        graph = read_model(model)
        inputs = draw_inputs(np.random.default_rng(seed), graph) if inputs is None else inputs
        try:
            values = graph.constants | inputs | run_witness(model, graph, inputs, [node.output for node in graph.nodes])
        except HostError as error:
            pytest.skip(str(error))
        for node in graph.nodes:
            golden = compute(graph, node, values)
            theirs = values.setdefault(node.output, golden)
            assert (theirs.shape, theirs.dtype) == (golden.shape, golden.dtype), node
            wrong = golden != theirs
            if wrong.any():
                one_off = np.abs(golden.astype(np.int32) - theirs.astype(np.int32)) == 1
                wrong = wrong & ~(one_off & near_half(node, values[node.inputs[0]]))
                few = node.operator in IN_FLOATS and wrong.sum() <= max(3, IN_FLOATS[node.operator] * wrong.size)
                wrong = wrong & ~(one_off & few)
            assert not wrong.any(), f"{node}: {wrong.sum()} of {wrong.size}, first at {np.argwhere(wrong)[0]}"
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
