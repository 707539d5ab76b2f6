"""Cuts of layers: pixels that boxes step over, gaps between pixels, and expected costs."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright import network
from tilewright.golden import CONV_PRESETS
from tilewright.network.drawn import NetworkMaker
from tilewright.network.lower.lowering import lower
from tilewright.network.lower.places import Cut, as_cut
from tilewright.network.machine import MACHINES
from tilewright.network.tiling import costs
from tilewright.network.tiling.costs import cheapest_gap, moved, plan_part
from tilewright.network.tiling.cuts import strided, with_gaps


def sources(compiled):
    return [place for (group,) in compiled.plan.tiles for layer, _ in group for place in layer.sources]


@pytest.mark.parametrize("stride", [2, 3, (2, 1), (1, 8)])
@pytest.mark.parametrize("shape", [(1, 64, 15, 13), (2, 48, 8, 9)])
@pytest.mark.parametrize("preset", ["unit", "default"])
def test_windows_of_one_pixel_load_what_they_read(preset, shape, stride, check_program):
    maker = NetworkMaker(shape[1])
    maker.conv(maker.input(shape), 40, 1, stride=stride)
    compiled = check_program(maker, preset)
    pair = stride if isinstance(stride, tuple) else (stride, stride)
    assert all(place.step == pair for place in sources(compiled))
    brought = sum(
        one.input_bytes[0] * len(one.bands(part)) * place.channels / place.pixel_pitch
        for part, one in compiled.plan.tiles[0][0]
        for place in part.sources
    )
    outputs = [part.output for part, _ in compiled.plan.tiles[0][0]]
    ranges = len({output.first_channel for output in outputs if isinstance(output, Cut)}) or 1
    rows, columns = (-(-size // step) for size, step in zip(shape[2:], pair, strict=True))
    assert brought <= 2 * ranges * shape[0] * rows * columns * shape[1]


def layer_of(maker):
    (layer,) = lower(maker.graph(), MACHINES["default"], 128 << 10).layers
    return layer


@pytest.mark.parametrize("change", [{"stride": 1}, {"stride": 9}, {"stride": 2, "pad": 1}])
def test_windows_that_load_all_pixels(change):
    maker = NetworkMaker()
    maker.conv(maker.input((1, 32, 20, 20)), 32, 1, **change)
    layer = layer_of(maker)
    assert strided(layer) is layer


# Of rows of 32 bytes, two blocks of two points come together: 64 bytes of each, which lie in other banks where pixels
# are an odd multiple of 64 bytes apart. With one block four points come, 32 bytes of each.
@pytest.mark.parametrize(
    ("channels", "kernel", "groups", "gap"),
    [(256, 3, 1, 64), (64, 3, 1, 0), (512, 1, 1, 64), (32, 1, 1, 0), (128, 3, 128, 32), (96, 3, 96, 0)],
)
def test_gaps(channels, kernel, groups, gap):
    maker = NetworkMaker()
    maker.conv(maker.input((1, channels, 14, 14)), channels, kernel, groups=groups)
    layer, conv = layer_of(maker), CONV_PRESETS["default"]
    assert cheapest_gap(layer.parts, channels, conv) == gap
    (place,) = with_gaps(layer, conv).sources
    assert place.pixel_pitch == channels + gap
    (part,) = layer.parts
    reads = [plan_part(part, channels, 14, 14, channels + bytes_between, conv)[1].reads for bytes_between in (0, gap)]
    assert reads[1] < reads[0] or not gap


def test_a_gap_of_eight_bytes():
    """Blocks of eight bytes of eight points: pixels of 40 bytes meet in two banks, those 48 bytes apart in none."""
    maker = NetworkMaker()
    maker.conv(maker.input((1, 40, 28, 28)), 240, 1)
    (place,) = with_gaps(layer_of(maker), CONV_PRESETS["default"]).sources
    assert place.pixel_pitch == 48


def test_a_network_with_gaps(check_program):
    maker = NetworkMaker()
    x = maker.conv(maker.input((1, 256, 14, 14)), 256, 3)
    maker.conv(x, 256, 3, stride=2, groups=256)
    compiled = check_program(maker)
    assert any(isinstance(place, Cut) and place.gap for place in sources(compiled))


def test_cycles_of_boxes():
    maker = NetworkMaker()
    maker.conv(maker.input((1, 96, 4, 10)), 8, 1)
    (place,) = layer_of(maker).sources
    assert moved(place, 960, 64) == 15
    whole = as_cut(place)
    assert moved(whole, 960, 64) == 15
    assert moved(replace(whole, gap=32), 1280, 64) == 25  # a word and a half of each pixel, and its gap
    assert moved(replace(whole, channels=32), 320, 64) == 10  # a half of a word each
    assert moved(replace(whole, channels=64), 640, 64) == 15  # one or two words each


def test_pixels_that_are_longer_than_a_row_of_a_box(check_program):
    maker = NetworkMaker()
    maker.conv(maker.input((1, 2048, 7, 7)), 128, 1)
    compiled = check_program(maker)
    assert all(place.long and place.gap for place in sources(compiled))


def test_equal_parts_are_costed_once():
    """Each channel has its own zero point and is a job, but there are only a few kinds of jobs."""
    maker = NetworkMaker(8)
    x = maker.conv(maker.input((1, 16, 28, 28)), 96, weights="uint8", zeros="channels")
    graph = maker.graph(maker.conv(x, 96, 3, groups=96, weights="uint8", zeros="channels"))
    zeros = np.random.default_rng(1).permutation(96).astype(np.int32)
    nodes = tuple(replace(node, attributes=replace(node.attributes, w_zero=zeros)) for node in graph.nodes)
    before = sum(costs._planned.cache_info()[:2])
    compiled = network.compile(replace(graph, nodes=nodes), "default")
    assert sum(len(layer.stages) for layer in compiled.plan.layers) == 2 * 96
    assert sum(costs._planned.cache_info()[:2]) - before < 12_000
