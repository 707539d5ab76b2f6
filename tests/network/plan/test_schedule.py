"""Boxes of a tensor share a descriptor; the schedule counts fetches of them, and waits of kernels for jobs."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright import network
from tilewright.network.drawn import NetworkMaker
from tilewright.network.machine import MACHINES
from tilewright.network.transformers import encoder_layer


def normalised(columns, rows=32):
    """A normalisation of rows, in pages of 128 columns of the source and of the result."""
    maker = NetworkMaker(6)
    maker.normalise(maker.input((1, rows, columns)))
    return maker


@pytest.mark.parametrize(("columns", "count"), [(128, 2), (768, 2), (784, 4)])
def test_pages_share_a_descriptor(columns, count):
    """A shorter last page has its own, with a gap behind it."""
    maker = normalised(columns)
    compiled = network.compile(maker.graph(), "default")
    assert len(compiled.plan.maps) == count
    inputs = maker.draw()
    (name,) = compiled.graph.outputs
    np.testing.assert_array_equal(compiled.run(inputs)[name], network.evaluate(compiled.graph, inputs)[name])


def test_fetches_are_counted():
    """Four descriptors in turn, of which the access unit holds all, or one."""
    graph, machine = normalised(784, rows=256).graph(), MACHINES["default"]
    every, one = (network.compile(graph, replace(machine, descriptors=count)).plan.cycles for count in (8, 1))
    assert every < one


def test_jobs_slow_a_kernel_down():
    """Of the last normalisation the last call, of as many rows, runs alone."""
    plan = network.compile(encoder_layer(128, 256, 4).graph(), "default").plan
    jobs = [span for span in plan.spans if span.engine == "conv"]
    calls = [span for span in plan.spans if span.engine == "pe" and span.layer == len(plan.layers) - 1]
    beside = [any(job.start < call.end and call.start < job.end for job in jobs) for call in calls]
    assert beside == [True, True, True, False]
    lengths = [call.end - call.start for call in calls]
    assert min(lengths[:-1]) > lengths[-1]
