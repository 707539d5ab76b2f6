"""Attention in groups of heads, and products that write columns of what a node joins."""

from itertools import pairwise

import pytest

from tilewright.network.drawn import NetworkMaker
from tilewright.network.lower import heads


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small attentions too are in groups."""
    monkeypatch.setattr(heads, "_LEAST", 0)


def softmax_kernels(compiled):
    return sum(layer.kernel is not None and layer.operator == "Softmax" for layer in compiled.plan.layers)


def attention(rows, size, count, batch=()):
    """Queries, keys and values of ``count`` heads, with a normalisation at the end."""
    maker = NetworkMaker(rows)
    x = maker.input((*batch, rows, size))
    perm = (1, 0, 2) if not batch else (0, 2, 1, 3)
    turned = (0, 2, 1) if not batch else (0, 1, 3, 2)
    q, k, v = (maker.transpose(maker.reshape(maker.matrix(x, size), *batch, rows, count, size // count), *perm)
               for _ in range(3))  # fmt: skip
    shares = maker.softmax(maker.product(q, maker.transpose(k, *turned)))
    y = maker.reshape(maker.transpose(maker.product(shares, v), *perm), *batch, rows, size)
    maker.normalise(maker.add(maker.matrix(y, size), x))
    return maker


@pytest.mark.parametrize(
    ("preset", "rows", "size", "count", "batch", "groups"),
    [
        ("default", 37, 96, 6, (), 4), ("unit", 12, 64, 4, (), 4), ("default", 20, 64, 4, (3,), 4),
        ("default", 24, 42, 3, (), 3), ("full", 50, 80, 5, (), 4),
    ],
)  # fmt: skip
def test_groups(check_program, preset, rows, size, count, batch, groups):
    compiled = check_program(attention(rows, size, count, batch), preset, races=True)
    assert softmax_kernels(compiled) == groups
    # Groups whose columns are multiples of 16 bytes are joined where they are made.
    aligned = size // count * (count // groups) % 16 == 0 and not batch
    assert ("Concat" in [layer.operator for layer in compiled.plan.layers]) != aligned


def test_products_and_softmax_take_turns(check_program):
    """While the softmax of a group is computed, the convolution engine makes other groups.

    No values, their transposes or their products come straight after what they read.
    """
    compiled = check_program(attention(128, 384, 4), "default", races=True)
    layers, spans = compiled.plan.layers, compiled.plan.spans
    softmax = [number for number, layer in enumerate(layers) if layer.operator == "Softmax"]
    first, last = (pick(span.start for span in spans if span.layer in softmax) for pick in (min, max))
    during = sum(span.end - span.start for span in spans if span.engine == "conv" and first < span.start < last)
    assert during > (last - first) / 2
    values = layers[max(softmax) + 1 : -2]  # without the last product and the normalisation
    assert [layer.operator for layer in values].count("MatMul") == 8
    for before, layer in pairwise(values):
        assert before.output.name not in [place.name for place in layer.sources]


@pytest.mark.parametrize("what", ["keys", "one", "other"])
def test_what_is_left_whole(check_program, what):
    """Keys that are an output, a head alone, and a softmax that no product follows."""
    if what == "one":
        maker = attention(20, 32, 1)
    else:
        maker = NetworkMaker(3)
        q, k = (maker.reshape(maker.matrix(maker.input((20, 32)), 32), 2, 20, 16) for _ in range(2))
        shares = maker.softmax(maker.product(q, maker.transpose(k, 0, 2, 1)))
        maker.outputs = [maker.product(shares, k), k] if what == "keys" else [maker.matrix(shares, 9)]
    compiled = check_program(maker, "default", races=True)
    assert softmax_kernels(compiled) == 1


def test_every_tensor_is_kept(check_program):
    compiled = check_program(attention(20, 32, 2), "default", every_tensor=True)
    assert softmax_kernels(compiled) == 1


@pytest.mark.parametrize("widths", [(16, 32), (32, 48), (16, 20)])
def test_a_product_beside_another_tensor(check_program, widths):
    maker = NetworkMaker(5)
    a, b = maker.input((24, 40)), maker.input((40, widths[0]))
    parts = [maker.product(a, b), maker.matrix(maker.input((24, 8)), widths[1])]
    maker.matrix(maker.concat(1, *parts), 12)
    check_program(maker, "default", races=True)
