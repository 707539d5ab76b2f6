"""The tile walker: visits all runs of a box, dimension 0 first (docs/tmau.md, "Tile mode")."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.loop_nest import LoopNest
from ..jobs import WalkLayout
from ..layouts import BoxRunLayout, prefetch_members
from .address import AddressGenerator, BoundsCheck, IntervalLayout

__all__ = ["TileWalker"]

_LEVELS = 5


class TileWalker(wiring.Component):
    """Visits the runs of a box one a cycle, without a gap from one transfer to the next.

    Latency 1 from ``i`` to the first run. A loop nest counts the indices, an address generator follows with the
    address, a bounds check tells whether the run is inside. With ``folds`` the outside runs of a round of level 1 form
    one run before the inside runs and one after them; if a level above is outside, the whole round is one run.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                # Accepted while idle, or with the last run of the previous transfer.
                "i": In(stream.Signature(WalkLayout(params))),
                # The product of all ``lasts[d] + 1``, but with ``folds`` one for a round of level 1 that is outside.
                "o": Out(stream.Signature(BoxRunLayout(params))),
                "busy": Out(1),  # A walk is in progress. Registered.
            }
        )

    def elaborate(self, platform):
        m = Module()
        # Dimension 0 has a level only if it can be gathered.
        first = 0 if self._params.has("gather") else 1
        m.submodules.loop = loop = LoopNest([8] * (_LEVELS - first))
        m.submodules.address = address = AddressGenerator(addr_width=self._params.addr_width, levels=_LEVELS - first)
        m.submodules.bounds = bounds = BoundsCheck()
        at_last = Cat(Const(1, first), loop.at_last)
        step = Signal()
        # With ``folds``: the whole round is outside; the run is the one before the tensor. Updated with the indices.
        apart, before = Signal(), Signal()
        walk = Signal(WalkLayout(self._params))  # of the current transfer

        m.d.comb += [
            self.o.valid.eq(self.busy),
            step.eq(self.o.valid & self.o.ready),
            # The registers load whether ``i`` is valid or not, which simplifies their enables.
            self.i.ready.eq(~self.busy | (self.o.ready & self.o.payload.last)),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.busy.eq(self.i.valid)
        begins_before = Signal()  # the first run of each round is the one before the tensor
        m.d.comb += begins_before.eq(walk.folds & walk.intervals[1].first[0])
        with m.If(self.i.ready):
            m.d.sync += [
                walk.eq(self.i.payload),
                apart.eq(self.i.payload.folds & ~bounds.following[2:].all()),
                before.eq(self.i.payload.folds & self.i.payload.intervals[1].first[0]),
            ]
        with m.Elif(step):
            m.d.sync += apart.eq(walk.folds & ~bounds.following[2:].all())
            with m.If(at_last[0]):
                m.d.sync += before.eq(begins_before & at_last[1])

        m.d.comb += [
            loop.start.eq(self.i.ready),
            loop.lasts.eq(self.i.payload.lasts[first:]),
            loop.step.eq(step),
            loop.cut[1 - first].eq(apart),
            address.load.eq(self.i.ready),
            address.loading.eq(~self.busy | loop.final),
            address.over.eq(loop.at_last),
            # The origin belongs to the first run that is not before the tensor.
            address.step.eq(step & ~(before & loop.advance[1 - first])),
            address.strides.eq(walk.strides[first:]),
            bounds.start.eq(self.i.ready),
            bounds.starting.eq(self.i.payload.intervals),
            bounds.step.eq(step),
            bounds.indices.eq(Cat(Const(0, 8 * first), loop.indices)),
            bounds.at_last.eq(at_last),
            bounds.intervals.eq(walk.intervals),
            self.o.payload.address.eq(address.address),
            self.o.payload.folded.eq(walk.folds & ~bounds.inside.all()),
            self.o.payload.bytes.eq(
                Mux(
                    self.o.payload.folded,
                    Mux(apart, walk.level_bytes, Mux(before, walk.before, walk.behind)),
                    walk.data_bytes,
                )
            ),
            self.o.payload.inside.eq(bounds.inside.all() & ~walk.outside),
            self.o.payload.skip.eq(at_last[0]),
            self.o.payload.last.eq(loop.final),
            self.o.payload.store.eq(walk.store),
            self.o.payload.loop.eq(walk.loop),
            *(self.o.payload[name].eq(walk[name]) for name in prefetch_members(self._params)),
        ]
        m.d.comb += [origin.eq(self.i.payload.origin) for origin in address.origins]
        if first:
            whole = IntervalLayout().const({"first": 0, "end": 1})
            m.d.comb += [bounds.starting[0].eq(whole), bounds.intervals[0].eq(whole)]
        return m
