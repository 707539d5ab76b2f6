"""Normalisations and softmaxes in the middle of a network, against ONNX Runtime on data as networks have them."""

import numpy as np
import pytest

from tilewright import network
from tilewright.network import ModelError
from tilewright.network.evaluation import compute, evaluate
from tilewright.network.reader import read_model
from tilewright.network.witness import run_witness
from tilewright.verify.random.model import Form

ROWS, COLUMNS = 197, 192


def features(dtype, seed):
    """Rows with a mean, a deviation and outliers of their own, as transformers have them: bytes with a scale."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (ROWS, COLUMNS)) * rng.lognormal(0, 0.4, (ROWS, 1)) + rng.normal(0, 0.5, (ROWS, 1))
    x[:, :3] *= 6
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    scale = np.float32(np.ptp(x) / 255)
    zero = int(np.clip(np.rint(low - x.min() / scale), low, high))
    return x.astype(np.float32), scale, np.dtype(dtype).type(zero)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("kind", ["LayerNormalization", "RMSNormalization"])
@pytest.mark.parametrize("seed", range(3))
def test_few_results_of_a_normalisation_differ_by_one(dtype, kind, seed):
    form = Form(ROWS, COLUMNS, opset=23)
    x, *quantity = features(dtype, seed)
    numbers = [1 + 0.3 * form.numbers(COLUMNS), 0.2 * form.numbers(COLUMNS)]
    y = form.node(kind, form.both("x", *quantity), *numbers[: 1 + (kind[0] == "L")], axis=-1, epsilon=1e-6)
    name = form.quantise(y, np.float32(0.04), np.dtype(dtype).type(20))
    model = form.model(name)
    graph = read_model(model)
    (node,) = (node for node in graph.nodes if node.kind == "Normalise")
    theirs = run_witness(model, graph, {"x": x}, [*node.inputs, name])
    ours = compute(graph, node, theirs)
    difference = np.abs(ours.astype(int) - theirs[name])
    print(f"{np.count_nonzero(difference)} of {difference.size} values differ")
    assert difference.max() <= 1 and np.count_nonzero(difference) <= 0.005 * difference.size


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("shape", [(1, 32, 14, 12), (2, 16, 60), (1, 48, 3, 4, 5)], ids=str)
def test_few_results_of_a_normalisation_of_channels_differ_by_one(dtype, shape):
    form, rng = Form(*shape, opset=17), np.random.default_rng(2)
    x = (rng.normal(0, 1, shape) * rng.lognormal(0, 0.5, (1, shape[1], *[1] * (len(shape) - 2)))).astype(np.float32)
    zero = np.dtype(dtype).type(np.iinfo(dtype).min + 128)
    numbers = [1 + 0.3 * form.numbers(shape[1]), 0.2 * form.numbers(shape[1])]
    y = form.node("InstanceNormalization", form.both("x", np.float32(np.abs(x).max() / 127), zero), *numbers)
    name = form.quantise(y, np.float32(0.04), zero)
    model = form.model(name)
    graph = read_model(model)
    quantised = graph.nodes[0].output
    theirs = run_witness(model, graph, {"x": x}, [quantised, name])
    ours = evaluate(graph, x)
    np.testing.assert_array_equal(ours[quantised], theirs[quantised])
    difference = np.abs(ours[name].astype(int) - theirs[name])
    print(f"{np.count_nonzero(difference)} of {difference.size} values differ")
    assert difference.max() <= 1 and np.count_nonzero(difference) <= 0.005 * difference.size
    compiled = network.compile(graph)
    np.testing.assert_array_equal(compiled.run({"x": x})[name], ours[name])


@pytest.mark.parametrize(("channels", "groups", "opset"), [(32, 4, 21), (30, 3, 18), (80, 8, 21), (16, 1, 21)])
def test_few_results_of_a_normalisation_of_groups_differ_by_one(channels, groups, opset):
    shape, zero, rng = (2, channels, 9, 7), np.uint8(128), np.random.default_rng(4)
    form = Form(*shape, opset=opset)
    x = (rng.normal(0, 1, shape) * rng.lognormal(0, 0.5, (1, channels, 1, 1))).astype(np.float32)
    numbers = [1 + 0.3 * form.numbers(channels if opset > 20 else groups) for _ in range(2)]
    y = form.node("GroupNormalization", form.both("x", np.float32(np.abs(x).max() / 127), zero), *numbers,
                  num_groups=groups)  # fmt: skip
    name = form.quantise(y, np.float32(0.04), zero)
    model = form.model(name)
    graph = read_model(model)
    ours, theirs = evaluate(graph, x), run_witness(model, graph, {"x": x}, [name])
    difference = np.abs(ours[name].astype(int) - theirs[name])
    print(f"{np.count_nonzero(difference)} of {difference.size} values differ")
    assert difference.max() <= 1 and np.count_nonzero(difference) <= 0.005 * difference.size
    np.testing.assert_array_equal(network.compile(graph).run({"x": x})[name], ours[name])


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("last", ["Div", "Reciprocal"])
def test_the_root_of_the_mean_square_in_parts(check_model, dtype, last):
    """As torch writes it, with what ONNX Runtime quantises of it: not the squares, and not the root."""
    form, (x, *quantity) = Form(ROWS, COLUMNS), features(dtype, 3)
    least, steps = np.dtype(dtype).type(np.iinfo(dtype).min), np.float32([0.02, 0.03, 0.04])
    floats = form.both("x", *quantity)
    means = form.node("ReduceMean", form.node("Pow", floats, np.float32(2)), axes=[-1], keepdims=1)
    root = form.node("Sqrt", form.both(form.node("Add", form.both(means, steps[0], least), np.float32(0.01)),
                                       steps[0], least))  # fmt: skip
    if last == "Div":
        y = form.node("Div", floats, root)
    else:
        y = form.node("Mul", floats, form.both(form.node(last, root), steps[1], least))
    zero = np.dtype(dtype).type(int(least) + 128)
    y = form.node("Mul", form.both(y, steps[2], zero), form.weights(COLUMNS)[0])
    check_model(form.model(form.quantise(y, steps[1], zero)), {"x": x}, presets=("default",))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("share", [256, 255, 300])
def test_a_softmax_before_products_is_equal(agree, dtype, share):
    form = Form(40, 50)
    _, *quantity = features(dtype, 1)
    least = np.iinfo(dtype).min
    y = form.node("Softmax", form.both("x", *quantity), axis=-1)
    shares = form.both(y, np.float32(1 / share), np.dtype(dtype).type(least))
    product = form.node("MatMul", shares, form.weights(50, 30, axis=1)[0])
    model = form.model(form.quantise(product, np.float32(0.01), np.dtype(dtype).type(least + 128)))
    agree(model)


@pytest.mark.parametrize(("change", "sentence"), [
    ("gain", "its gain 't1.0' is computed, and only a constant is supported"),
    ("size", r"its gain is \[5\], which does not fit \[12\]"),
])  # fmt: skip
def test_a_gain_that_does_not_fit_is_refused(change, sentence):
    form = Form(12, 12, opset=17)
    gain = form.both("x") if change == "gain" else np.ones(5, np.float32)
    y = form.node("LayerNormalization", form.both("x"), gain)
    product = form.node("MatMul", form.both(y), form.weights(12, 300, axis=1)[0])
    with pytest.raises(ModelError, match=sentence):
        read_model(form.model(form.quantise(product)))


def test_floats_of_a_normalisation_at_the_end():
    form = Form(6, 8, opset=17)
    model = form.model(form.node("LayerNormalization", form.both("x"), np.ones(8, np.float32)))
    graph, x = read_model(model), form.numbers(6, 8)
    (name,) = graph.outputs
    expected = run_witness(model, graph, {"x": x}, [name])[name]
    np.testing.assert_allclose(evaluate(graph, x)[name], expected, atol=1e-5)
