"""Every operator as a program on the golden core, compared with the evaluation."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright import network
from tilewright.network import Concat, Graph, ModelError, Node, Scale, Tensor
from tilewright.network.drawn import NetworkMaker


@pytest.fixture
def check(check_program):
    """Checks the program of a NetworkMaker, by default with every tensor, and returns the Compiled."""
    return lambda maker, preset="default", every_tensor=True: check_program(maker, preset, every_tensor=every_tensor)


@pytest.mark.parametrize("preset", ["unit", "ecp5", "default", "full"])
@pytest.mark.parametrize(
    ("shape", "out_channels", "kernel", "options"),
    [
        ((1, 3, 15, 13), 16, 7, {"stride": 2}),
        ((1, 17, 9, 11), 35, 3, {}),
        ((1, 8, 9, 20), 21, (1, 5), {"pad": (0, 1, 0, 3), "dilation": (1, 3)}),
        ((1, 5, 12, 12), 7, (4, 2), {"pad": (3, 0, 2, 1), "stride": (3, 2)}),
        ((1, 12, 10, 6), 20, 3, {"groups": 4}),
        ((1, 24, 13, 7), 24, 5, {"groups": 24, "stride": 2}),
        ((1, 6, 5, 5), 12, 3, {"groups": 6}),
        ((3, 16, 6, 5), 16, 3, {}),
        ((1, 20, 7, 7), 40, 1, {"weights": "uint8", "zeros": "channels"}),
        ((1, 20, 7, 7), 20, 3, {"weights": "uint8", "zeros": "channels", "groups": 20}),
        ((1, 4, 6, 6), 8, 3, {"pad": 4}),
    ],
)
def test_convolution(preset, shape, out_channels, kernel, options, check):
    maker = NetworkMaker(len(shape) + out_channels)
    maker.conv(maker.input(shape), out_channels, kernel, **options)
    check(maker, preset)


@pytest.mark.parametrize(
    ("groups", "zeros", "parts"),
    # Of 32 channels a step; another zero point ends a job.
    [
        (16, 7, [32, 32]),
        (4, 0, [32, 32]),
        (2, 0, [32, 32]),
        (16, [3] * 20 + [9] * 44, [20, 32, 12]),
        (16, "channels", None),
    ],
)
def test_small_groups_are_one_job(groups, zeros, parts, check):
    maker = NetworkMaker(5)
    maker.conv(maker.input((1, 64, 9, 7)), 64, 3, groups=groups, weights="uint8", zeros=zeros)
    (layer,) = check(maker).plan.layers
    assert parts is None or [part.out_channels[1] for part in layer.parts] == parts
    assert len(layer.parts) < groups + 3
    assert layer.macs == 64 * (64 // groups) * 9 * 9 * 7


@pytest.mark.parametrize("given", ["uint8", "int8"])
@pytest.mark.parametrize("made", ["uint8", "int8"])
@pytest.mark.parametrize("weights", ["uint8", "int8"])
def test_types(given, made, weights, check):
    maker = NetworkMaker()
    x = maker.conv(maker.input((1, 9, 8, 7), given), 18, 3, dtype=made, weights=weights, zeros=3)
    x = maker.conv(x, 18, 3, groups=18, dtype=given, weights=weights)
    factors = maker.pool(x, "sum", maker.tensors[x].shape[2:], dtype=weights)
    maker.pool(maker.mul(x, factors, made), "sum", 3, stride=2, pad=1, dtype=given)
    check(maker)


@pytest.mark.parametrize("columns", [10, 100])
@pytest.mark.parametrize("shape", [(1, 33), (5, 48), (2, 3, 20)])
def test_matrix(shape, columns, check):
    maker = NetworkMaker()
    x = maker.matrix(maker.input(shape), columns)
    maker.matrix(x, 7)
    check(maker)
    maker.floats(x, columns + 1)
    check(maker, every_tensor=False)


def test_the_last_product_of_a_feature_map_is_no_floats():
    maker = NetworkMaker()
    maker.floats(maker.input((1, 3, 4, 5)), 6)
    with pytest.raises(ModelError, match=r"^node 'n0' \(Conv\): the products of a feature map, \[1, 3, 4, 5\], are"):
        network.compile(maker.graph())


@pytest.mark.parametrize("every_tensor", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_additions(dtype, every_tensor, check):
    maker = NetworkMaker()
    a = maker.input((1, 10, 9, 8), dtype)
    b = maker.conv(a, 10, 3, dtype=dtype)
    c = maker.add(b, a)
    maker.add(maker.add(c, c), maker.conv(c, 10, 1, dtype=dtype))
    compiled = check(maker, every_tensor=every_tensor)
    assert len(compiled.plan.layers) == (5 if every_tensor else 4)


def test_a_sum_of_different_types_is_refused():
    maker = NetworkMaker()
    maker.add(maker.input((1, 4, 4, 4), "int8"), maker.input((1, 4, 4, 4), "uint8"))
    with pytest.raises(ModelError, match=r"^node 'n0' \(Add\): operands of int8 and uint8"):
        network.compile(maker.graph())


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("kind", ["sum", "max"])
@pytest.mark.parametrize("counted", [False, True])
def test_pools(kind, dtype, counted, check):
    maker = NetworkMaker()
    x = maker.input((1, 19, 20, 17), dtype)
    y = maker.pool(x, kind, 3, stride=2, pad=1, counted=counted)
    y = maker.pool(y, kind, (2, 3), stride=(1, 2), pad=(1, 1, 0, 1), counted=counted)
    maker.pool(y, kind, maker.tensors[y].shape[2:])
    check(maker)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_pads(dtype, check):
    maker = NetworkMaker()
    x = maker.pad(maker.input((1, 7, 6, 5), dtype), (0, 3, 2, 1), (0, 0, 4, 6))
    maker.pad(x, (0, 0, 0, 0), (0, 20, 0, 0))
    check(maker)


@pytest.mark.parametrize("preset", ["unit", "default"])
@pytest.mark.parametrize(
    ("shape", "before", "after"),
    [
        ((2, 3, 4, 5), (1, 0, 2, 1), (2, 1, 0, 3)),
        ((3, 20), (0, 2), (2, 1)),
        ((1, 7, 40), (0, 0, 3), (0, 0, 5)),
        ((2, 3, 7), (0, 0, 0), (0, 0, 0)),
        ((6,), (4,), (3,)),
        ((2, 3, 4, 5, 6), (1, 0, 1, 0, 1), (0, 2, 0, 2, 0)),
    ],
)
def test_pads_of_any_dimension(shape, before, after, preset, check):
    maker = NetworkMaker()
    x = maker.pad(maker.input(shape), before, after)
    maker.concat(0, x, x, scales=[(0.02, 3), (0.031, 100), (0.025, 7)])
    check(maker, preset)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_concatenations(axis, check):
    maker = NetworkMaker()
    sizes = [[1, 6, 7, 8] for _ in range(3)]
    for number, size in enumerate(sizes):
        size[axis] += 5 * number
    parts = [maker.input(size) for size in sizes]
    x = maker.concat(axis, *parts)
    y = maker.concat(axis, *parts, scales=[(0.02, 3), (0.031, 100), (0.007, 255), (0.025, 7)])
    maker.concat(1, x, y)
    check(maker)


@pytest.mark.parametrize("every_tensor", [False, True])
def test_orders(every_tensor, check):
    maker = NetworkMaker()
    x = maker.conv(maker.input((1, 3, 12, 8)), 12, 3)
    # A shuffle of channels.
    x = maker.reshape(maker.transpose(maker.reshape(x, 1, 3, 4, 12, 8), 0, 2, 1, 3, 4), 1, 12, 12, 8)
    x = maker.conv(x, 8, 3, stride=2)
    x = maker.transpose(x, 0, 3, 2, 1)
    x = maker.matrix(maker.reshape(x, 1, 192), 20)
    maker.matrix(maker.reshape(x, 4, 5), 6)
    compiled = check(maker, every_tensor=every_tensor)
    assert every_tensor or sum(bool(layer.moves) for layer in compiled.plan.layers) == 1


def test_matrices_of_feature_maps(check):
    maker = NetworkMaker()
    x = maker.matrix(maker.input((2, 3, 5, 7)), 6)
    maker.matrix(maker.conv(x, 4, 3), 9)
    check(maker)


def test_orders_that_do_not_nest(check):
    maker = NetworkMaker()
    maker.conv(maker.reshape(maker.input((2, 7, 12, 12)), 6, 4, 14, 6), 3)
    check(maker, every_tensor=False)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 20), (2, 3, 7), (6,)])
def test_concatenations_of_other_dimensions(shape, check):
    maker = NetworkMaker()
    parts = [maker.input(shape), maker.input((shape[0] + 2, *shape[1:]))]
    maker.concat(0, *parts)
    maker.concat(0, *parts, scales=[(0.02, 3), (0.031, 100), (0.025, 7)])
    check(maker)


@pytest.mark.parametrize("preset", ["unit", "default"])
@pytest.mark.parametrize("shape", [(1, 20, 14, 15), (3, 40), (2, 3, 20), (6,)])
def test_functions_of_parts(shape, preset, check_program):
    """Each part of a concatenation through a function of its own."""
    maker = NetworkMaker(7)
    scales = [(0.05, 3), (0.06, 128), (0.02, 0), (0.1, 100)]
    parts = [maker.input(shape) for _ in scales[1:]]
    last = maker.concat(len(shape) - 1, *parts, scales=scales)
    alone = maker.concat(0, parts[0], scales=[(0.05, 128), (0.1, 7)])
    table = np.random.default_rng(1).integers(0, 256, 256).astype(np.uint8)
    graph, inputs = maker.graph(last, alone), maker.draw()
    tables = graph.nodes[0].attributes.tables
    random = Concat(len(shape) - 1, (*tables[:2], table))
    graph = replace(graph, nodes=(replace(graph.nodes[0], attributes=random), *graph.nodes[1:]))
    check_program(graph, preset, inputs)


@pytest.mark.parametrize("preset", ["unit", "default"])
@pytest.mark.parametrize("shape", [(1, 197, 768), (1, 65537), (196, 512), (70001,)])
def test_single_elements_of_large_tensors(shape, preset, check):
    """More elements than a job has channels, and too many rows for a band each."""
    maker = NetworkMaker()
    x = maker.input(shape)
    maker.concat(0, maker.add(maker.function(x), x), scales=[(0.03, 5), (0.02, 7)])
    compiled = check(maker, preset)
    parts = sum(len(layer.parts) for layer in compiled.plan.layers)
    assert sum(compiled.plan.schedules[0].jobs.values()) < parts * np.prod(shape) // 1000


@pytest.mark.parametrize("shape", [(5, 48), (1, 33), (1, 64, 64), (2, 3, 20), (1, 7, 13)])
def test_products_with_additions(shape, check):
    """A matrix product and its addition are one layer; readers see its bytes as other pixels."""
    maker = NetworkMaker()
    x = maker.input(shape)
    y = maker.matrix(maker.matrix(x, 80), shape[-1])
    maker.matrix(maker.function(maker.add(y, x)), 10)
    assert len(check(maker).plan.layers) == 5
    assert len(check(maker, every_tensor=False).plan.layers) == 3


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_clamp_of_a_tensor_with_other_readers(dtype, check_program):
    shift = 128 * (dtype == "uint8")
    x, middle = Tensor("x", (1, 5, 6, 7), dtype), Tensor("m", (1, 5, 6, 7), dtype)
    y = replace(middle, name="y")
    numbers = np.arange(256).astype(np.uint8).view(dtype)
    nodes = [Node(name, inputs, output, Concat(0, (np.clip(numbers, shift - low, shift + 20),)))
             for name, inputs, output, low in (("clamp", ("x",), "m", 50), ("again", ("m",), "y", 30))]  # fmt: skip
    graph = Graph(("x",), ("m", "y"), {tensor.name: tensor for tensor in (x, middle, y)}, tuple(nodes))
    inputs = {"x": np.random.default_rng(1).integers(0, 256, x.shape).astype(np.uint8).view(dtype)}
    check_program(graph, inputs=inputs)


def test_nodes_of_one_name(check_program):
    """Intermediate results of nodes with equal names are different tensors."""
    maker = NetworkMaker()
    x = maker.input((1, 6, 12, 12))
    ends = [maker.matrix(x, 9), maker.matrix(x, 7)]
    parts = [maker.reshape(x, 6, 12, 12), maker.reshape(x, 6, 12, 12)]
    ends += [maker.concat(0, *parts, scales=[(0.02, 3), (scale, 100), (0.025, 7)]) for scale in (0.031, 0.012)]
    ends += [maker.conv(maker.reshape(x, *shape), 3) for shape in ((4, 6, 4, 9), (9, 4, 2, 12))]
    graph, inputs = maker.graph(*ends), maker.draw()
    graph = replace(graph, nodes=tuple(replace(node, name="same") for node in graph.nodes))
    check_program(graph, inputs=inputs)


@pytest.mark.parametrize("every_tensor", [False, True])
@pytest.mark.parametrize("given", ["uint8", "int8"])
@pytest.mark.parametrize("preset", ["unit", "ecp5", "default", "lean", "full"])
def test_products_of_two_matrices(preset, given, every_tensor, check):
    """Operands that lie in rows, or are moved; results in their own order, in another one, or as sums."""
    maker = NetworkMaker(3)
    a, b = maker.input((1, 6, 17, 20), given), maker.input((2, 6, 20, 33), "uint8")
    y = maker.transpose(maker.product(a, b, "int8"), 0, 2, 3, 1)
    x = maker.conv(maker.input((1, 48, 4, 8)), 48, 1)
    rows = maker.transpose(maker.reshape(x, 1, 3, 16, 32), 0, 1, 3, 2)
    gram = maker.product(rows, maker.transpose(rows, 0, 1, 3, 2), given)
    sums = maker.product(gram, rows, "int32")
    end = maker._node((sums,), maker.tensors[sums].shape, "float32", Scale(np.full(16, 0.5, np.float32)))
    maker.outputs = [y, end]
    check(maker, preset, every_tensor=every_tensor)
