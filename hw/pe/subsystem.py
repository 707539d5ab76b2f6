"""The processing engine with its shared memory, without a TMAU."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4_lite import AccessSplit, Axi4LiteBridge, Axi4LiteSignature
from ..lib.join import join
from ..smem.barrier_share import BarrierShare
from ..smem.layouts import BarrierRequestLayout, BarrierResultLayout
from ..smem.top import SharedMemory
from .top import PE_REGISTER_ADDR_WIDTH
from .unit import PeUnit, processor_members

__all__ = ["PeSubsystem", "connect_shared_memory"]


class PeSubsystem(wiring.Component):
    """Data path, registers and shared memory; connections only. Pages cannot be moved: nobody takes those commands.

    Members
    -------
    s_axil : Axi4LiteSignature, in
        Registers from address 0 on; shared memory from ``window_address`` on.
    barriers, barrier_results : streams of BarrierRequestLayout in and BarrierResultLayout out
        Barrier operations of processors.

    and those of ``processor_members`` in ``unit.py``.

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
            processor_members(params)
            | {
                "s_axil": In(Axi4LiteSignature(self._window_bit + 1)),
                "barriers": In(stream.Signature(BarrierRequestLayout(params.smem))),
                "barrier_results": Out(stream.Signature(BarrierResultLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.pe = pe = PeUnit(self.params)
        m.submodules.smem = smem = self.smem
        m.submodules.share = share = BarrierShare(self.params.smem, 2)
        m.submodules.bridge = bridge = Axi4LiteBridge(self._window_bit + 1)
        m.submodules.split = split = AccessSplit(self._window_bit)

        for name in ("instructions", "segments", "pages"):
            join(m, port=flipped(getattr(self, name)), pe=getattr(pe, name))
        connect_shared_memory(m, pe, smem, share)
        join(m, barriers=flipped(self.barriers), share=share.requests[1])
        join(m, share=share.results[1], barrier_results=flipped(self.barrier_results))

        join(m, s_axil=flipped(self.s_axil), bridge=bridge.axi)
        join(m, bridge=bridge.accesses, split=split.accesses)
        join(m, split=split.answers, bridge=bridge.answers)
        join(m, split=split.low_accesses, pe=pe.accesses)
        join(m, pe=pe.answers, split=split.low_answers)
        join(m, split=split.high_accesses, smem=smem.host_requests)
        join(m, smem=smem.host_responses, split=split.high_answers)
        m.d.comb += [
            self.fault_valid.eq(pe.fault_valid),
            self.fault.eq(pe.fault),
            self.halted.eq(pe.halted),
            self.irq.eq(pe.irq),
        ]
        return m


def connect_shared_memory(m, pe, smem, share):
    """Connects a ``PeUnit`` to a ``SharedMemory`` with stores; its barrier operations are the first of ``share``."""
    join(m, pe=pe.reads, smem=smem.reads)
    join(m, smem=smem.read_data, pe=pe.read_data)
    join(m, pe=pe.scatter, smem=smem.scatter)
    join(m, pe=pe.barriers, share=share.requests[0])
    join(m, share=share.results[0], pe=pe.barrier_results)
    join(m, share=share.merged, smem=smem.barriers)
    join(m, smem=smem.barrier_results, share=share.answers)
    m.d.comb += [pe.scatter_idle.eq(smem.scatter_idle), pe.bank_conflict.eq(smem.conflict_stb)]
