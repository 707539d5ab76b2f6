"""The processing engine with its shared memory, without a TMAU."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4_lite import Axi4LiteSignature, serve_registers
from ..lib.join import bundle, join
from ..smem.barrier_share import BarrierShare
from ..smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ..smem.top import SharedMemory
from .signatures import ProcessorSignature
from .top import PE_REGISTER_ADDR_WIDTH
from .unit import PeUnit

__all__ = ["PeSubsystem", "connect_shared_memory"]


class PeSubsystem(wiring.Component):
    """Data path, registers and shared memory; connections only. Pages cannot be moved: those commands go nowhere.

    Members
    -------
    s_axil : In(Axi4LiteSignature)
        Registers from address 0 on; shared memory from ``window_address`` on.
    barriers : In(stream of BarrierRequestLayout)
        Barrier operations of processors.
    barrier_results : Out(stream of BarrierResultLayout)
    irq : Out(1)
        Level.
    **ProcessorSignature(params).members

    Attributes
    ----------
    window_address : int
        First byte address of shared memory on ``s_axil``: above the registers, and aligned to its size.
    """

    def __init__(self, params):
        self.params = params
        self._window_bit = max(PE_REGISTER_ADDR_WIDTH, params.smem.addr_width)
        self.window_address = 1 << self._window_bit
        self.smem = SharedMemory(params.smem, stores=True)
        super().__init__(
            {
                **ProcessorSignature(params).members,
                "s_axil": In(Axi4LiteSignature(self._window_bit + 1)),
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
        connect_shared_memory(m, self, pe, smem)
        m.d.comb += self.irq.eq(pe.irq)
        serve_registers(m, self.s_axil, pe.accesses, (self._window_bit, smem.host))
        return m


def connect_shared_memory(m, top, pe, smem):
    """Connects a ``PeUnit``, and the barrier ports of ``top``, to a ``SharedMemory`` with stores."""
    m.submodules.share = share = BarrierShare(top.params.smem, 2)
    join(m, pe=pe.smem.reads, smem=smem.reads)
    join(m, smem=smem.read_data, pe=pe.smem.read_data)
    join(m, pe=pe.smem.scatter, smem=smem.scatter)
    join(m, pe=pe.smem.barriers, share=share.requests[0])
    join(m, share=share.results[0], pe=pe.smem.barrier_results)
    join(m, barriers=flipped(top.barriers), share=share.requests[1])
    join(m, share=share.results[1], barrier_results=flipped(top.barrier_results))
    join(m, share=share.merged, smem=smem.barriers)
    join(m, smem=smem.barrier_results, share=share.answers)
    m.d.comb += [pe.smem.scatter_idle.eq(smem.scatter_idle), pe.smem.bank_conflict.eq(smem.conflict_stb)]
