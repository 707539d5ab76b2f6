"""The TMAU with its shared memory and barriers: what one core of an accelerator has."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4 import Axi4ReadSignature
from ..bus.axi4_lite import AccessSplit, Axi4LiteBridge, Axi4LiteSignature
from ..lib.join import join
from ..smem.layouts import BarrierRequestLayout, BarrierResultLayout, ReadLayout, read_data_layout
from ..smem.top import SharedMemory
from .control import Control, watch
from .core import TmauCore
from .layouts import command_layout
from .top import REGISTER_ADDR_WIDTH

__all__ = ["TmauSubsystem"]


class TmauSubsystem(wiring.Component):
    """Data path, registers and shared memory; connections only.

    Members
    -------
    commands : stream of command_layout, in
    m_axi : Axi4ReadSignature, out
        Global memory. ID 0 reads data, ID 1 descriptors.
    s_axil : Axi4LiteSignature, in
        Registers from address 0 on; shared memory from ``window_address`` on.
    reads, read_data : streams of ReadLayout in and read_data_layout out
        The consumer: eight chunks of shared memory a cycle, from anywhere.
    barriers, barrier_results : streams of BarrierRequestLayout in and BarrierResultLayout out
        Barrier operations of processors.
    flip_valid, flip_address : out
        Strobe: the phase of the barrier at this byte address is complete.
    done_valid : 1, out
        Strobe: a command has ended; for a load that landed, its barrier flips in the next cycle at the earliest.
    done_tag : 16, out
    done_error : 8, out
        ``golden.spec.Error``.
    irq : 1, out
        Level.

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
            {
                "commands": In(stream.Signature(command_layout())),
                "m_axi": Out(Axi4ReadSignature(params.addr_width, params.bus_width, 1)),
                "s_axil": In(Axi4LiteSignature(self._window_bit + 1)),
                "reads": In(stream.Signature(ReadLayout(params.smem))),
                "read_data": Out(stream.Signature(read_data_layout())),
                "barriers": In(stream.Signature(BarrierRequestLayout(params.smem))),
                "barrier_results": Out(stream.Signature(BarrierResultLayout())),
                "flip_valid": Out(1),
                "flip_address": Out(params.smem.addr_width),
                "done_valid": Out(1),
                "done_tag": Out(16),
                "done_error": Out(8),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = TmauCore(self.params)
        m.submodules.smem = smem = self.smem
        m.submodules.control = control = Control(self.params)
        m.submodules.bridge = bridge = Axi4LiteBridge(self._window_bit + 1)
        m.submodules.split = split = AccessSplit(self._window_bit)

        join(m, commands=flipped(self.commands), core=core.commands)
        join(m, core=core.axi, m_axi=flipped(self.m_axi))
        join(m, core=core.writes, smem=smem.writes)
        join(m, core=core.landed, smem=smem.landed)
        join(m, reads=flipped(self.reads), smem=smem.reads)
        join(m, smem=smem.read_data, read_data=flipped(self.read_data))
        join(m, barriers=flipped(self.barriers), smem=smem.barriers)
        join(m, smem=smem.barrier_results, barrier_results=flipped(self.barrier_results))

        join(m, s_axil=flipped(self.s_axil), bridge=bridge.axi)
        join(m, bridge=bridge.accesses, split=split.accesses)
        join(m, split=split.answers, bridge=bridge.answers)
        join(m, split=split.low_accesses, control=control.accesses)
        join(m, control=control.answers, split=split.low_answers)
        join(m, split=split.high_accesses, smem=smem.host_requests)
        join(m, smem=smem.host_responses, split=split.high_answers)

        watch(m, core, control)
        m.d.comb += [
            control.barrier_error.eq(smem.error_valid),
            control.barrier_address.eq(smem.error_address),
            control.bank_conflict.eq(smem.conflict_stb),
            self.flip_valid.eq(smem.flip_valid),
            self.flip_address.eq(smem.flip_address),
            self.done_valid.eq(core.done.valid),
            self.done_tag.eq(core.done.record.tag),
            self.done_error.eq(core.done.record.code),
            self.irq.eq(control.irq),
        ]
        return m
