"""The processing engine on its own: for designs that bring their own shared memory."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec.pe.registers import PE_REGISTERS

from ..bus.address_map import address_map, map_addr_width
from ..bus.axi4_lite import Axi4LiteSignature, serve_registers
from ..bus.commands import command_layout
from ..lib.join import bundle, join
from ..smem.signatures import SharedMemorySignature
from .pager import MoveDoneLayout
from .signatures import ProcessorSignature
from .unit import PeUnit

__all__ = ["PE_REGISTER_ADDR_WIDTH", "Pe"]

#: Bits of the byte addresses of the registers.
PE_REGISTER_ADDR_WIDTH = max(register.offset for register in PE_REGISTERS).bit_length()


class Pe(wiring.Component):
    """Data path, registers and pager behind AXI4-Lite; connections only.

    The shared memory outside answers ``reads`` in order, takes up to eight chunks at once from ``scatter``, performs
    the operations of ``barriers``, and reports how often its banks conflicted. A TMAU outside moves pages.

    Members
    -------
    s_axil : In(Axi4LiteSignature(PE_REGISTER_ADDR_WIDTH))
        Registers, at the offsets of ``golden.spec.pe.registers``.
    smem : Out(SharedMemorySignature)
        The shared memory outside.
    irq : Out(1)
        Interrupt, a level: a bit is set in both ``irq_status`` and ``irq_enable``.
    page_moves : Out(stream of command_layout())
        Commands that move pages, for a TMAU; their tags are 0x8000 plus the page entry.
    page_moved : In(MoveDoneLayout)
        What the TMAU has completed.
    **ProcessorSignature(params).members

    Attributes
    ----------
    regions : dict of str to Region
        What lies where on ``s_axil``: ``pe``, the registers.
    """

    def __init__(self, params):
        self.params = params
        self.regions = address_map(pe=PE_REGISTER_ADDR_WIDTH)
        super().__init__(
            {
                **ProcessorSignature(params).members,
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
                "smem": Out(SharedMemorySignature(params.smem)),
                "irq": Out(1),
                "page_moves": Out(stream.Signature(command_layout())),
                "page_moved": In(MoveDoneLayout()),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = PeUnit(self.params)
        join(m, unit=unit.processor, processor=flipped(bundle(self, ProcessorSignature(self.params))))
        join(m, unit=unit.smem, smem=flipped(self.smem))
        join(m, unit=unit.page_moves, page_moves=flipped(self.page_moves))
        m.d.comb += [unit.page_moved.eq(self.page_moved), self.irq.eq(unit.irq)]
        serve_registers(m, self.s_axil, self.regions, pe=unit.accesses)
        return m
