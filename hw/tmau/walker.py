"""The tile walker: visits every run of a box, in the order dimension 1, 2, 3, 4 (tmau.md section 3)."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..lib.loop import LoopNest
from .address import AddressGenerator
from .bounds import BoundsCheck
from .setup import WalkLayout

__all__ = ["BoxRunLayout", "TileWalker"]


class BoxRunLayout(data.StructLayout):
    """One run of a box on its way to the bus."""

    def __init__(self, params):
        super().__init__(
            {
                "address": unsigned(params.addr_width),  # global address of its first byte inside
                "bytes": unsigned(params.smem.addr_width + 1),  # inside the tensor, at least 1
                "inside": unsigned(1),  # 0: the run is all fill; address and bytes mean nothing
                "last": unsigned(1),  # of the command
            }
        )


class TileWalker(wiring.Component):
    """Visits the runs of a box one a cycle, without a gap from one command to the next.

    Latency 1 from ``i`` to the first run. Composed of a loop nest (which index), an address generator (where) and a
    bounds check (inside or not), all driven by the same steps.

    Members
    -------
    i : stream of WalkLayout, in
        Taken while idle, or with the last run of the command before.
    o : stream of BoxRunLayout, out
        As many as the product of ``lasts[d] + 1``.
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {"i": In(stream.Signature(WalkLayout(params))), "o": Out(stream.Signature(BoxRunLayout(params)))}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.loop = loop = LoopNest([8] * 4)
        m.submodules.address = address = AddressGenerator(addr_width=self.params.addr_width)
        m.submodules.bounds = bounds = BoundsCheck()
        start, step, walking = Signal(), Signal(), Signal()
        walk = Signal(WalkLayout(self.params))  # of the command under way

        m.d.comb += [
            self.o.valid.eq(walking),
            step.eq(self.o.valid & self.o.ready),
            self.i.ready.eq(~walking | (self.o.ready & self.o.p.last)),
            start.eq(self.i.valid & self.i.ready),
        ]
        with m.If(self.i.ready):
            m.d.sync += walking.eq(self.i.valid)
        with m.If(start):
            m.d.sync += walk.eq(self.i.p)

        m.d.comb += [
            loop.start.eq(start),
            loop.lasts.eq(self.i.p.lasts),
            loop.step.eq(step),
            address.load.eq(start),
            # The walk begins at the first byte inside the tensor; strides lead from there to that of the next run.
            address.origin.eq(self.i.p.origin + self.i.p.data_start),
            address.strides.eq(walk.strides),
            bounds.indices.eq(loop.indices),
            bounds.intervals.eq(walk.intervals),
            self.o.p.address.eq(address.address),
            self.o.p.bytes.eq(walk.data_bytes),
            self.o.p.inside.eq(bounds.inside & ~walk.outside),
            self.o.p.last.eq(loop.final),
        ]
        with m.If(step):
            m.d.comb += address.advance.eq(loop.advance)
        return m
