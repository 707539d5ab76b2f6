"""The processing engine with its shared memory, without a TMAU."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4_lite import Axi4LiteSignature, address_map, map_addr_width, serve_registers
from ..lib.component import bundle, join
from ..smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ..smem.top import SharedMemory, connect_engines
from .layouts import ProcessorSignature
from .top import PE_REGISTER_ADDR_WIDTH, PeUnit

__all__ = ["PeSubsystem"]


class PeSubsystem(wiring.Component):
    """Data path, registers and shared memory; connections only. Pages cannot be moved: those commands go nowhere.

    Members
    -------
    s_axil : In(Axi4LiteSignature)
        Registers and shared memory, at ``regions``.
    barriers : In(stream of BarrierRequestLayout)
        Barrier operations of processors.
    barrier_results : Out(stream of BarrierResultLayout)
        What became of them, one answer for each, in order.
    irq : Out(1)
        Interrupt, a level: a bit is set in both ``irq_status`` and ``irq_enable``.
    **ProcessorSignature(params).members

    Attributes
    ----------
    regions : dict of str to Region
        What lies where on ``s_axil``: ``pe``, the registers, and ``smem``, shared memory.
    """

    def __init__(self, params):
        self.params = params
        self.regions = address_map(pe=PE_REGISTER_ADDR_WIDTH, smem=params.smem.addr_width)
        self.smem = SharedMemory(params.smem, stores=True)
        super().__init__(
            {
                **ProcessorSignature(params).members,
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
                "barriers": In(stream.Signature(BarrierRequestLayout(params.smem))),
                "barrier_results": Out(stream.Signature(BarrierResultLayout())),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.pe = pe = PeUnit(self.params)
        m.submodules.smem = smem = self.smem
        join(m, pe=pe.processor, processor=flipped(bundle(self, ProcessorSignature(self.params))))
        connect_engines(m, self, smem, pe=pe.smem)
        m.d.comb += self.irq.eq(pe.irq)
        serve_registers(m, self.s_axil, self.regions, pe=pe.accesses, smem=smem.host)
        return m
