"""A cluster: equal cores, the network between their shared memories, and one port to global memory."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, flipped
from amaranth.utils import ceil_log2

from ..bus.axi4 import Axi4Signature
from ..bus.axi4_lite import Axi4LiteSignature
from ..core.params import CoreParams
from ..core.top import Core
from ..lib.join import join
from ..tmau.subsystem import TmauSubsystem
from .l2.control import L2_ADDR_WIDTH
from .l2.top import L2
from .memory.top import MemorySide
from .network.line import LineNetwork

__all__ = ["Cluster"]

#: Members of a core that do not come out of a cluster.
_INNER = ("m_axi", "lines", "memory", "prefetches")


class Cluster(wiring.Component):
    """Cores, network, memory side and cache; connections only. A cluster of one core without a cache is the core.

    Members
    -------
    m_axi : Out(Axi4Signature(params.tmau.addr_width, params.tmau.bus_width, 2 + ceil_log2(params.cores)))
        Global memory of all cores. An ID is the core's, and above it its number; that of a cache is 0.
    l2_axil : In(Axi4LiteSignature(12)) if params.l2
        Registers of the cache, at the offsets of ``golden.spec.cluster.l2``.
    *those of a core but its m_axi* : In(1)
        An array of each, as of ``Core``, or of ``TmauSubsystem`` where ``params.core`` is TmauParams.

    Attributes
    ----------
    cores : list of Core or TmauSubsystem
    regions : dict of str to Region
        What lies where on each ``s_axil``.
    """

    def __init__(self, params):
        self.params = params
        make = Core if isinstance(params.core, CoreParams) else TmauSubsystem
        self.cores = [make(params.core) for _ in range(params.cores)]
        self.regions = self.cores[0].regions
        tmau = params.tmau
        self.side = MemorySide(
            params.cores,
            tmau.addr_width,
            tmau.bus_width,
            max_burst=tmau.max_burst,
            read_words=params.read_words,
            reductions=tmau.has("reductions_global"),
        )
        members = self.cores[0].signature.members
        bus = {"addr_width": tmau.addr_width, "data_width": tmau.bus_width, "id_width": 2 + ceil_log2(params.cores)}
        self.l2 = L2(params.l2.geometry(**bus), params.cores) if params.l2 else None
        super().__init__(
            {"m_axi": Out(Axi4Signature(**bus))}
            | ({"l2_axil": In(Axi4LiteSignature(L2_ADDR_WIDTH))} if params.l2 else {})
            | {name: member.array(params.cores) for name, member in members.items() if name not in _INNER}
        )

    def elaborate(self, platform):
        m = Module()
        for number, core in enumerate(self.cores):
            m.submodules[f"core{number}"] = core
            for name, member in core.signature.members.items():
                if name not in _INNER:
                    self._show(m, member, getattr(core, name), getattr(self, name)[number])
        m.submodules.side = self.side
        for core, port in zip(self.cores, self.side.ports, strict=True):
            join(m, core=core.m_axi, port=port)
        if self.l2:
            m.submodules.l2 = l2 = self.l2
            join(m, side=self.side.axi, l2=l2.port)
            join(m, l2=l2.axi, m_axi=flipped(self.m_axi))
            join(m, l2_axil=flipped(self.l2_axil), l2=l2.axil)
            for core, lines in zip(self.cores, l2.prefetches, strict=True):
                join(m, core=core.prefetches, l2=lines)
        else:
            join(m, side=self.side.axi, m_axi=flipped(self.m_axi))
        if self.params.cores > 1:
            tmau = self.params.tmau
            m.submodules.network = network = LineNetwork(
                tmau.smem,
                tmau.cores,
                reduces=tmau.has("reductions_shared"),
                floats=tmau.has("reductions_float"),
            )
            for number, core in enumerate(self.cores):
                join(m, core=core.lines, network=network.movers[number])
                join(m, network=network.memories[number], core=core.memory)
        return m

    def _show(self, m, member, inner, outer):
        """Connects a member of a core to its place here."""
        if member.is_signature:
            join(m, inner=inner, outer=flipped(outer))
        elif member.flow is In:
            m.d.comb += inner.eq(outer)
        else:
            m.d.comb += outer.eq(inner)
