"""The page of a report describes every machine that a workload may run on."""

import pytest

from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core.params import ENGINES, core_params
from tilewright.sim.report.page import describe_machine

PHRASES = {
    "tmau": "an access unit (bus of 16 bytes, 4 reads in flight)",
    "pe": "a processing engine (",
    "conv": "a convolution engine (",
    "program": "a command processor",
}


@pytest.mark.parametrize("engines", [*((name,) for name in ENGINES[:3]), ("tmau", "pe"), ENGINES], ids="-".join)
def test_a_core_is_described_by_its_engines(engines):
    sentence = describe_machine(core_params("unit", engines))
    assert sentence.startswith("A core with ") and sentence.endswith(" bytes of shared memory.")
    assert {name for name, phrase in PHRASES.items() if phrase in sentence} == set(engines)


def test_a_cluster_is_described_by_its_cores():
    sentence = describe_machine(ClusterParams(4, core_params("unit", ("tmau", "pe"))))
    assert sentence.startswith("4 cores on one bus, each with an access unit (")
