"""Flush and invalidation: every set in turn."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .layouts import AccessLayout, Kind

__all__ = ["Sweep"]


class Sweep(wiring.Component):
    """Expels all lines: those of a set at once if they are dropped, one a cycle if they are written back.

    After a reset lines are dropped. What is asked for while a sweep is under way follows it; of both a flush comes
    first.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    flush, invalidate : In(1)
        Strobes.
    quiet : In(1)
        No access is under way. Another one comes only while ``sweeping`` is 0, or from here.
    accesses : Out(stream of AccessLayout(geometry))
    sweeping : Out(1)
        Registered: a sweep is under way, from before the first access to after what the last one brought about.
    busy : Out(1)
        The same, from the cycle behind a strobe on.
    """

    def __init__(self, geometry):
        self._geometry = geometry
        self.flushes = Signal()  # one has been asked for
        self.drops = Signal(init=1)  # so has an invalidation
        self.keeps = Signal()  # the sweep is a flush
        self.issuing = Signal()  # accesses are left
        self.settling = Signal(2)  # cycles in which the last one may not have been seen
        self.place = Signal(geometry.place_width)
        super().__init__(
            {
                "flush": In(1),
                "invalidate": In(1),
                "quiet": In(1),
                "accesses": Out(stream.Signature(AccessLayout(geometry))),
                "sweeping": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        g, o = self._geometry, self.accesses
        begins, steps, last = Signal(), Signal(), Signal()
        m.d.comb += [
            begins.eq(~self.sweeping & (self.flushes | self.drops)),
            steps.eq(o.valid & o.ready),
            last.eq(Mux(self.keeps, self.place.all(), self.place[: g.set_log2].all())),
            o.valid.eq(self.issuing),
            o.payload.kind.eq(Kind.EXPEL),
            o.payload.keep.eq(self.keeps),
            o.payload.part.line.eq(self.place[: g.set_log2]),
            o.payload.way.eq(self.place[g.set_log2 :]),
            self.busy.eq(self.sweeping | self.flushes | self.drops),
        ]
        with m.If(begins):
            m.d.sync += [self.sweeping.eq(1), self.issuing.eq(1), self.keeps.eq(self.flushes), self.place.eq(0)]
        with m.If(steps):
            m.d.sync += [self.place.eq(self.place + 1), self.issuing.eq(~last), self.settling.eq(~0)]
        with m.Elif(self.settling != 0):
            m.d.sync += self.settling.eq(self.settling - 1)
        with m.If(self.sweeping & ~self.issuing & (self.settling == 0) & self.quiet):
            m.d.sync += self.sweeping.eq(0)
        m.d.sync += [
            self.flushes.eq(self.flush | (self.flushes & ~begins)),
            self.drops.eq(self.invalidate | (self.drops & ~(begins & ~self.flushes))),
        ]
        return m
