"""The programs of ``tilewright bench --engine network``: layers compile for every preset, and fit its memory.

And the bytes that ``--engine cores`` says are loaded with multicasts and without.
"""

from dataclasses import replace

import pytest

from tilewright import network
from tilewright.network.drawn import NetworkMaker
from tilewright.network.machine import MACHINES
from tilewright.sim.bench.conv_layers import NETWORKS
from tilewright.tools.network.bench import compiled_sample, sample_of
from tilewright.tools.network.cores import traffic_line

LAYERS = list(NETWORKS["ResNet-50"])
#: Bytes of the memory of a session.
MEMORY = 16 << 20


@pytest.mark.parametrize("preset", MACHINES)
@pytest.mark.parametrize(
    "layer",
    [LAYERS[0], LAYERS[3], *(pytest.param(layer, marks=pytest.mark.long) for layer in LAYERS[1:3] + LAYERS[4:])],
    ids=lambda layer: layer.name,
)
def test_every_preset_has_a_program(layer, preset):
    compiled, inputs = compiled_sample(layer, sample_of(layer, MACHINES[preset].conv.peak), preset)
    assert sum(part.macs for part in compiled.plan.layers) > 0
    assert len(compiled.memory(inputs)) <= MEMORY


def test_bytes_of_layers_with_more_weights_than_pixels():
    """Of two layers only the second one counts: its cores have the pixels in common, and make some channels each."""
    maker = NetworkMaker(1)
    maker.conv(maker.conv(maker.input((1, 32, 24, 24)), 16, 1), 128, 3, stride=4)
    machine = replace(MACHINES["unit"], cores=2)
    plan = network.compile(maker.graph(), machine).plan
    line = traffic_line("unit", "two layers", plan)
    loads = [span for span in plan.spans if span.engine == "load" and span.layer == 1]
    assert line.measured == machine.bus_bytes * sum(span.words for span in loads)
    assert line.limit == machine.bus_bytes * sum(span.words * span.receivers for span in loads) > line.measured
    assert line.met == (line.measured <= line.limit / 2)
