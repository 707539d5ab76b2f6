"""Every call of the network package with arguments of wrong kinds, and inputs in all forms in which they are taken."""

import pytest

from support.wrong_kinds import wrong_answers
from tilewright import network
from tilewright.golden import ConvParams
from tilewright.network.drawn import NetworkMaker
from tilewright.network.models.small import build_small, small_input
from tilewright.network.reader import read_model
from tilewright.tools.cli.run import array_bytes, read_inputs

MODEL = build_small("mixed")


def drawn(inputs):
    """A network of one node, and its inputs."""
    maker = NetworkMaker(seed=1)
    given = [maker.input((1, 3, 4, 4)) for _ in range(inputs)]
    maker.conv(*given, 4, 1) if inputs == 1 else maker.add(*given)
    return maker.graph(), maker.draw()


GRAPH, INPUTS = drawn(1)
TWO, BOTH = drawn(2)
((NAME, ARRAY),) = INPUTS.items()
(OUTPUT,) = GRAPH.outputs


@pytest.fixture(scope="module")
def compiled():
    return network.compile(GRAPH, "unit")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "mixed.onnx"
    path.write_bytes(MODEL.SerializeToString())
    return path


#: Each call of a model, its program and the path of its file, and what makes right arguments for it.
CALLS = {
    "evaluate": (lambda program, path: network.evaluate, lambda: {"graph": GRAPH, "inputs": INPUTS}),
    "evaluate of one array": (lambda program, path: network.evaluate, lambda: {"graph": GRAPH, "inputs": ARRAY}),
    "evaluate of several": (lambda program, path: network.evaluate, lambda: {"graph": TWO, "inputs": BOTH}),
    "an input by its name": (
        lambda program, path: lambda value: network.evaluate(GRAPH, {NAME: value}), lambda: {"value": ARRAY}),
    "run": (lambda program, path: program.run, lambda: {"inputs": ARRAY, "on": "golden", "names": None}),
    "run_golden": (lambda program, path: program.run_golden, lambda: {"inputs": ARRAY}),
    "memory": (lambda program, path: program.memory, lambda: {"inputs": ARRAY}),
    "tensors": (lambda program, path: lambda **given: program.tensors(**{"data": program.image} | given),
                lambda: {"names": [OUTPUT]}),
    "tensors in memory": (lambda program, path: lambda data: program.tensors(program.image if data is True else data),
                          lambda: {"data": True}),
    "tensor": (lambda program, path: lambda name: program.tensor(program.image, name), lambda: {"name": OUTPUT}),
    "compile": (lambda program, path: network.compile,
                lambda: {"source": GRAPH, "preset": "unit", "every_tensor": False, "layers": 1}),
    "read": (lambda program, path: lambda path=path: network.read(path), dict),
    "read a path": (lambda program, path: lambda given: network.read(path if given is ... else given),
                    lambda: {"given": ...}),
    "read_model": (lambda program, path: read_model, lambda: {"model": MODEL}),
    "Machine": (lambda program, path: network.Machine,
                lambda: {"conv": ConvParams(), "smem_bytes": 1 << 17, "bus_bytes": 64, "latency": 100,
                         "unaligned": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_a_wrong_kind_is_one_sentence(name, compiled, path):
    call, arguments = CALLS[name]
    assert wrong_answers(call(compiled, path), arguments) == []


@pytest.mark.parametrize(
    ("graph", "inputs", "sentence"),
    [
        (GRAPH, [1, 2], f"inputs must be a dictionary with an array for {NAME!r}, or the array alone, not [1, 2]"),
        (GRAPH, None, f"inputs must be a dictionary with an array for {NAME!r}, or the array alone, not None"),
        (GRAPH, {"z": ARRAY}, f"the network has no input 'z', but {NAME!r}"),
        (GRAPH, {3: ARRAY}, f"the network has no input 3, but {NAME!r}"),
        (GRAPH, {NAME: [[1], [2, 3]]}, f"input {NAME!r} must be a numpy array, not [[1], [2, 3]]"),
        (GRAPH, {NAME: b"12"}, f"input {NAME!r} must be a numpy array, not b'12'"),
        (GRAPH, ARRAY.astype(object), f"input {NAME!r} must be {ARRAY.dtype}, not object"),
        (TWO, ARRAY, "the network has the inputs {}: they must be a dictionary, not an array of shape {} and {}".format(
            ", ".join(map(repr, TWO.inputs)), ARRAY.shape, ARRAY.dtype)),
        (TWO, None, "inputs must be a dictionary with an array for {}, not None".format(
            ", ".join(map(repr, TWO.inputs)))),
    ],
)  # fmt: skip
def test_a_wrong_input_is_said(graph, inputs, sentence):
    for call in (lambda: network.evaluate(graph, inputs), lambda: network.compile(graph, "unit").run(inputs)):
        with pytest.raises(network.ModelError) as caught:
            call()
        assert str(caught.value) == sentence


def test_an_array_alone_is_the_only_input(compiled):
    """numpy once answered that the truth value of an array is ambiguous."""
    expected = network.evaluate(GRAPH, INPUTS)[OUTPUT]
    assert (network.evaluate(GRAPH, ARRAY)[OUTPUT] == expected).all()
    assert (compiled.run(ARRAY)[OUTPUT] == expected).all()
    assert (compiled.tensors(compiled.run_golden(ARRAY))[OUTPUT] == expected).all()


def test_either_byte_order_is_taken(tmp_path, compiled):
    """Also of a file: golden takes either one."""
    swapped = ARRAY.astype(ARRAY.dtype.newbyteorder("S"))
    file = tmp_path / "x.npy"
    file.write_bytes(array_bytes(swapped))
    expected = network.evaluate(GRAPH, INPUTS)[OUTPUT]
    for inputs in (swapped, read_inputs(file, GRAPH)):
        assert (network.evaluate(GRAPH, inputs)[OUTPUT] == expected).all()
        assert (compiled.run(inputs)[OUTPUT] == expected).all()
        assert (compiled.memory(inputs) == compiled.memory(INPUTS)).all()


def test_an_array_of_floats_of_the_other_byte_order():
    graph = read_model(build_small("signed"))
    ((name, value),) = small_input("signed", seed=0).items()
    swapped = {name: value.astype(value.dtype.newbyteorder("S"))}
    for each, seen in network.evaluate(graph, swapped).items():
        assert (seen == network.evaluate(graph, {name: value})[each]).all()


def test_a_name_that_is_no_tensor_is_said(compiled):
    with pytest.raises(network.ModelError, match=r"^the network has no tensor 'z'$"):
        compiled.run(ARRAY, names=["z"])
    with pytest.raises(TypeError, match=r"^names must be a list, not 'y'$"):
        compiled.run(ARRAY, names="y")
