"""The benchmark's convolutions: networks as they were published, samples that fit, and jobs that golden accepts."""

import numpy as np
import pytest

from tilewright.golden import Conv
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core.params import CoreParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.bench import conv
from tilewright.sim.bench.conv import MOST_CYCLES, LayerCase, first_job, golden_result, sample_of
from tilewright.sim.bench.conv_layers import NETWORKS, NetworkLayer
from tilewright.sim.bench.line import row
from tilewright.sim.session import Session

UNIT = CONV_UNIT_PRESETS["unit"].replace(smem=SmemParams(16 * 1024))
MIB = 1 << 20


def macs(layer):
    inputs = 1 if layer.depthwise else layer.channels
    return layer.out_size**2 * layer.out_channels * layer.kernel**2 * inputs


@pytest.mark.parametrize(
    ("network", "convolutions", "total"),
    [("ResNet-50", 53, 3_855_925_248), ("VGG-16", 13, 15_346_630_656), ("MobileNet-V2", 52, 299_494_272),
     ("EfficientNet-Lite0", 49, 383_907_552)],
)  # fmt: skip
def test_networks_as_published(network, convolutions, total):
    layers = NETWORKS[network]
    assert sum(layers.values()) == convolutions
    assert sum(macs(layer) * count for layer, count in layers.items()) == total


@pytest.mark.parametrize("preset", ["unit", "ecp5", "default", "full"])
def test_samples_fit(preset):
    """``lean`` has the engine of ``ecp5``."""
    params = CONV_UNIT_PRESETS[preset].conv
    names = set()
    for layer in {layer for layers in NETWORKS.values() for layer in layers}:
        case = sample_of(layer, params, MIB)
        assert case.plan.limit <= MOST_CYCLES, case.name
        assert (case.plan.block_bytes, case.plan.merge) == (case.whole.block_bytes, case.whole.merge)
        if case.lines == layer.out_size and case.channels == layer.out_channels:
            assert case.plan.shape == case.whole.shape
        names.add(layer.name)
    assert len(names) == len({layer.name for layers in NETWORKS.values() for layer in layers})


def test_a_sample_is_part_of_its_layer():
    """Its results are the first lines and channels of those of the whole layer."""
    layer = NetworkLayer(9, 5, 20, 3, 2, (0, 1))
    whole, part = (LayerCase(layer, UNIT.conv, *sizes) for sizes in ((4, 20), (2, 8)))
    assert part.name == "3x3/2 5>20 9x9, 2 of 4 lines, 8 channels"
    assert part.plan.shape.macs * 5 == whole.plan.shape.macs
    assert (part.plan.shape.height, part.plan.shape.out_height) == (5, 2)
    job = part.job()
    results = golden_result(job, UNIT.conv, job.smem)
    assert results.shape == (1, 2, 4, 8)
    assert len(np.unique(results)) > 20


def test_the_first_job_is_legal():
    for params in CONV_UNIT_PRESETS.values():
        assert Conv(np.zeros(MIB, np.uint8), params.conv).execute(first_job(params.conv, MIB))


def test_a_line(monkeypatch):
    """On hardware: results are compared, and cycles are those of the layer alone."""
    monkeypatch.setattr(conv, "_SMEM_BYTES", UNIT.smem.size_bytes)
    with Session(params=CoreParams(conv=UNIT)) as session:
        runner = conv.Runner(session)
        for layer in (NetworkLayer(8, 16, 16), NetworkLayer(8, 16, 16, 3, 1, (1, 1), depthwise=True)):
            case = LayerCase(layer, UNIT.conv, layer.out_size, layer.out_channels)
            cycles, causes = runner.run(case)
            assert case.plan.limit < cycles < 4 * case.plan.limit
            line = conv.layer_line("unit", "Net", case, 2, cycles, causes)
            assert line.target == "none"
            assert f"Net, 2: {layer.name}" in row(line)
            assert row(line).endswith("of MACs")
