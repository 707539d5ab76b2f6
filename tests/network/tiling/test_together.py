"""Neighbouring layers that share shared memory: results that stay there, and layers that are done band by band."""

import pytest

from tilewright import network
from tilewright.network.drawn import NetworkMaker
from tilewright.network.lower.places import Held


@pytest.fixture
def checked(check_program):
    """Checks the program of a NetworkMaker, also for races, and returns the Compiled."""
    return lambda maker, every_tensor=False: check_program(maker, every_tensor=every_tensor, races=True)


def held(compiled):
    return [layer.output for layer in compiled.plan.layers if isinstance(layer.output, Held)]


def narrow(batch=1, channels=256):
    """Small maps of many channels, with a residual addition."""
    maker = NetworkMaker(7)
    x = maker.conv(maker.input((batch, 64, 7, 7)), 64)
    y = maker.conv(maker.conv(maker.conv(x, channels), channels, 3, groups=channels), 64)
    maker.conv(maker.add(y, x), 96)
    return maker


def wide(size=64, **last):
    """A map that is far larger than shared memory, between an expansion and a depthwise convolution."""
    maker = NetworkMaker(8)
    x = maker.conv(maker.input((1, 16, size, size)), 96)
    maker.conv(x, 96, 3, groups=96, **last)
    return maker


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("every_tensor", [False, True])
def test_small_results_stay(batch, every_tensor, checked):
    compiled = checked(narrow(batch), every_tensor=every_tensor)
    assert held(compiled)


def test_a_tensor_without_other_readers_is_not_stored(checked):
    compiled = checked(narrow())
    layers = compiled.plan.layers
    tags = {layer.output.name for layer in layers if isinstance(layer.output, Held)}
    read_again = {place.name for layer in layers for place in layer.brought if not isinstance(place, Held)}
    stored = {span.layer for span in compiled.plan.spans if span.engine == "store"}
    for number, layer in enumerate(layers):
        kept = layer.output.name not in tags or layer.output.name in read_again
        assert (number in stored) == kept, layer.name
    (name,) = list(tags - read_again)[:1]
    with pytest.raises(network.ModelError, match="is not in memory"):
        compiled.tensors(compiled.image, [name])


def test_pixels_stay_with_the_gaps_that_the_next_layer_wants(checked):
    """Pixels of 384 bytes lie in the same banks; and they leave without the gaps."""
    compiled = checked(narrow(channels=384), every_tensor=True)
    assert any(place.gap for place in held(compiled))


@pytest.mark.parametrize("last", [{"stride": 2}, {"stride": 2, "pad": 1}, {"stride": 2, "pad": (0, 0, 1, 1)}])
def test_large_maps_between_two_layers_stay_in_bands(last, checked):
    compiled = checked(wide(**last))
    (layer,) = compiled.plan.layers
    assert layer.first.name in layer.name
    assert layer.sources[0].name == layer.first.output.name
    assert not any(place.name == layer.sources[0].name for place in layer.brought)
    assert all(one.between_bytes for _, one in compiled.plan.tiles[0][0])


def test_with_every_tensor_layers_are_not_joined(checked):
    """All tensors lie in memory: layers stay by themselves."""
    assert len(checked(wide(stride=2), every_tensor=True).plan.layers) == 2


def test_a_tensor_with_two_readers_is_not_joined(checked):
    maker = NetworkMaker(9)
    x = maker.conv(maker.input((1, 16, 64, 64)), 96)
    maker.add(maker.conv(x, 96, 3, groups=96, pad=1), x)
    assert all(layer.first is None for layer in checked(maker).plan.layers)


def test_joined_layers_with_an_addition(checked):
    """The second layer reads its second operand from memory."""
    maker = NetworkMaker(10)
    x = maker.input((1, 32, 80, 80))
    y = maker.conv(maker.conv(x, 64, 3, groups=32, pad=1), 32)
    maker.add(y, x)
    checked(maker)


def test_the_same_program_each_time():
    first, second = (network.compile(narrow().graph(), "default").words for _ in range(2))
    assert first == second
