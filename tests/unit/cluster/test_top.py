"""The top of a cluster: what is seen of it. tests/integration/cluster has what it does."""

from amaranth.lib.wiring import Out

from tilewright.hw.bus.axi4_lite import Axi4LiteSignature
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.cluster.top import Cluster
from tilewright.hw.core import CORE_PRESETS, Core
from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau import TMAU_PRESETS


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
    cluster = Cluster(ClusterParams(1, CoreParams(TMAU_PRESETS["unit"])))
    (core,) = cluster.cores
    alone = Core(CoreParams(TMAU_PRESETS["unit"]))
    assert core.params == alone.params
    assert core.signature == alone.signature
    assert cluster.signature.members["m_axi"] == Out(alone.m_axi.signature)


def test_a_cache_has_registers_of_its_own():
    """Each core's prefetches end inside; nothing else is seen of the cache."""
    unit = CoreParams(TMAU_PRESETS["unit"])
    without, cluster = (Cluster(ClusterParams(2, unit, l2)) for l2 in (None, L2Params(4096, 2)))
    members = dict(cluster.signature.members.items())
    assert members.pop("l2_axil").signature.flip() == Axi4LiteSignature(12)
    assert members == dict(without.signature.members.items())
    assert without.l2 is None
