"""Parameters of clusters."""

import pytest

from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import CLUSTER_PRESETS, ClusterParams
from tilewright.hw.core.params import CORE_PRESETS, CoreParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.tmau.params import TMAU_PRESETS


def test_every_core_knows_of_the_cluster():
    params = ClusterParams(3, CORE_PRESETS["unit"])
    assert params.tmau.cores == params.core.tmau.cores == 3
    assert params.replace(cores=1).core == CORE_PRESETS["unit"]
    assert ClusterParams(2, CoreParams(TMAU_PRESETS["unit"])).core.tmau == TMAU_PRESETS["unit"].replace(cores=2)
    assert {name: preset.cores for name, preset in CLUSTER_PRESETS.items()} == {"pair": 2, "quad": 4}


def test_a_cache_makes_units_name_what_they_prefetch():
    params = ClusterParams(2, CORE_PRESETS["unit"], L2Params())
    assert params.tmau.prefetches and params.core.tmau.prefetches
    assert params.replace(l2=None).core == CORE_PRESETS["unit"].replace(tmau=CORE_PRESETS["unit"].tmau.replace(cores=2))
    alone = ClusterParams(1, CoreParams(TMAU_PRESETS["unit"]), L2Params())
    assert alone.core.tmau == TMAU_PRESETS["unit"].replace(prefetches=True)
    geometry = L2Params().geometry(48, 512, 4)
    assert (geometry.sets, geometry.words, geometry.tag_width, geometry.entries) == (256, 2, 33, 128)


def test_reads_cover_the_latency_of_memory():
    assert ClusterParams(2, CoreParams(TMAU_PRESETS["unit"])).read_words == 16
    assert ClusterParams(2, CoreParams(TMAU_PRESETS["default"])).read_words == 256


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0,), ValueError, "^cores must be 1 to 16, not 0$"),
        ((17,), ValueError, "^cores must be 1 to 16, not 17$"),
        ((2, "unit"), TypeError, "^core must be CoreParams, not 'unit'$"),
        ((2, CoreParams(pe=PE_PRESETS["unit"])), ValueError, "^core must have an access unit: tmau is None$"),
        ((2, CORE_PRESETS["unit"], 4096), TypeError, "^l2 must be L2Params or None, not 4096$"),
    ],
)
def test_mistakes(arguments, error, message):
    with pytest.raises(error, match=message):
        ClusterParams(*arguments)


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ({"bytes": 3000}, ValueError, "^bytes must be a power of two, not 3000$"),
        ({"ways": 0}, ValueError, "^ways must be 1 to 16, not 0$"),
        ({"misses": 16}, ValueError, "^misses must be 32 to 128, not 16$"),
        ({"misses": "64"}, TypeError, "^misses must be an int, not '64'$"),
        ({"bytes": 1024}, ValueError, "^8 ways need 2048 bytes, not 1024$"),
    ],
)
def test_mistakes_of_a_cache(sizes, error, message):
    with pytest.raises(error, match=message):
        L2Params(**sizes)
