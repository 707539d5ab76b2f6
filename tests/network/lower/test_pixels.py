"""Sums of few channels, of which several pixels are computed as one."""

import pytest

from tilewright.network.drawn import NetworkMaker


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    ("channels", "deep", "width", "count"),
    [(16, 16, 14, 2), (8, 8, 12, 4), (16, 4, 10, 2), (16, 16, 15, 1), (24, 16, 14, 1), (8, 32, 12, 1), (5, 3, 9, 3)],
)
def test_sums_of_wide_pixels(channels, deep, width, count, dtype, check_program):
    maker = NetworkMaker(channels + width)
    x, y = maker.input((1, deep, 9, width), dtype), maker.input((1, channels, 9, width), dtype)
    maker.conv(maker.add(maker.conv(x, channels, dtype=dtype, zeros=3), y), 8, 3)
    compiled = check_program(maker, races=True)
    assert compiled.plan.layers[0].output.channels == count * channels
    assert compiled.plan.macs == sum(layer.macs for layer in compiled.plan.layers)
    assert compiled.plan.layers[0].macs == 9 * width * deep * channels
