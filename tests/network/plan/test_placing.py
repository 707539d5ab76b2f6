"""Placement of buffers: of all placements the one after which the next layer is expected to begin first."""

from dataclasses import replace

import pytest

from tilewright import network
from tilewright.network.drawn import NetworkMaker
from tilewright.network.lower.places import Cut, Place
from tilewright.network.machine import MACHINES
from tilewright.network.plan.placing import Placer, _Timeline
from tilewright.network.plan.steps import Jobs, Load, Map, Store, Transfer, block
from tilewright.network.tiling.costs import HANDED
from tilewright.spec.conv import ConvOperation

MACHINE = replace(MACHINES["unit"], latency=100)
BUS, CYCLES = MACHINE.bus_bytes, 1000


def load(near, far, words):
    return Load([block(far, near, words * BUS)])


def store(near, far, words):
    return Store([block(far, near, words * BUS)])


def jobs(reads, writes, cycles=CYCLES, weights=(), **held):
    return Jobs([{"operation": ConvOperation.CONVOLUTION}], [reads], [writes], cycles, weights=list(weights), **held)


def ends(*steps):
    timeline = _Timeline(MACHINE, 1 << 16).after(steps)
    return timeline.end, timeline.loaded


def test_jobs_wait_for_what_they_read_and_follow_each_other():
    first = 40 + 100 + HANDED + CYCLES
    assert ends(load(0, 0, 40), jobs((0, 128), (1024, 1152))) == (first, 40)
    assert ends(load(0, 0, 40), jobs((0, 128), (1024, 1152)), jobs((0, 128), (2048, 2176))) == (first + CYCLES, 40)


def test_loads_wait_for_jobs_that_use_their_room():
    before = load(0, 0, 16), jobs((0, 128), (1024, 1152))
    used = 16 + 100 + HANDED + CYCLES
    assert ends(*before, load(2048, 0, 16))[1] == 32
    assert ends(*before, load(0, 0, 16))[1] == used + 16  # they read it
    assert ends(*before, load(1024, 0, 16))[1] == used + 16  # they write it


def test_loads_wait_for_jobs_that_have_read_their_weights():
    before = load(0, 0, 16), jobs((0, 128), (1024, 1152), weights=[(128, 256)], held=CYCLES // 4)
    begun = 16 + 100 + HANDED
    assert ends(*before, load(128, 0, 16))[1] == begun + CYCLES // 4 + 16
    assert ends(*before, load(0, 0, 24))[1] == begun + CYCLES + 24
    before[1].jobs = [{"operation": ConvOperation.DEPTHWISE}]
    assert ends(*before, load(128, 0, 16))[1] == begun + CYCLES + 16


def test_stores_wait_for_jobs_and_are_waited_for():
    before = load(0, 0, 16), jobs((0, 128), (1024, 1152)), store(1024, 4096, 8)
    stored = 16 + 100 + HANDED + CYCLES + 8
    assert ends(*before, load(1024, 0, 16))[1] == stored + 16  # over what they read
    assert ends(*before, load(2048, 4096, 8))[1] == stored + 100 + 8  # of what they write
    assert ends(*before, load(2048, 8192, 8))[1] == 24
    assert ends(*before, jobs((0, 128), (1024, 1152)))[0] == stored + HANDED + CYCLES


def test_a_box_touches_its_rows():
    place = Place("x", 1, 64, 16, 32, (1, 32, 64, 16), "uint8")
    box = Map(Cut("x", 1, 64, 16, 16, place.shape, "uint8", base=place), 4, 1024)
    before = jobs((0, 128), (1024, 1152)), Store([Transfer(1024, 1024, 4096, box, (0, 0, 8, 0))])
    stored = HANDED + CYCLES + 1024 // BUS
    for row, waits in ((0, 0), (4, 0), (8, 1), (10, 1), (12, 0)):
        size = 2 * place.row_pitch
        expected = (stored + 100) * waits + size // BUS
        assert ends(*before, Load([block(4096 + row * place.row_pitch, 2048, size)]))[1] == expected, row


def test_no_single_placement_is_as_good(monkeypatch):
    """Layers of EfficientNet-Lite0 on maps of 7 x 7, which leave results in shared memory."""
    maker = NetworkMaker(5)
    x = maker.conv(maker.input((1, 192, 7, 7)), 192)
    maker.add(maker.conv(maker.conv(maker.conv(x, 1152), 1152, 5, groups=1152), 192), x)
    graph, ways = maker.graph(), Placer._placements
    best = network.compile(graph, "default").plan.cycles
    for number in range(4):

        def one(*place, number=number):
            found = ways(*place)
            return [found[number % len(found)]]

        monkeypatch.setattr(Placer, "_placements", one)
        assert best < network.compile(graph, "default").plan.cycles


def test_ranges_of_columns_find_their_weights():
    """Of a layer in ranges of columns weights that stay are brought again only where they lie at another place."""
    maker = NetworkMaker(5)
    wide = maker.conv(maker.input((1, 16, 112, 112)), 96)
    graph = maker.graph(maker.conv(wide, 96, 3, stride=2, groups=96))
    compiled = network.compile(graph, "default")
    ((_, split), *others), (weights, *_) = compiled.plan.tiles[0][0], compiled.plan.images
    assert len(others) > 1 and split.resident
    loads = [step for step, *_ in compiled.plan.schedules[0].streams.loads if isinstance(step, Load)]
    places = [each.near for step in loads for each in step.transfers if each.far == weights]
    assert len(places) == 2  # the first range begins elsewhere
    assert places[0] != places[1]
    inputs, (name,) = maker.draw(), graph.outputs
    assert (compiled.run(inputs)[name] == network.evaluate(graph, inputs)[name]).all()


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("shape", [(2, 4, 2, 11), (1, 16, 8, 8)])
def test_a_range_after_one_without_weights_loads_its_own(shape, axis):
    """An input of a concatenation with the scale of the output needs no table, and the next one does."""
    maker = NetworkMaker(5)
    x = maker.input(shape)
    added = maker.add(x, x)
    same = maker.concat(0, x, scales=[(0.025, 7), (0.05, 26)])
    y = maker.concat(axis, same, added, scales=[None, (0.1, 10), (0.05, 26)])
    graph = maker.graph(maker.conv(y, 3, 1))
    inputs, (name,) = maker.draw(), graph.outputs
    assert (network.compile(graph, "unit").run(inputs)[name] == network.evaluate(graph, inputs)[name]).all()
