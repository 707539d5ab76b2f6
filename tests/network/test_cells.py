"""LSTM, GRU and RNN on the engines: against ONNX Runtime, as programs, and where the host computes them."""

from dataclasses import replace

import numpy as np
import pytest

from support.network import compare_program, refusal
from tilewright import network
from tilewright.golden import PeSizes
from tilewright.network.drawn import NetworkMaker
from tilewright.network.evaluation import evaluate
from tilewright.network.lower import recurrent_kernel
from tilewright.network.machine import MACHINES
from tilewright.network.models.floats import FloatMaker
from tilewright.network.models.quantiser import quantised
from tilewright.network.reader import read_model
from tilewright.network.witness import run_witness
from tilewright.verify.core_races import find_core_races
from tilewright.verify.random.model import Form

STEPS, INPUTS, HIDDEN = 49, 40, 48
CELLS = [("LSTM", {}), ("GRU", {}), ("GRU", {"linear_before_reset": 1}), ("RNN", {})]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def form_of(kind, attributes, *, steps=STEPS, batch=1, hidden=HIDDEN, ways=1, last=False, inputs=(), dtype="uint8"):
    """A model of one layer; ``last``: of its last states. ``inputs`` are those after the bias."""
    form = Form(steps, batch, INPUTS, opset=17)
    middle = np.dtype(dtype).type(np.iinfo(dtype).min + 128)
    weights = [form.numbers(ways, GATES[kind] * hidden, size) / np.float32(size**0.5) for size in (INPUTS, hidden)]
    bias = form.numbers(ways, 2 * GATES[kind] * hidden)
    y = form.node(kind, form.both("x", np.float32(0.04), middle), *weights, bias, *inputs, outputs=1 + last,
                  hidden_size=hidden, **attributes)  # fmt: skip
    return form, form.quantise(y.replace(".0", ".1") if last else y, np.float32(1 / 127), middle)


def bands(batch=1):
    """Energies of bands as a spectrogram has them: smooth in time and in frequency."""
    rng = np.random.default_rng(3)
    x = np.cumsum(rng.normal(0, 0.5, (STEPS, batch, INPUTS)), axis=0)
    x = (x + np.roll(x, 1, axis=2) + np.roll(x, 2, axis=2)) * np.hanning(STEPS)[:, np.newaxis, np.newaxis]
    return x.astype(np.float32)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("kind", "attributes"), [*CELLS, ("LSTM", {"clip": 1.0})], ids=str)
@pytest.mark.parametrize("ways", [1, 2])
def test_few_results_differ_by_one(kind, attributes, ways, dtype):
    direction = "bidirectional" if ways == 2 else "forward"
    form, name = form_of(kind, {"direction": direction, **attributes}, ways=ways, batch=ways, dtype=dtype)
    model, x = form.model(name), bands(ways)
    graph = read_model(model)
    assert [node.kind for node in graph.nodes].count("Recurrent") == ways
    ours, theirs = evaluate(graph, x)[name], run_witness(model, graph, {"x": x}, [name])[name]
    difference = np.abs(ours.astype(int) - theirs)
    print(f"{np.count_nonzero(difference)} of {difference.size} values differ")
    assert ours.shape == theirs.shape and theirs.std() > 5
    assert difference.max() <= 1 and np.count_nonzero(difference) <= 0.005 * difference.size


@pytest.mark.parametrize(("kind", "attributes"), CELLS, ids=str)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_last_states(kind, attributes, direction):
    """With first states, and lengths that are all steps."""
    ways, rng = 1 + (direction == "bidirectional"), np.random.default_rng(5)
    states = [rng.normal(0, 0.5, (ways, 2, 20)).astype(np.float32) for _ in range(1 + (kind == "LSTM"))]
    form, name = form_of(kind, {"direction": direction, **attributes}, steps=9, batch=2, hidden=20, ways=ways,
                         last=True, inputs=[np.full(2, 9, np.int32), *states])  # fmt: skip
    model, x = form.model(name), bands(2)[:9]
    graph = read_model(model)
    ours, theirs = evaluate(graph, x)[name], run_witness(model, graph, {"x": x}, [name])[name]
    assert "Recurrent" in {node.kind for node in graph.nodes}
    np.testing.assert_array_equal(ours, theirs)


def calls_of(compiled):
    return [layer.kernel.name for layer in compiled.plan.layers if layer.kernel]


@pytest.mark.parametrize(("cells", "after"), [("LSTM", False), ("GRU", False), ("GRU", True), ("RNN", False)])
@pytest.mark.parametrize(("rows", "inputs", "hidden", "options"), [
    (3, 5, 7, {}), (4, 40, 20, {"batch": 2, "reverse": True, "dtype": "int8"}), (2, 130, 33, {}), (1, 1, 1, {}),
    (2, 16, 140, {}),
], ids=str)  # fmt: skip
def test_programs(check_program, cells, after, rows, inputs, hidden, options):
    maker = NetworkMaker(rows)
    maker.recurrent(maker.input((rows, inputs)), cells, hidden, after=after, **options)
    assert calls_of(check_program(maker, "default", every_tensor=True, races=True)) == [cells.lower()]


