"""The convolution engine on its own: for designs that bring their own shared memory."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec.conv.registers import CONV_REGISTERS

from ..bus.address_map import address_map, map_addr_width
from ..bus.axi4_lite import Axi4LiteSignature, serve_registers
from ..lib.join import bundle, join
from ..smem.signatures import SharedMemorySignature
from .signatures import ConvProcessorSignature
from .unit import ConvUnit

__all__ = ["CONV_REGISTER_ADDR_WIDTH", "Conv"]

#: Bits of the byte addresses of the registers.
CONV_REGISTER_ADDR_WIDTH = max(register.offset for register in CONV_REGISTERS).bit_length()


class Conv(wiring.Component):
    """Data path and registers behind AXI4-Lite; connections only.

    The shared memory outside answers ``reads`` in order, takes up to eight chunks at once from ``scatter``, performs
    the operations of ``barriers``, and reports how often its banks conflicted.

    Members
    -------
    s_axil : In(Axi4LiteSignature(CONV_REGISTER_ADDR_WIDTH))
        Registers, at the offsets of ``golden.spec.conv.registers``.
    smem : Out(SharedMemorySignature(params.smem))
        The shared memory outside.
    irq : Out(1)
        Interrupt, a level: a bit is set in both ``irq_status`` and ``irq_enable``.
    **ConvProcessorSignature().members

    Attributes
    ----------
    regions : dict of str to Region
        What lies where on ``s_axil``: ``conv``, the registers.
    """

    def __init__(self, params):
        self.params = params
        self.regions = address_map(conv=CONV_REGISTER_ADDR_WIDTH)
        super().__init__(
            {
                **ConvProcessorSignature().members,
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
                "smem": Out(SharedMemorySignature(params.smem)),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = ConvUnit(self.params)
        join(m, unit=unit.processor, processor=flipped(bundle(self, ConvProcessorSignature())))
        join(m, unit=unit.smem, smem=flipped(self.smem))
        m.d.comb += self.irq.eq(unit.irq)
        serve_registers(m, self.s_axil, self.regions, conv=unit.accesses)
        return m
