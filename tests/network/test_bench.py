"""The programs of ``tilewright bench --engine network``: layers compile for every preset, and fit its memory."""

import pytest

from tilewright.network.machine import MACHINES
from tilewright.sim.bench.conv_layers import NETWORKS
from tilewright.tools.network.bench import compiled_sample, sample_of

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
