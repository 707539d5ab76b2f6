"""Line reducer: reductions into the shared memory of a core, whichever core sends them."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS, Reduction

from ...reduce.lane import ReduceLane
from ...smem.layouts import CHUNK_BITS
from ...smem.signatures import LineReadSignature
from .layouts import ArrivalLayout

__all__ = ["LineReducer"]


class LineReducer(wiring.Component):
    """Combines the lines of reductions with what lies in shared memory, one after the other; passes all else.

    All that is written to a shared memory by access units passes here in order, so a reduction never misses another
    one, nor a line that was written before. The old line goes through one lane, sixteen bytes a cycle.

    Latency: none but for reductions, which take ``11 + latency`` cycles of the ReduceLane: 13, or 17 with floats.

    Parameters
    ----------
    params : SmemParams
    cores : int
    floats : bool
        Elements of floats come.

    Members
    -------
    i : In(stream of ArrivalLayout)
        ``ready`` depends combinationally on ``o.ready``.
    o : Out(stream of ArrivalLayout)
        Combinational from ``i``.
    fetch : Out(LineReadSignature(params))
        The old line, read in the cycle of the handshake.
    """

    def __init__(self, params, cores, floats):
        self.lane = ReduceLane(floats)
        self.line = Signal(BANKS * CHUNK_BITS)  # old chunks leave at the bottom, new ones come in at the top
        self.fetched = Signal()  # the old line comes in this cycle
        self.step = Signal(range(BANKS + self.lane.latency + 1))  # chunks that have gone into the lane, and its latency
        self.working = Signal()
        self.reduced = Signal()  # the line is complete
        super().__init__(
            {
                "i": In(stream.Signature(ArrivalLayout(params, cores))),
                "o": Out(stream.Signature(ArrivalLayout(params, cores))),
                "fetch": Out(LineReadSignature(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.lane = lane = self.lane
        packet, change = self.i.p.packet, self.i.p.packet.change
        reduces, left = Signal(), Signal()
        m.d.comb += [
            reduces.eq(self.i.valid & ~packet.ends & (change.reduction != Reduction.NONE)),
            self.o.valid.eq(self.i.valid & (~reduces | self.reduced)),
            self.o.p.eq(self.i.p),
            self.i.ready.eq(self.o.ready & (~reduces | self.reduced)),
            left.eq(self.o.valid & self.o.ready),
            self.fetch.rows.valid.eq(reduces & ~self.fetched & ~self.working & ~self.reduced),
            self.fetch.rows.p.eq(change.row),
        ]
        with m.If(self.reduced):
            m.d.comb += self.o.p.packet.change.data.eq(self.line)

        m.d.comb += [
            lane.old.eq(self.line[:CHUNK_BITS]),
            lane.source.eq(change.data.word_select(self.step, CHUNK_BITS)),
            lane.reduction.eq(change.reduction),
            lane.element.eq(change.element),
            lane.enable.eq(1),
        ]
        m.d.sync += self.fetched.eq(self.fetch.rows.valid & self.fetch.rows.ready)
        with m.If(self.fetched):
            m.d.sync += [self.line.eq(self.fetch.line), self.working.eq(1), self.step.eq(0)]
        with m.If(self.working):
            last = self.step == BANKS + lane.latency - 1
            m.d.sync += [
                self.line.eq(self.line >> CHUNK_BITS | lane.o << (BANKS - 1) * CHUNK_BITS),
                self.step.eq(self.step + 1),
                self.working.eq(~last),
                self.reduced.eq(last),
            ]
        with m.If(left):
            m.d.sync += self.reduced.eq(0)
        return m
