"""The TMAU on its own: for designs that bring their own shared memory."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from ..bus.axi4_lite import Axi4LiteBridge, Axi4LiteSignature
from ..lib.join import join
from .unit import TmauUnit, processor_members, shared_memory_members

__all__ = ["REGISTER_ADDR_WIDTH", "Tmau"]

#: Bits of a byte address in the register space: 4 KiB.
REGISTER_ADDR_WIDTH = 12


class Tmau(wiring.Component):
    """Data path and registers behind AXI4-Lite; connections only.

    The shared memory outside takes a line a cycle from ``writes`` and hands out a line a cycle on ``fetches``, takes
    the bytes of each transfer that names a barrier from ``landed``, and reports what its barriers refused and how often
    its banks conflicted.

    Members
    -------
    s_axil : In(Axi4LiteSignature)
        Registers, at the offsets of ``golden.spec.tmau.registers``.
    **processor_members(params)
    **shared_memory_members(params)
    """

    def __init__(self, params):
        self.params = params
        self._inner = processor_members(params) | shared_memory_members(params)
        super().__init__(self._inner | {"s_axil": In(Axi4LiteSignature(REGISTER_ADDR_WIDTH))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = TmauUnit(self.params)
        m.submodules.bridge = bridge = Axi4LiteBridge(REGISTER_ADDR_WIDTH)
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
