"""From the two walkers to the two halves."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.pick import pick
from ..layouts import BoxRunLayout, StoreRunLayout

__all__ = ["RunRouter"]


class RunRouter(wiring.Component):
    """Hands runs of both walkers to the half that they are for. Combinational.

    Members
    -------
    tiles, pixels : In(stream of BoxRunLayout)
        Only one of them is valid at a time; Dispatch sees to that.
    loads : Out(stream of BoxRunLayout)
    stores : Out(stream of StoreRunLayout)
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "tiles": In(stream.Signature(BoxRunLayout(params))),
                "pixels": In(stream.Signature(BoxRunLayout(params))),
                "loads": Out(stream.Signature(BoxRunLayout(params))),
                "stores": Out(stream.Signature(StoreRunLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        run, valid, ready = Signal(BoxRunLayout(self.params)), Signal(), Signal()
        pick(m, (self.tiles, self.pixels), run, valid, ready)
        m.d.comb += [
            self.loads.p.eq(run),
            self.loads.valid.eq(valid & ~run.store),
            self.stores.valid.eq(valid & run.store),
        ]
        m.d.comb += [self.stores.p[name].eq(run[name]) for name, _ in StoreRunLayout(self.params)]
        with m.If(run.store):
            m.d.comb += ready.eq(self.stores.ready)
        with m.Else():
            m.d.comb += ready.eq(self.loads.ready)
        return m
