"""LSTM, GRU and RNN that the host computes: floats as ONNX Runtime's, and quantised networks after them."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from tilewright.network.reader.recurrent import RECURRENT

INPUTS, HIDDEN, STEPS, BATCH = 5, 7, 6, 2
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def both(kind, directions, *, bias=True, state=False, peepholes=False, **attributes):
    """Results of our function and of ONNX Runtime."""
    rng = np.random.default_rng(len(attributes))
    gates = GATES[kind]
    states = (directions, BATCH, HIDDEN)
    arrays = {"x": (STEPS, BATCH, INPUTS), "w": (directions, gates * HIDDEN, INPUTS),
              "r": (directions, gates * HIDDEN, HIDDEN),
              "b": (directions, 2 * gates * HIDDEN) if bias else None, "lengths": None,
              "h": states if state else None}  # fmt: skip
    if kind == "LSTM":
        arrays |= {"c": states if state else None, "p": (directions, 3 * HIDDEN) if peepholes else None}
    values = {name: rng.normal(0, 0.6, size).astype(np.float32) for name, size in arrays.items() if size}
    names = [name if name in values else "" for name in arrays]
    outputs = ["y", "y_h", "y_c"][: 2 + (kind == "LSTM")]
    node = helper.make_node(kind, names, outputs, hidden_size=HIDDEN, **attributes)
    given = [helper.make_tensor_value_info(name, 1, array.shape) for name, array in values.items()]
    graph = helper.make_graph([node], "cell", given, [helper.make_empty_tensor_value_info(name) for name in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    kept = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    ours = RECURRENT[kind](kept, *(values.get(name, np.zeros(0, np.float32)) for name in names))
    return ours, session.run(None, values)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False, "state": True},
        {"direction": "reverse"},
        {"direction": "bidirectional", "state": True},
        {"clip": 0.5},
    ],
    ids=str,
)
def test_equals_onnx_runtime(kind, options):
    directions = 2 if options.get("direction") == "bidirectional" else 1
    for ours, theirs in zip(*both(kind, directions, **options), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-6)
        assert ours.shape == theirs.shape and ours.dtype == np.float32


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("LSTM", {"peepholes": True}),
        ("LSTM", {"activations": ["Sigmoid", "Relu", "Tanh"]}),
        ("GRU", {"linear_before_reset": 1}),
        ("RNN", {"activations": ["Relu"]}),
    ],
)
def test_forms_of_a_cell(kind, options):
    for ours, theirs in zip(*both(kind, 1, **options), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-6)


@pytest.mark.parametrize("kind", GATES)
def test_batches_may_come_first(kind):
    """ONNX Runtime has no such layout."""
    rng, gates = np.random.default_rng(1), GATES[kind]
    sizes = (STEPS, BATCH, INPUTS), (1, gates * HIDDEN, INPUTS), (1, gates * HIDDEN, HIDDEN), (1, BATCH, HIDDEN)
    x, w, r, h = (rng.normal(0, 0.6, size).astype(np.float32) for size in sizes)
    none = np.zeros(0, np.float32)
    y, *last = RECURRENT[kind]({}, x, w, r, none, none, h)
    other, *others = RECURRENT[kind]({"layout": 1}, x.swapaxes(0, 1), w, r, none, none, h.swapaxes(0, 1))
    np.testing.assert_array_equal(other, y.transpose(2, 0, 1, 3))
    for first, second in zip(last, others, strict=True):
        np.testing.assert_array_equal(first, second.swapaxes(0, 1))


@pytest.mark.parametrize(("options", "sentence"), [
    ({"input_forget": 1}, "input_forget"), ({"lengths": np.int32([3, 6])}, "different lengths"),
])  # fmt: skip
def test_what_is_not_computed_is_refused(options, sentence):
    lengths = options.pop("lengths", None)
    x, w, r = np.zeros((6, 2, 5), np.float32), np.zeros((1, 28, 5), np.float32), np.zeros((1, 28, 7), np.float32)
    with pytest.raises(ValueError, match=sentence):
        RECURRENT["LSTM"](options, x, w, r, None, lengths)
