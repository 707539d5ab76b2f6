"""A cluster: equal cores, the networks between them, and one port to global memory."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from ..bus.axi4 import Axi4Signature
from ..bus.axi4_lite import Axi4LiteSignature
from ..core.top import Core
from ..lib.component import shared_module
from ..smem.layouts import BarrierRequestLayout
from .barriers import BarrierNetwork
from .l2.control import L2_ADDR_WIDTH
from .l2.top import L2
from .memory.top import MemorySide
from .network.line import LineNetwork

__all__ = ["Cluster"]

#: Ports of a core that are not ports of the cluster, and those that pass through a network first.
_INNER = ("m_axi", "lines", "memory", "prefetches")
_BARRIERS = ("barriers", "barrier_results")


class Cluster(wiring.Component):
    """Cores, networks, memory side and cache; connections only. A cluster of one core without a cache is the core.

    All other ports of the cores are arrays, an element a core. With several cores, ``barriers`` name the core in whose
    shared memory the barrier lies.

    Attributes
    ----------
    cores : list of Core
    regions : dict of str to Region
        What lies where on each ``s_axil``.
    """

    def __init__(self, params):
        self.params = params
        self.cores = [Core(params.core) for _ in range(params.cores)]
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
        members = dict(self.cores[0].signature.members)
        if params.cores > 1:
            members["barriers"] = In(stream.Signature(BarrierRequestLayout(params.smem, params.cores)))
        bus = {"addr_width": tmau.addr_width, "data_width": tmau.bus_width, "id_width": 2 + ceil_log2(params.cores)}
        self.l2 = L2(params.l2.geometry(**bus), params.cores) if params.l2 else None
        super().__init__(
            # Global memory of all cores. An ID is the core's, with the core's number above it; IDs of a cache are 0.
            {"m_axi": Out(Axi4Signature(**bus))}
            # Registers of the cache, at the offsets of spec.cluster.
            | ({"l2_axil": In(Axi4LiteSignature(L2_ADDR_WIDTH))} if params.l2 else {})
            | {name: member.array(params.cores) for name, member in members.items() if name not in _INNER}
        )

    def elaborate(self, platform):
        m = Module()
        apart = (*_INNER, *(_BARRIERS if self.params.cores > 1 else ()))
        for number, core in enumerate(self.cores):
            m.submodules[f"core{number}"] = shared_module(platform, core, self.params.core)
            for name, member in core.signature.members.items():
                if name not in apart:
                    self._show(m, member, getattr(core, name), getattr(self, name)[number])
        m.submodules.side = self.side
        for core, port in zip(self.cores, self.side.ports, strict=True):
            connect(m, core=core.m_axi, port=port)
        if self.l2:
            m.submodules.l2 = l2 = self.l2
            connect(m, side=self.side.axi, l2=l2.port)
            connect(m, l2=l2.axi, m_axi=flipped(self.m_axi))
            connect(m, l2_axil=flipped(self.l2_axil), l2=l2.axil)
            for core, lines in zip(self.cores, l2.prefetches, strict=True):
                connect(m, core=core.prefetches, l2=lines)
        else:
            connect(m, side=self.side.axi, m_axi=flipped(self.m_axi))
        if self.params.cores > 1:
            self._connect_cores(m)
        return m

    def _connect_cores(self, m):
        """Lines and barrier arrivals between cores."""
        tmau = self.params.tmau
        m.submodules.network = network = LineNetwork(
            tmau.smem, tmau.cores, reduces=tmau.has("reductions_shared"), floats=tmau.has("reductions_float")
        )
        m.submodules.barriers = barriers = BarrierNetwork(tmau.smem, tmau.cores)
        for number, core in enumerate(self.cores):
            connect(m, core=core.lines, network=network.movers[number])
            connect(m, network=network.memories[number], core=core.memory)
            connect(m, requests=flipped(self.barriers[number]), barriers=barriers.requests[number])
            connect(m, barriers=barriers.results[number], results=flipped(self.barrier_results[number]))
            connect(m, barriers=barriers.barriers[number], core=core.barriers)
            connect(m, core=core.barrier_results, barriers=barriers.barrier_results[number])
            connect(m, barriers=barriers.refused[number], network=network.refused[number])
            m.d.comb += [
                barriers.acceptance[number].eq(core.lines.acceptance),
                barriers.reach[number].eq(core.lines.reach),
                barriers.recorded[number].eq(network.recorded[number]),
            ]

    def _show(self, m, member, inner, outer):
        """Connects a member of a core, which may be an array, to its place here."""
        if isinstance(inner, list):
            for element, port in zip(inner, outer, strict=True):
                self._show(m, member, element, port)
        elif member.is_signature:
            connect(m, inner=inner, outer=flipped(outer))
        elif member.flow is In:
            m.d.comb += inner.eq(outer)
        else:
            m.d.comb += outer.eq(inner)
