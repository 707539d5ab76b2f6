"""Div of two tensors and Sum of many, which ONNX Runtime computes in the same floats."""

import numpy as np
import pytest

from tilewright.network import ModelError
from tilewright.network.evaluation import compute
from tilewright.network.reader import read_model
from tilewright.network.witness import run_witness
from tilewright.verify.random.model import Form


def model_of(kind, *shapes, dtype="uint8", opset=13):
    form, least = Form(*shapes[0], opset=opset), int(np.iinfo(dtype).min)
    for name, shape in zip("zw", shapes[1:], strict=False):
        form.give(name, list(shape))
    parts = [form.both(name, np.float32(0.01 * (3 + number)), np.dtype(dtype).type(least + 90 + number))
             for number, name in enumerate("xzw"[: len(shapes)])]  # fmt: skip
    return form.model(form.quantise(form.node(kind, *parts), np.float32(0.05), np.dtype(dtype).type(least + 100)))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    ("kind", "shapes"),
    [
        ("Div", [(4, 60), (4, 60)]),
        ("Div", [(2, 6, 5, 7), (1, 6, 1, 1)]),
        ("Div", [(3, 40), (3, 1)]),
        ("Div", [(1, 40), (3, 40)]),
        ("Sum", [(1, 6, 5, 7)] * 3),
        ("Sum", [(2, 3, 20), (1, 3, 1), (20,)]),
    ],
)
def test_equals_onnx_runtime(dtype, kind, shapes):
    model, rng = model_of(kind, *shapes, dtype=dtype), np.random.default_rng(1)
    graph = read_model(model)
    inputs = {name: rng.normal(0, 2, graph.tensors[name].shape).astype(np.float32) for name in graph.inputs}
    values, names = graph.constants | inputs, [node.output for node in graph.nodes]
    values |= run_witness(model, graph, inputs, names)
    for node in graph.nodes:
        ours = compute(graph, node, values)
        theirs = values.setdefault(node.output, ours)
        # 0 / 0 is an integer of ONNX Runtime's own choice.
        known = (values[node.inputs[1]] != node.attributes.quantities[1][1]) if node.kind == "Arithmetic" else True
        np.testing.assert_array_equal(np.where(known, ours, 0), np.where(known, theirs, 0))


def test_shapes_that_do_not_fit():
    with pytest.raises(ModelError, match=r"its inputs are \[4, 6\] and \[4, 5\] and \[4, 6\], which do not fit"):
        read_model(model_of("Sum", (4, 6), (4, 5), (4, 6)))
