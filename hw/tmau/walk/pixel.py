"""The pixel walker: visits the pixels of an im2col transfer, in the order of its walk (docs/tmau.md, "Im2col mode")."""

from amaranth import Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..jobs import PixelWalkLayout
from ..layouts import BoxRunLayout
from .address import AddressGenerator

__all__ = ["PixelWalker"]

_SPATIAL = 3  # W, H, D; after them comes N


class PixelWalker(wiring.Component):
    """Visits pixels one a cycle, without a gap from one transfer to the next; each is a run, and a row.

    A step advances W; if that leaves the bounding box, W starts over and H advances, and so on to N, which is not
    bounded. Latency 1 from ``i`` to the first run.

    Members
    -------
    i : In(stream of PixelWalkLayout)
        Taken while idle, or with the last run of the transfer before.
    o : Out(stream of BoxRunLayout)
        ``last + 1`` of them.
    busy : Out(1)
        Registered: a walk is under way.
    """

    def __init__(self, params):
        self.params = params
        self.address_generator = AddressGenerator(addr_width=params.addr_width, levels=_SPATIAL + 1)
        self.positions = Signal(data.ArrayLayout(signed(34), _SPATIAL + 1))  # of the pixel at the output
        self.walk = Signal(PixelWalkLayout(params))  # of the transfer under way
        self.left = Signal(10)  # pixels after that at the output
        super().__init__(
            {
                "i": In(stream.Signature(PixelWalkLayout(params))),
                "o": Out(stream.Signature(BoxRunLayout(params))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.address = address = self.address_generator
        start, step, walk = Signal(), Signal(), self.walk

        m.d.comb += [
            self.o.valid.eq(self.busy),
            step.eq(self.o.valid & self.o.ready),
            self.i.ready.eq(~self.busy | (self.o.ready & self.o.p.last)),
            start.eq(self.i.valid & self.i.ready),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.busy.eq(self.i.valid)

        # x + 1 turns the lowest zero of x into a one: the innermost dimension that is not at its end. N never is.
        turning, advance = Signal(_SPATIAL + 1), Signal(_SPATIAL + 1)
        m.d.comb += [turning[k].eq(self.positions[k] >= walk.turns[k]) for k in range(_SPATIAL)]
        m.d.comb += advance.eq(~turning & (turning + 1))
        with m.If(step):
            m.d.sync += [
                self.left.eq(self.left - 1),
                self.positions[_SPATIAL].eq(self.positions[_SPATIAL] + advance[-1]),
            ]
            for k in range(_SPATIAL):
                with m.If(advance[k]):
                    m.d.sync += self.positions[k].eq(self.positions[k] + walk.steps[k] + 1)
                with m.Elif(advance[k + 1 :].any()):
                    m.d.sync += self.positions[k].eq(walk.lows[k])
            m.d.comb += address.advance.eq(advance)
        with m.If(start):
            m.d.sync += [walk.eq(self.i.p), self.positions.eq(self.i.p.starts), self.left.eq(self.i.p.last)]

        inside = Signal(_SPATIAL + 1)
        for k, position in enumerate(self.positions):
            m.d.comb += inside[k].eq((position >= 0) & (position <= walk.sizes[k]))
        m.d.comb += [
            address.load.eq(start),
            address.origins.eq(self.i.p.origins),
            address.strides.eq(walk.strides),
            self.o.p.address.eq(address.address),
            self.o.p.bytes.eq(walk.data_bytes),
            self.o.p.inside.eq(inside.all() & ~walk.outside),
            self.o.p.skip.eq(1),
            self.o.p.last.eq(self.left == 0),
            self.o.p.store.eq(walk.store),
        ]
        return m
