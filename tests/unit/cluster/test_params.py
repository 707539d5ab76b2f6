"""Parameters of clusters."""

import pytest

from tilewright.hw.cluster.params import CLUSTER_PRESETS, ClusterParams
from tilewright.hw.core.params import CORE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS


def test_every_core_knows_of_the_cluster():
    params = ClusterParams(3, CORE_PRESETS["unit"])
    assert params.tmau.cores == params.core.tmau.cores == 3
    assert params.replace(cores=1).core == CORE_PRESETS["unit"]
    assert ClusterParams(2, TMAU_PRESETS["unit"]).core == TMAU_PRESETS["unit"].replace(cores=2)
    assert {name: preset.cores for name, preset in CLUSTER_PRESETS.items()} == {"pair": 2, "quad": 4}


def test_reads_cover_the_latency_of_memory():
    assert ClusterParams(2, TMAU_PRESETS["unit"]).read_words == 16
    assert ClusterParams(2, TMAU_PRESETS["default"]).read_words == 256


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), ValueError, "^cores must be 1 to 16, not 0$"),
        ((17,), ValueError, "^cores must be 1 to 16, not 17$"),
        ((2, "unit"), TypeError, "^core must be CoreParams or TmauParams, not 'unit'$"),
    ],
)
def test_mistakes(arguments, error, message):
    with pytest.raises(error, match=message):
        ClusterParams(*arguments)
