"""Registers of the cache."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, flipped

from tilewright.golden.spec.cluster.l2 import L2_REGISTERS

from ...bus.axi4_lite import Axi4LiteBridge, Axi4LiteSignature
from ...bus.counters import widths_of
from ...bus.csr import RegisterFile
from ...bus.status import connect_counters, show_parameters
from ...lib.join import join

__all__ = ["L2_ADDR_WIDTH", "L2Control"]

#: Bits of a byte address of the registers: 4 KiB.
L2_ADDR_WIDTH = 12

_COUNTED = ("hits", "misses", "evictions", "prefetches", "write_errors")


class L2Control(wiring.Component):
    """Registers of ``golden.spec.cluster.l2`` behind AXI4-Lite.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    axil : In(Axi4LiteSignature(12))
    flush, invalidate, ranged : Out(1)
        Strobes; the last one with one of the others.
    first, last : Out(geometry.line_width)
        Of the range.
    busy : In(1)
    hits, misses, evictions, prefetches, write_errors : In(1)
        Strobes, to be counted.
    """

    def __init__(self, geometry):
        self._geometry = geometry
        super().__init__(
            {
                "axil": In(Axi4LiteSignature(L2_ADDR_WIDTH)),
                "flush": Out(1),
                "invalidate": Out(1),
                "ranged": Out(1),
                "first": Out(geometry.line_width),
                "last": Out(geometry.line_width),
                "busy": In(1),
                **dict.fromkeys(_COUNTED, In(1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g = self._geometry
        counted = {name: getattr(self, name) for name in _COUNTED}
        m.submodules.bridge = bridge = Axi4LiteBridge(L2_ADDR_WIDTH)
        m.submodules.registers = registers = RegisterFile(L2_REGISTERS, widths_of(counted))
        join(m, axil=flipped(self.axil), bridge=bridge.axi)
        join(m, bridge=bridge.accesses, registers=registers.accesses)
        built_with = {
            "params0": {"bytes": g.sets * g.ways * g.line_bytes},
            "params1": {"ways": g.ways, "misses": g.misses},
        }
        show_parameters(m, registers, built_with)
        m.d.comb += [
            self.flush.eq(registers.control.flush),
            self.invalidate.eq(registers.control.invalidate),
            self.ranged.eq(registers.control.range),
            *(
                line.eq(Cat(low.address, high.address)[g.line_log2 :])
                for line, low, high in (
                    (self.first, registers.range_first_lo, registers.range_first_hi),
                    (self.last, registers.range_last_lo, registers.range_last_hi),
                )
            ),
            registers.status.busy.eq(self.busy),
        ]
        connect_counters(m, registers, counted)
        return m
