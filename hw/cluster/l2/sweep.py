"""Flush and invalidation: every set in turn, or every line of a range."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .layouts import AccessLayout, Kind

__all__ = ["Sweep"]


class Sweep(wiring.Component):
    """Expels all lines: those of a set at once if they are dropped, one a cycle if they are written back; or the lines
    of a range, one a cycle, whether they are here or not.

    After a reset lines are dropped. What is asked for while a sweep is under way follows it: a flush, an invalidation,
    a flush of the range, its invalidation.

    Parameters
    ----------
    geometry : Geometry

    Members
    -------
    flush, invalidate : In(1)
        Strobes.
    ranged : In(1)
        With a strobe: it is for lines ``first`` to ``last`` only.
    first, last : In(geometry.line_width)
        They hold while ``busy``. If the last one lies before the first, there are none.
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
        # What has been asked for: flush, invalidation, both of the range.
        self.asked = Signal(4, init=0b0010)
        self.keeps = Signal()  # the sweep is a flush
        self.named = Signal()  # it is one of the range
        self.issuing = Signal()  # accesses are left
        self.settling = Signal(2)  # cycles in which the last one may not have been seen
        self.place = Signal(max(geometry.place_width, geometry.line_width))  # or the line, of the range
        super().__init__(
            {
                "flush": In(1),
                "invalidate": In(1),
                "ranged": In(1),
                "first": In(geometry.line_width),
                "last": In(geometry.line_width),
                "quiet": In(1),
                "accesses": Out(stream.Signature(AccessLayout(geometry))),
                "sweeping": Out(1),
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