@pytest.mark.parametrize(("cells", "after"), [("LSTM", False), ("GRU", False), ("GRU", True), ("RNN", False)])
@pytest.mark.parametrize("reverse", [False, True])
def test_little_shared_memory(check_program, monkeypatch, cells, after, reverse):
    """Weights are loaded in each step again, and rows band by band: six of two batches, four at a time."""
    monkeypatch.setattr(recurrent_kernel, "_ROWS", 4)
    maker = NetworkMaker(2)
    maker.recurrent(maker.input((6, 20)), cells, 40, batch=2, after=after, reverse=reverse, clip=None if after else 0.8)
    machine = replace(MACHINES["default"], smem_bytes=(24 if cells == "RNN" else 48) * 1024)
    compiled = check_program(maker, machine, races=True)
    whole = check_program(maker, "default", races=True)
    assert compiled.plan.layers[0].kernel.band == 4
    assert len(compiled.words) > len(whole.words)


@pytest.mark.parametrize("threads", [8, 12, 64])
def test_engines_of_other_sizes(check_program, threads):
    maker = NetworkMaker(threads)
    maker.recurrent(maker.input((3, 12)), "LSTM", 20)
    machine = replace(MACHINES["default"], pe=PeSizes(threads=threads, regs=256, segments=8))
    assert calls_of(check_program(maker, machine, races=True)) == ["lstm"]


def spotter(cells="GRU", wide=16, steps=24, **attributes):
    """Keywords by a convolution and a recurrent layer, as ONNX Runtime quantises it; and an input."""
    maker = FloatMaker(0)
    x = maker.conv(maker.input((1, 1, steps, 10)), 8, 4, stride=2, pad=1)
    x = maker.activate(x, "Relu")
    _, channels, steps, rows = maker.shape(x)
    x, inputs = maker.reshape(maker.transpose(x, 2, 0, 1, 3), steps, 1, channels * rows), channels * rows
    weights = [maker.constant(maker.noise(1, GATES[cells] * wide, size) / size**0.5, np.float32)
               for size in (inputs, wide)]  # fmt: skip
    y = maker.other(cells, x, *weights, shape=(steps, 1, 1, wide), hidden_size=wide, **attributes)
    maker.matrix(maker.reshape(y, 1, steps * wide), 300)
    return quantised(maker.model(), [maker.draw(1)]), maker.draw(0)


@pytest.mark.parametrize(("cells", "attributes"), [("GRU", {"linear_before_reset": 1}), ("LSTM", {})])
def test_a_keyword_spotter(agree, cells, attributes):
    """Products follow the layer, more than the host would do."""
    model, inputs = spotter(cells, **attributes)
    graph, _ = agree(model, inputs)
    _, compiled = compare_program(graph, inputs, "default")
    assert calls_of(compiled) == [cells.lower()] and [node.kind for node in graph.tail] == ["Dequantize"]


def test_the_host_computes_what_an_engine_cannot(check_program):
    """At the end of a network; with products after it, the network is refused."""
    maker = NetworkMaker(1)
    x = maker.input((4, 5))
    y = maker.recurrent(x, "GRU", 10)
    graph = maker.graph()
    compiled, inputs = network.compile(graph, "unit"), maker.draw()
    np.testing.assert_array_equal(compiled.run(inputs)[y], evaluate(graph, inputs)[y])
    assert not compiled.plan.layers
    maker.matrix(y, 12)
    with pytest.raises(
        network.ModelError, match=r"^node 'n0' \(Recurrent\): it needs a processing engine with at least 8 threads"
    ):
        network.compile(maker.graph(), "unit")
    maker = NetworkMaker(1)
    maker.matrix(maker.recurrent(maker.input((2, 600)), "LSTM", 300), 12)
    sentence = "bytes for its states and for the weights of 32 units do not fit 1[0-9]*,[0-9]* bytes of shared memory"
    with pytest.raises(network.ModelError, match=sentence):
        network.compile(maker.graph(), "default")


def test_the_first_of_several_cores_does_it(check_program):
    maker = NetworkMaker(6)
    y = maker.recurrent(maker.matrix(maker.input((6, 64)), 20), "GRU", 24, after=True)
    maker.matrix(y, 64)
    compiled = check_program(maker, replace(MACHINES["default"], cores=2))
    assert find_core_races(compiled.programs, compiled.image, compiled.plan.machine.smem_bytes) == []


@pytest.mark.parametrize(("kind", "attributes", "sentence"), [
    ("RNN", {"activations": ["Relu"]}, "functions Relu are"),
    ("LSTM", {"input_forget": 1}, "an input_forget is"),
    ("GRU", {"clip": 1.0}, "a GRU with a clip is"),
])  # fmt: skip
def test_other_forms_are_only_at_the_end(kind, attributes, sentence):
    form, name = form_of(kind, attributes, steps=3, hidden=8)
    if not attributes.get("input_forget"):
        assert read_model(form.model(name)).tail
    y = form.node("Reshape", form.both(form.floats(name)), np.int64([3, 8]))
    product = form.quantise(form.node("MatMul", y, form.weights(8, 300, axis=1)[0]))
    assert sentence + " supported only at the end of a network" in refusal(form.model(product))
