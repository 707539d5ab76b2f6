"""The TMAU on its own: for designs that bring their own shared memory."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from ..bus.axi4 import Axi4ReadSignature
from ..bus.axi4_lite import Axi4LiteBridge, Axi4LiteSignature
from ..lib.join import join
from ..smem.layouts import LandedLayout, LineLayout
from .control import Control, watch
from .core import TmauCore
from .layouts import command_layout

__all__ = ["REGISTER_ADDR_WIDTH", "Tmau"]

#: Bits of a byte address in the register space: 4 KiB.
REGISTER_ADDR_WIDTH = 12


class Tmau(wiring.Component):
    """Data path and registers; connections only.

    The shared memory outside takes a line a cycle from ``writes``, the bytes of each transfer that names a barrier from
    ``landed``, and reports what its barriers refused and how often its banks conflicted.

    Members
    -------
    commands : stream of command_layout, in
    m_axi : Axi4ReadSignature, out
        Global memory. ID 0 reads data, ID 1 descriptors.
    s_axil : Axi4LiteSignature, in
        Registers, at the offsets of ``golden.spec.registers``.
    writes : stream of LineLayout, out
    landed : stream of LandedLayout, out
        In the cycle of the transfer's last write, or later.
    barrier_error, barrier_address : in
        Strobe and address of a refused barrier operation, for the error record.
    bank_conflict : in
        Strobe, counted.
    done_valid : 1, out
        Strobe: a command has ended; for a load that landed, its barrier flips in the next cycle at the earliest.
    done_tag : 16, out
    done_error : 8, out
        ``golden.spec.Error``.
    irq : 1, out
        Level.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout())),
                "m_axi": Out(Axi4ReadSignature(params.addr_width, params.bus_width, 1)),
                "s_axil": In(Axi4LiteSignature(REGISTER_ADDR_WIDTH)),
                "writes": Out(stream.Signature(LineLayout(params.smem))),
                "landed": Out(stream.Signature(LandedLayout(params.smem))),
                "barrier_error": In(1),
                "barrier_address": In(params.smem.addr_width),
                "bank_conflict": In(1),
                "done_valid": Out(1),
                "done_tag": Out(16),
                "done_error": Out(8),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = TmauCore(self.params)
        m.submodules.control = control = Control(self.params)
        m.submodules.bridge = bridge = Axi4LiteBridge(REGISTER_ADDR_WIDTH)

        join(m, commands=flipped(self.commands), core=core.commands)
        join(m, core=core.axi, m_axi=flipped(self.m_axi))
        join(m, core=core.writes, writes=flipped(self.writes))
        join(m, core=core.landed, landed=flipped(self.landed))
        join(m, s_axil=flipped(self.s_axil), bridge=bridge.axi)
        join(m, bridge=bridge.accesses, control=control.accesses)
        join(m, control=control.answers, bridge=bridge.answers)
        watch(m, core, control)
        m.d.comb += [
            control.barrier_error.eq(self.barrier_error),
            control.barrier_address.eq(self.barrier_address),
            control.bank_conflict.eq(self.bank_conflict),
            self.done_valid.eq(core.done.valid),
            self.done_tag.eq(core.done.record.tag),
            self.done_error.eq(core.done.record.code),
            self.irq.eq(control.irq),
        ]
        return m
