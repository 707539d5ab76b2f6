"""The top of a cluster: what is seen of it. What it does is in tests/integration/cluster."""

from amaranth.lib.wiring import Out

from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.cluster.top import Cluster
from tilewright.hw.core import CORE_PRESETS, Core
from tilewright.hw.tmau import TMAU_PRESETS, TmauSubsystem


def test_members_are_those_of_each_core():
    cluster = Cluster(ClusterParams(3, CORE_PRESETS["unit"]))
    core = Core(CORE_PRESETS["unit"])
    assert set(cluster.signature.members) == set(core.signature.members)
    for name, member in cluster.signature.members.items():
        assert member.dimensions == (() if name == "m_axi" else (3,))
    assert len(cluster.irq) == len(cluster.cores) == 3
    assert cluster.regions == core.regions
    assert len(cluster.m_axi.arid) == 4


def test_one_core_is_the_core():
    """The same unit, without registers or ports of a cluster, and with its own IDs."""
    cluster = Cluster(ClusterParams(1, TMAU_PRESETS["unit"]))
    (core,) = cluster.cores
    alone = TmauSubsystem(TMAU_PRESETS["unit"])
    assert core.params == alone.params
    assert core.signature == alone.signature
    assert cluster.signature.members["m_axi"] == Out(alone.m_axi.signature)
