"""Models in QDQ form give the same as the same models on integers."""

import numpy as np
import pytest

from tilewright import network
from tilewright.network import ModelError
from tilewright.network.evaluation import evaluate
from tilewright.network.models.small import SMALL, build_small, small_input
from tilewright.network.reader import read_model
from tilewright.verify.random.forms import as_qdq, in_another_form
from tilewright.verify.random.networks import draw_inputs, draw_network

NETWORKS = 60


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_both_forms_mean_the_same(kind):
    for seed in range(NETWORKS):
        print(f"seed {seed}")
        model = draw_network(np.random.default_rng(seed), dtype=kind)
        graph, folded = read_model(model), read_model(as_qdq(model))
        inputs = draw_inputs(np.random.default_rng(seed), graph)
        values, others = evaluate(graph, inputs), evaluate(folded, inputs)
        assert values.keys() <= others.keys()
        for name, value in values.items():
            np.testing.assert_array_equal(others[name], value, err_msg=name, strict=True)


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_other_forms_mean_the_same(count):
    """As other exporters write it, tensor by tensor; of every fourth network also the program."""
    for seed in range(count):
        print(f"seed {seed}")
        rng = np.random.default_rng(seed)
        model = as_qdq(draw_network(rng, dtype=("uint8", "int8")[seed % 2]))
        graph, other = read_model(model), read_model(in_another_form(model, rng))
        inputs = draw_inputs(rng, graph)
        values, others = evaluate(graph, inputs), evaluate(other, inputs)
        for name in values.keys() & others.keys() & {name for node in model.graph.node for name in node.output}:
            np.testing.assert_array_equal(others[name], values[name], err_msg=name, strict=True)
        assert set(graph.outputs) <= others.keys()
        if seed % 4:
            continue
        try:
            compiled = network.compile(other, "unit")
        except ModelError:
            continue
        for name, value in compiled.run(inputs).items():
            np.testing.assert_array_equal(value, values[name], err_msg=name)


def test_as_onnx_runtime(agree):
    for seed in range(20):
        print(f"seed {seed}")
        agree(as_qdq(draw_network(np.random.default_rng(seed), dtype="uint8")), seed=seed)


@pytest.mark.parametrize("form", ["QOperator", "QDQ"])
def test_mixed(form, agree):
    agree(build_small("mixed", form=form), small_input("mixed", 1))


def test_signed(agree):
    agree(build_small("signed", reduced=True), small_input("signed", 1))


@pytest.mark.parametrize("name", SMALL)
def test_both_forms_of_a_tool(name):
    # It gives some tensors other scales.
    answers = []
    for form in ("QOperator", "QDQ"):
        graph = read_model(build_small(name, form=form, reduced=True))
        answers.append(evaluate(graph, small_input(name, 2))[graph.outputs[0]])
    assert np.abs(np.subtract(*answers)).max() < 0.05 * np.abs(answers[0]).max()
