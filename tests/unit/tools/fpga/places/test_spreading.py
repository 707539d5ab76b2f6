"""Forces on objects, and their motion."""

import numpy as np
import pytest

from tilewright.tools.fpga.places.device import DEVICES
from tilewright.tools.fpga.places.objects import Objects
from tilewright.tools.fpga.places.spreading import Field, Motion

ROOM = DEVICES["25k"].capacity()


def field(areas, *ends):
    """The field of objects with such areas, tables and flip-flops alike, and of nets with such ends."""
    starts = np.cumsum([0, *map(len, ends)])[:-1]
    return Field(Objects(np.array([areas, areas], float), np.concatenate(ends), starts, {}), ROOM)


def test_pull_is_the_gradient_of_the_smoothed_length():
    own = field([1, 1, 1, 1], [0, 1, 2], [1, 3])
    pins, starts = own._objects.pins, own._objects.starts
    at = np.random.default_rng(1).uniform(10, 40, (2, 4))

    def smoothed(at):
        found = 0.0
        for axis in at:
            for net in np.split(axis[pins], starts[1:]):
                high, low = np.exp(net / 3), np.exp(-net / 3)
                found += (net * high).sum() / high.sum() - (net * low).sum() / low.sum()
        return found

    pull = own.pull(at, 3)
    for axis in range(2):
        for number in range(4):
            step = np.zeros_like(at)
            step[axis, number] = 1e-5
            slope = (smoothed(at + step) - smoothed(at - step)) / 2e-5
            assert pull[axis, number] == pytest.approx(slope, abs=1e-6)


def test_pull_of_sharp_wires_is_that_of_the_ends():
    at = np.array([[5.0, 20, 30], [7, 7.5, 40]])
    assert field([1, 1, 1], [0, 1, 2]).pull(at, 0.01) == pytest.approx(np.array([[-1, 0, 1], [-1, 0, 1]]))


def test_push_goes_apart_and_stops_when_there_is_room():
    own = field([400, 400], [0, 1])
    fillers = np.random.default_rng(1).uniform([[2], [2]], [[70], [48]], (2, own.fillers))
    push, over = own.push(np.concatenate([[[30, 34.0], [20, 20.0]], fillers], axis=1))
    assert push[0, 0] < 0 < push[0, 1]
    assert over > 0.9
    spread = field(np.full(200, 8.0), [0, 1])
    places = np.stack([2 + np.arange(200) % 60, 2 + np.arange(200) // 60]).astype(float)
    _, over = spread.push(np.concatenate([places, np.zeros((2, spread.fillers)) + 40], axis=1))
    assert over < 0.2


def test_motion_ends_where_the_gradient_does_and_stays_inside():
    motion = Motion(np.array([[10.0, 40], [10, 10]]), np.array([[50], [50]]))
    goal = np.array([[30.0, 90], [20, -5]])
    for _ in range(200):
        motion.step(motion.at - goal)
        assert (motion.at >= 0.5).all()
        assert (motion.at <= 50).all()
    assert motion.at == pytest.approx(np.array([[30, 50], [20, 0.5]]), abs=1e-3)
    motion.put([1], [[7], [8]])
    assert motion.at[:, 1].tolist() == [7, 8]
