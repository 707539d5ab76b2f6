"""Nodes that kernels of the processing engine compute: programs equal the evaluation, on engines of several sizes."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright import network
from tilewright.golden import PeSizes
from tilewright.network.drawn import NetworkMaker
from tilewright.network.machine import MACHINES
from tilewright.network.plan.instructions import Instructions

SHAPES = [
    (16, 128), (1, 16), (3, 5), (20, 197), (2, 3, 7, 33), (1, 2, 20, 64), (70, 48), (5, 700), (1, 4, 6, 1), (56, 8),
    pytest.param((300, 48), marks=pytest.mark.long),
]  # fmt: skip
#: Without the fast kernels.
SMALL = replace(MACHINES["default"], pe=PeSizes(threads=8, regs=32, segments=8, pages=256, lookup_words=256))


def kernels_of(compiled):
    return [layer.kernel.name for layer in compiled.plan.layers if layer.kernel]


def after_products(maker, x):
    """A network whose last node is no softmax, which the host would compute."""
    return maker.matrix(x, 24) if len(maker.tensors[x].shape) < 4 else maker.conv(x, 24)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("machine", "kinds"), [("default", ("uint8", "int8")), (SMALL, ("int8", "uint8"))])
def test_softmax(check_program, shape, machine, kinds):
    maker = NetworkMaker(1)
    x = maker.softmax(maker.input(shape, kinds[0]), -1, dtype=kinds[0] if shape[0] == 16 else kinds[1])
    after_products(maker, x)
    compiled = check_program(maker, machine, every_tensor=True, races=True)
    fast = shape[-1] >= 16 and machine == "default"
    assert kernels_of(compiled) == ["softmax_bytes" if fast else "softmax_any"]


@pytest.mark.parametrize("axis", range(4))
def test_softmax_along_any_dimension(check_program, axis):
    maker = NetworkMaker(2)
    maker.conv(maker.softmax(maker.conv(maker.input((1, 3, 20, 18)), 32), axis), 8)
    compiled = check_program(maker, "default", races=True)
    assert len(kernels_of(compiled)) == 1


@pytest.mark.parametrize(
    "quantity", [{"share": 255}, {"share": 1023}, {"share": 100, "zero": 30}, {"zero": 255}], ids=str
)
def test_softmax_of_any_quantity(check_program, quantity):
    maker = NetworkMaker(3)
    maker.matrix(maker.softmax(maker.input((30, 50)), **quantity), 20)
    check_program(maker, "default", every_tensor=True)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize(("machine", "kinds"), [("default", ("uint8", "int8")), (SMALL, ("int8", "uint8"))])
def test_normalisation(check_program, shape, dimensions, machine, kinds):
    maker = NetworkMaker(4)
    dtype = kinds[0] if shape[0] == 16 else kinds[1]
    maker.normalise(maker.input(shape, kinds[0]), dimensions, dtype=dtype, centred=shape[-1] != 33)
    compiled = check_program(maker, machine, races=True)
    assert kernels_of(compiled) == ["layer_norm" if machine == "default" else "layer_norm_any"]


@pytest.mark.parametrize("preset", ["unit", "default", pytest.param("full", marks=pytest.mark.long)])
@pytest.mark.parametrize("rows", [12, 37])
def test_attention(check_program, preset, rows):
    """Four heads of 16 channels, between two normalisations and a sum."""
    maker = NetworkMaker(rows)
    x = maker.normalise(maker.input((rows, 64)))
    q, k, v = (maker.transpose(maker.reshape(maker.matrix(x, 64), rows, 4, 16), 1, 0, 2) for _ in range(3))
    scores = maker.softmax(maker.product(q, maker.transpose(k, 0, 2, 1)))
    y = maker.reshape(maker.transpose(maker.product(scores, v), 1, 0, 2), rows, 64)
    maker.normalise(maker.add(maker.matrix(y, 64), x))
    compiled = check_program(maker, preset, races=True)
    assert len(kernels_of(compiled)) == 3


@pytest.mark.parametrize(
    "shape", [(1, 64, 20, 18), (2, 32, 9, 8), (1, 208, 6, 7), (3, 16, 1, 70), (2, 5, 9, 7)], ids=str
)
@pytest.mark.parametrize("machine", ["default", replace(MACHINES["default"], pe=PeSizes(threads=8, regs=48))])
def test_normalisation_of_channels(check_program, shape, machine):
    maker = NetworkMaker(12)
    maker.normalise_channels(maker.input(shape, "int8" if shape[0] > 1 else "uint8"), dtype="uint8")
    assert kernels_of(check_program(maker, machine, races=True)) == ["channel_norm"]


@pytest.mark.parametrize("operation", ["Div", "Sum"])
@pytest.mark.parametrize("shape", [(3, 5), (1, 6, 9, 7), (2, 3, 40), (1, 1000)], ids=str)
@pytest.mark.parametrize("preset", ["unit", "default"])
def test_arithmetic(check_program, operation, shape, preset):
    maker = NetworkMaker(8)
    inputs = [maker.input(shape, dtype) for dtype in ("uint8", "int8", "uint8")][: 2 if preset == "unit" else 3]
    maker.arithmetic(operation, *inputs)
    assert kernels_of(check_program(maker, preset, races=True)) == ["arithmetic"]


def test_arithmetic_of_zeros(check_program):
    """0 / 0 is not a number, and x / 0 is infinite."""
    maker = NetworkMaker(9)
    a, b = maker.input((2, 128)), maker.input((2, 128))
    y = maker.arithmetic("Div", a, b)
    zeros = [zero for _, zero in maker.nodes[-1].attributes.quantities]
    x = np.arange(256, dtype=np.uint8).reshape(2, 128)
    compiled = check_program(maker.graph(), "unit", {a: x, b: np.full((2, 128), zeros[1], np.uint8)})
    values = network.evaluate(compiled.graph, {a: x, b: np.full((2, 128), zeros[1], np.uint8)})[y]
    assert values.flat[zeros[0]] == 0 and values.flat[max(zeros[0] - 1, 0)] == 0 and values.flat[255] == 255


@pytest.mark.parametrize(
    ("rows", "depth", "columns", "dtype"), [(32, 3072, 300, "uint8"), (45, 4112, 50, "int8"), (64, 6016, 256, "uint8")]
)
def test_products_of_long_rows(check_program, rows, depth, columns, dtype):
    """They are two or three layers of sums, and a kernel."""
    maker = NetworkMaker(rows)
    maker.matrix(maker.input((rows, depth)), columns, dtype=dtype)
    assert set(kernels_of(check_program(maker, "default", races=True))) == {"requantise"}


def test_products_stay_whole_without_kernels(check_program):
    maker = NetworkMaker(11)
    maker.matrix(maker.input((32, 3072)), 40)
    assert not kernels_of(check_program(maker, replace(MACHINES["default"], pe=None)))
    assert not kernels_of(check_program(maker, replace(MACHINES["default"], smem_bytes=256 << 10)))


def test_jobs_run_beside_kernels(check_program):
    """The products of the values do not wait for the softmax: they run meanwhile, in other shared memory."""
    maker = NetworkMaker(10)
    x = maker.input((256, 64))
    q, k, v = (maker.matrix(x, 64) for _ in range(3))
    scores = maker.softmax(maker.product(q, maker.transpose(k, 1, 0)))
    maker.normalise(maker.matrix(maker.product(scores, v), 64))
    compiled = check_program(maker, "default", races=True)
    spans = compiled.plan.spans
    (kernel,) = (number for number, layer in enumerate(compiled.plan.layers) if layer.operator == "Softmax")
    first, last = (
        pick(span.start for span in spans if span.layer == kernel and span.engine == "pe") for pick in (min, max)
    )
    assert any(first < span.start < last for span in spans if span.engine == "conv")


def test_only_few_products_follow_a_softmax_of_the_host():
    maker = NetworkMaker(5)
    x = maker.conv(maker.input((1, 64, 16, 16)), 64)
    maker.conv(maker.softmax(x, 1), 1)
    compiled = network.compile(maker.graph(), "default")
    assert not kernels_of(compiled) and [node.kind for node in compiled.graph.tail] == ["Softmax", "Conv"]


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        (replace(MACHINES["default"], pe=None), "it needs a processing engine with arithmetic"),
        ("lean", "it needs a processing engine with arithmetic"),
        ("ecp5", "kernel layer_norm needs a processing engine with the unit f32"),
        (replace(SMALL, pe=replace(SMALL.pe, kernel_words=32)), "has more instructions than the 32"),
        (
            replace(SMALL, pe=replace(SMALL.pe, pages=4)),
            "rows of 1024 bytes are 8 pages, and the processing engine has 4",
        ),
        (replace(SMALL, pe=replace(SMALL.pe, segments=4)), "needs 5 segments, and the processing engine has 4"),
        (replace(SMALL, smem_bytes=4096), "a row of 1024 bytes does not fit -"),
    ],
)
def test_what_an_engine_lacks_is_said(machine, sentence):
    maker = NetworkMaker(6)
    maker.matrix(maker.normalise(maker.input((4, 1024))), 1)
    with pytest.raises(network.ModelError, match=sentence):
        network.compile(maker.graph(), machine)


@pytest.mark.parametrize(
    ("shape", "machine", "sentence"),
    [
        ((1, 16, 300, 300), "default", "90,000 pixels of an image are more than 65,536"),
        ((1, 16, 4, 4), "unit", "more instructions than the 64"),
    ],
)
def test_channels_that_no_kernel_normalises(shape, machine, sentence):
    maker = NetworkMaker(6)
    maker.conv(maker.normalise_channels(maker.input(shape)), 16)
    with pytest.raises(network.ModelError, match=sentence):
        network.compile(maker.graph(), machine)


@pytest.mark.parametrize("preset", ["unit", "lean", "ecp5", "default"])
def test_the_host_computes_at_the_end_what_an_engine_lacks(check_program, preset):
    maker = NetworkMaker(14)
    x = maker.normalise(maker.matrix(maker.input((20, 64)), 48))
    maker.arithmetic("Sum", *(maker.function(x) for _ in range(3)))
    compiled = check_program(maker, preset)
    hosted = {"unit": ["Arithmetic"], "default": []}.get(preset)
    kinds = [node.kind for node in compiled.graph.tail]
    assert kinds == hosted or (hosted is None and kinds[0] == "Normalise")


def test_sums_of_squares_have_31_bits():
    maker = NetworkMaker(6)
    maker.matrix(maker.normalise(maker.input((1, 33026))), 16)
    with pytest.raises(network.ModelError, match="the sum of squares of 33026 elements has more than 31 bits"):
        network.compile(maker.graph(), "full")


def test_rows_of_zeros_have_no_deviation(check_program):
    maker = NetworkMaker(7)
    x = maker.input((20, 32))
    maker.normalise(x)
    check_program(maker.graph(), "default", {x: np.zeros((20, 32), np.uint8)})


@pytest.mark.parametrize(("kernel_words", "loads"), [(512, 2), (384, 6)])
def test_kernels_that_alternate(check_program, kernel_words, loads):
    """They lie in instruction memory side by side, and are loaded once, unless there is room for one of them only."""
    machine = MACHINES["default"]
    machine, maker = replace(machine, pe=replace(machine.pe, kernel_words=kernel_words)), NetworkMaker(5)
    x = maker.input((20, 64))
    for _ in range(3):
        x = maker.normalise(maker.matrix(maker.softmax(maker.matrix(x, 64), -1), 64))
    maker.matrix(x, 20)
    compiled = check_program(maker, machine, every_tensor=True, races=True)
    kernels = [layer.kernel for layer in compiled.plan.layers if layer.kernel]
    assert [kernel.name for kernel in kernels] == ["softmax_bytes", "layer_norm"] * 3
    assert {kernel.index for kernel in kernels} == ({0, len(kernels[0].code)} if kernel_words == 512 else {0})
    runs = [each for each in compiled.plan.schedules[0].instructions if isinstance(each, Instructions)]
    # Their tables take turns in the lookup memory: each has a run of its own.
    assert len(runs) == loads + len(kernels)
