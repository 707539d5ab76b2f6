"""From the two walkers to the two paths."""

from amaranth import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.pick import pick
from ...lib.stream import SkidBuffer
from ..layouts import BoxRunLayout, StoreRunLayout

__all__ = ["RunRouter"]


class RunRouter(wiring.Component):
    """Hands runs of both walkers to the path that they are for.

    Latency 1, one run a cycle. What the walkers see of ``ready`` is a register, so that no path leads from what becomes
    of a run to which one is next.

    Members
    -------
    tiles, pixels : In(stream of BoxRunLayout)
        Only one of them is valid at a time; Dispatch sees to that. Without the feature ``im2col`` there are no pixels.
    loads : Out(stream of BoxRunLayout)
    stores : Out(stream of StoreRunLayout)
    prefetches : Out(stream of BoxRunLayout) if params.prefetches
    """

    def __init__(self, params):
        self.params = params
        self.buffer = SkidBuffer(BoxRunLayout(params))
        prefetches = {"prefetches": Out(stream.Signature(BoxRunLayout(params)))} if params.prefetches else {}
        super().__init__(
            prefetches
            | {
                "tiles": In(stream.Signature(BoxRunLayout(params))),
                "pixels": In(stream.Signature(BoxRunLayout(params))),
                "loads": Out(stream.Signature(BoxRunLayout(params))),
                "stores": Out(stream.Signature(StoreRunLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.buffer = buffer = self.buffer
        walkers = (self.tiles, self.pixels) if self.params.has("im2col") else (self.tiles,)
        pick(m, walkers, buffer.i.p, buffer.i.valid, buffer.i.ready)
        run, valid = buffer.o.p, buffer.o.valid
        m.d.comb += [
            self.loads.p.eq(run),
            self.loads.valid.eq(valid & ~run.store),
            self.stores.valid.eq(valid & run.store),
            buffer.o.ready.eq(Mux(run.store, self.stores.ready, self.loads.ready)),
        ]
        m.d.comb += [self.stores.p[name].eq(run[name]) for name, _ in StoreRunLayout(self.params)]
        if self.params.prefetches:
            m.d.comb += [self.prefetches.p.eq(run), self.prefetches.valid.eq(valid & run.prefetch)]
            with m.If(run.prefetch):
                m.d.comb += [self.loads.valid.eq(0), buffer.o.ready.eq(self.prefetches.ready)]
        return m
