"""Global averages in every form: one window of runs of channels, sums of windows, rows at a time, a single window."""

import pytest

from tilewright.network.drawn import NetworkMaker
from tilewright.network.lower.places import Held

#: Channels, height, width, and the layers that an engine with 16-bit types makes of them.
SHAPES = [(96, 14, 14, 1), (80, 16, 16, 1), (22, 12, 9, 1), (32, 70, 35, 2), (24, 60, 42, 2), (72, 80, 15, 2),
          (40, 25, 60, 2)]  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(("channels", "height", "width", "count"), SHAPES)
def test_global_averages(channels, height, width, count, dtype, check_program):
    maker = NetworkMaker(channels)
    maker.pool(maker.input((1, channels, height, width), dtype), "sum", (height, width))
    assert len(check_program(maker, races=True).plan.layers) == count


@pytest.mark.parametrize(("channels", "height", "width"), [(48, 14, 14), (16, 20, 20), (7, 40, 33)])
def test_global_averages_without_16_bits(channels, height, width, check_program):
    maker = NetworkMaker(channels)
    maker.pool(maker.input((1, channels, height, width)), "sum", (height, width))
    check_program(maker, "unit", races=True)


@pytest.mark.parametrize("every_tensor", [False, True])
def test_an_average_reads_a_map_that_stays_in_another_layout(every_tensor, check_program):
    """As in squeeze-and-excitation: the map is read again later."""
    maker = NetworkMaker(3)
    x = maker.conv(maker.input((1, 32, 14, 14)), 96)
    y = maker.conv(maker.conv(maker.pool(x, "sum", 14), 8), 96)
    maker.mul(x, y)
    layers = check_program(maker, every_tensor=every_tensor, races=True).plan.layers
    (source,) = next(layer for layer in layers if layer.operator == "Pool").sources
    assert isinstance(source, Held) and (source.height, source.width, source.channels) == (196, 3, 32)


#: Channels and sides of the map, and the stride of the layer that makes it.
BANDS = [(32, 56, 1), (144, 28, 1), (96, 28, 2), (24, 112, 1)]


@pytest.mark.parametrize(("channels", "side", "stride"), BANDS)
def test_sums_of_bands_in_shared_memory(channels, side, stride, check_program):
    maker = NetworkMaker(channels + side)
    x = maker.conv(maker.input((1, 16, side * stride, side * stride)), channels)
    x = maker.conv(x, channels, 3, groups=channels, stride=stride)
    maker.mul(x, maker.conv(maker.pool(x, "sum", side), channels))
    layers = check_program(maker, races=True).plan.layers
    (layer,) = (layer for layer in layers if layer.sums)
    assert layer.name.endswith(layer.sums.name) and isinstance(layer.sums.output, Held)


def test_sums_of_ranges_of_channels(check_program):
    """A map of which only some channels fit; the last range has fewer runs than the others."""
    maker = NetworkMaker(6)
    x = maker.conv(maker.input((1, 336, 14, 14)), 336, 5, groups=336)
    maker.mul(x, maker.conv(maker.pool(x, "sum", 14), 336, 1))
    plan = check_program(maker, races=True).plan
    (tiles,) = next(tiles for layer, tiles in zip(plan.layers, plan.tiles, strict=True) if layer.sums)
    assert [part.output.channels for part, _ in tiles] == [96, 96, 96, 48]


@pytest.mark.parametrize("every_tensor", [False, True])
def test_sums_that_are_read_again_are_stored(every_tensor, check_program):
    """Sums of bands only stay in shared memory; an addition of a tensor to itself is no sum of lines."""
    maker = NetworkMaker(5)
    x = maker.conv(maker.input((1, 32, 14, 14)), 32, 3, groups=32)
    y = maker.pool(maker.add(x, x), "sum", 14)
    maker.outputs = [maker.conv(y, 8), maker.mul(x, y)]
    assert not any(layer.sums for layer in check_program(maker, every_tensor=every_tensor, races=True).plan.layers)
