"""The TMAU with its shared memory and barriers: what one core of an accelerator has."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4_lite import AccessSplit, Axi4LiteBridge, Axi4LiteSignature
from ..lib.join import join
from ..smem.layouts import BarrierRequestLayout, BarrierResultLayout, ReadLayout, read_data_layout
from ..smem.top import SharedMemory
from .top import REGISTER_ADDR_WIDTH
from .unit import TmauUnit, processor_members

__all__ = ["TmauSubsystem"]


class TmauSubsystem(wiring.Component):
    """Data path, registers and shared memory; connections only.

    Members
    -------
    s_axil : In(Axi4LiteSignature)
        Registers from address 0 on; shared memory from ``window_address`` on.
    reads : In(stream of ReadLayout)
    read_data : Out(stream of read_data_layout())
        The consumer: eight chunks of shared memory a cycle, from anywhere.
    barriers : In(stream of BarrierRequestLayout)
    barrier_results : Out(stream of BarrierResultLayout)
        Barrier operations of processors.
    flip_valid : Out(1)
    flip_address : Out(params.smem.addr_width)
        Strobe: the phase of the barrier at this byte address is complete.
    **processor_members(params)

    Attributes
    ----------
    window_address : int
        First byte address of shared memory on ``s_axil``: above the registers, and aligned to its size.
    """

    def __init__(self, params):
        self.params = params
        self._window_bit = max(REGISTER_ADDR_WIDTH, params.smem.addr_width)
        self.window_address = 1 << self._window_bit
        self.smem = SharedMemory(params.smem)
        super().__init__(
            processor_members(params)
            | {
                "s_axil": In(Axi4LiteSignature(self._window_bit + 1)),
                "reads": In(stream.Signature(ReadLayout(params.smem))),
                "read_data": Out(stream.Signature(read_data_layout())),
                "barriers": In(stream.Signature(BarrierRequestLayout(params.smem))),
                "barrier_results": Out(stream.Signature(BarrierResultLayout())),
                "flip_valid": Out(1),
                "flip_address": Out(params.smem.addr_width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = TmauUnit(self.params)
        m.submodules.smem = smem = self.smem
        m.submodules.bridge = bridge = Axi4LiteBridge(self._window_bit + 1)
        m.submodules.split = split = AccessSplit(self._window_bit)

        join(m, commands=flipped(self.commands), unit=unit.commands)
        join(m, unit=unit.m_axi, m_axi=flipped(self.m_axi))
        join(m, unit=unit.writes, smem=smem.writes)
        join(m, unit=unit.fetches, smem=smem.fetches)
        join(m, unit=unit.landed, smem=smem.landed)
        join(m, reads=flipped(self.reads), smem=smem.reads)
        join(m, smem=smem.read_data, read_data=flipped(self.read_data))
        join(m, barriers=flipped(self.barriers), smem=smem.barriers)
        join(m, smem=smem.barrier_results, barrier_results=flipped(self.barrier_results))

        join(m, s_axil=flipped(self.s_axil), bridge=bridge.axi)
        join(m, bridge=bridge.accesses, split=split.accesses)
        join(m, split=split.answers, bridge=bridge.answers)
        join(m, split=split.low_accesses, unit=unit.accesses)
        join(m, unit=unit.answers, split=split.low_answers)
        join(m, split=split.high_accesses, smem=smem.host_requests)
        join(m, smem=smem.host_responses, split=split.high_answers)

        m.d.comb += [
            unit.line.eq(smem.line),
            unit.barrier_error.eq(smem.error_valid),
            unit.barrier_address.eq(smem.error_address),
            unit.bank_conflict.eq(smem.conflict_stb),
            self.flip_valid.eq(smem.flip_valid),
            self.flip_address.eq(smem.flip_address),
            self.done_valid.eq(unit.done_valid),
            self.done_tag.eq(unit.done_tag),
            self.done_error.eq(unit.done_error),
            self.irq.eq(unit.irq),
        ]
        return m
