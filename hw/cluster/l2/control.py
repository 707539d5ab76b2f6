"""Registers of the second-level cache, and the sweep that flushes and invalidates it."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec.cluster import L2_REGISTERS

from ...bus.axi4_lite import Axi4LiteBridge, Axi4LiteSignature
from ...bus.registers import RegisterFile, connect_counters, show_parameters, widths_of
from .params import AccessLayout, Kind

__all__ = ["L2_ADDR_WIDTH", "L2Control", "Sweep"]


class Sweep(wiring.Component):
    """Expels all lines: those of a set at once if they are dropped, one a cycle if they are written back; or the lines
    of a range, one a cycle, whether they are here or not.

    After a reset lines are dropped. What is asked for while a sweep is under way follows it: a flush, an invalidation,
    a flush of the range, its invalidation.

    Parameters
    ----------
    geometry : Geometry
    """

    def __init__(self, geometry):
        self._geometry = geometry
        # What has been asked for: flush, invalidation, both of the range.
        self.asked = Signal(4, init=0b0010)
        self.keeps = Signal()  # the sweep is a flush
        self.named = Signal()  # it is one of the range
        self.issuing = Signal()  # accesses are left
        self.settling = Signal(2)  # cycles in which the last one may not have been seen
        self.place = Signal(max(geometry.place_width, geometry.line_width))  # or the line, of the range
        super().__init__(
            {
                # Strobes.
                "flush": In(1),
                "invalidate": In(1),
                # With a strobe: it is for lines ``first`` to ``last`` only.
                "ranged": In(1),
                # They hold while ``busy``. If the last one lies before the first, there are none.
                "first": In(geometry.line_width),
                "last": In(geometry.line_width),
                # No access is under way. Another one comes only while ``sweeping`` is 0, or from here.
                "quiet": In(1),
                "accesses": Out(stream.Signature(AccessLayout(geometry))),
                # Registered: a sweep is under way, from before the first access to after what the last one brought
                # about.
                "sweeping": Out(1),
                # The same, from the cycle after a strobe on.
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g, o = self._geometry, self.accesses
        begins, steps, last, next_ = Signal(), Signal(), Signal(), Signal(4)
        empty, set_number = Signal(), self.place[: g.set_log2]
        m.d.sync += empty.eq(self.last < self.first)
        m.d.comb += [
            next_.eq(self.asked & -self.asked),  # the lowest one
            begins.eq(~self.sweeping & self.asked.any()),
            steps.eq(o.valid & o.ready),
            last.eq(Mux(self.keeps, self.place[: g.place_width].all(), set_number.all())),
            o.valid.eq(self.issuing),
            o.payload.kind.eq(Mux(self.named, Kind.DISCARD, Kind.EXPEL)),
            o.payload.keep.eq(self.keeps),
            o.payload.part.line.eq(Mux(self.named, self.place[: g.line_width], set_number)),
            o.payload.way.eq(self.place[g.set_log2 : g.place_width]),
            self.busy.eq(self.sweeping | self.asked.any()),
        ]
        with m.If(self.named):
            m.d.comb += last.eq(self.place[: g.line_width] == self.last)
        with m.If(begins):
            m.d.sync += [
                self.sweeping.eq(1),
                self.issuing.eq(~(next_[2:].any() & empty)),
                self.keeps.eq(next_[0] | next_[2]),
                self.named.eq(next_[2:].any()),
                self.place.eq(Mux(next_[2:].any(), self.first, 0)),
            ]
        with m.If(steps):
            m.d.sync += [self.place.eq(self.place + 1), self.issuing.eq(~last), self.settling.eq(~0)]
        with m.Elif(self.settling != 0):
            m.d.sync += self.settling.eq(self.settling - 1)
        with m.If(self.sweeping & ~self.issuing & (self.settling == 0) & self.quiet):
            m.d.sync += self.sweeping.eq(0)
        plain, ranged = ~self.ranged.replicate(2), self.ranged.replicate(2)
        strobes = Cat(self.flush, self.invalidate)
        new = Cat(strobes & plain, strobes & ranged)
        m.d.sync += self.asked.eq(new | (self.asked & ~Mux(begins, next_, 0)))
        return m


#: Bits of a byte address of the registers: 4 KiB.
L2_ADDR_WIDTH = 12

_COUNTED = ("hits", "misses", "evictions", "prefetches", "write_errors")


class L2Control(wiring.Component):
    """Registers of ``spec.cluster`` behind AXI4-Lite.

    Parameters
    ----------
    geometry : Geometry
    """

    def __init__(self, geometry):
        self._geometry = geometry
        super().__init__(
            {
                "axil": In(Axi4LiteSignature(L2_ADDR_WIDTH)),
                # Strobes; the last one with one of the others.
                "flush": Out(1),
                "invalidate": Out(1),
                "ranged": Out(1),
                # Of the range.
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
        connect(m, axil=flipped(self.axil), bridge=bridge.axi)
        connect(m, bridge=bridge.accesses, registers=registers.accesses)
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
