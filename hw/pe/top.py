"""The processing engine on its own: for designs that bring their own shared memory."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from tilewright.golden.spec.pe.registers import PE_REGISTERS

from ..bus.axi4_lite import Axi4LiteBridge, Axi4LiteSignature
from ..lib.join import join
from .unit import PeUnit

__all__ = ["PE_REGISTER_ADDR_WIDTH", "Pe"]

#: Bits of the byte addresses of the registers.
PE_REGISTER_ADDR_WIDTH = max(register.offset for register in PE_REGISTERS).bit_length()

#: Members of the unit that lie behind AXI4-Lite.
_BEHIND = ("accesses", "answers")


class Pe(wiring.Component):
    """Data path, registers and pager behind AXI4-Lite; connections only.

    The shared memory outside answers ``reads`` in order, takes up to eight chunks at once from ``scatter``, performs
    the operations of ``barriers``, and reports how often its banks conflicted. A TMAU outside moves pages.

    Members
    -------
    s_axil : Axi4LiteSignature, in
        Registers, at the offsets of ``golden.spec.pe.registers``.

    and those of ``PeUnit``, but for ``accesses`` and ``answers``.
    """

    def __init__(self, params):
        self.params = params
        self._unit = PeUnit(params)
        self._inner = {name: member for name, member in self._unit.signature.members.items() if name not in _BEHIND}
        super().__init__(self._inner | {"s_axil": In(Axi4LiteSignature(PE_REGISTER_ADDR_WIDTH))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self._unit
        m.submodules.bridge = bridge = Axi4LiteBridge(PE_REGISTER_ADDR_WIDTH)
        for name, member in self._inner.items():
            inner, outer = getattr(unit, name), getattr(self, name)
            if member.is_signature:
                connect(m, inner=inner, outer=flipped(outer))
            elif member.flow == In:
                m.d.comb += inner.eq(outer)
            else:
                m.d.comb += outer.eq(inner)
        join(m, s_axil=flipped(self.s_axil), bridge=bridge.axi)
        join(m, bridge=bridge.accesses, unit=unit.accesses)
        join(m, unit=unit.answers, bridge=bridge.answers)
        return m
