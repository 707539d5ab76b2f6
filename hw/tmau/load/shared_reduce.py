"""Reductions into shared memory, a line at a time."""

from amaranth import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import BANKS, LINE_BYTES, Reduction

from ...reduce.lane import ReduceLane
from ...smem.layouts import CHUNK_BITS, LineLayout
from ..layouts import StagedLineLayout, WrittenLineLayout

__all__ = ["SharedReducer"]

#: Cycles from the first chunk's way into the lane to the last one's way out.
_STEPS = BANKS + ReduceLane.LATENCY


class SharedReducer(wiring.Component):
    """Passes lines on, to shared memory or to the store half, and combines those of reductions with what lies there.

    A line without a reduction passes combinationally, one a cycle. One with a reduction is fetched, combined sixteen
    bytes a cycle and then written: 11 + ``ReduceLane.LATENCY`` cycles, unless somebody stalls. It is accepted when it
    is written, so that the transfer's completion does not come before, and as there is never more than one line, none
    is fetched that is still to be written.

    Members
    -------
    i : In(stream of WrittenLineLayout)
        ``ready`` depends combinationally on the payload and on ``ready`` of ``writes`` or ``staged``.
    writes : Out(stream of LineLayout)
        Row and strobes as they came.
    staged : Out(stream of StagedLineLayout)
        Lines with ``stage``.
    fetches : Out(stream of unsigned(params.smem.row_width))
        The row of a line that is read in the cycle of the handshake.
    line : In(8 * LINE_BYTES)
        The line, in the cycle after it.
    """

    def __init__(self, params):
        self.busy = Signal()  # the line at the input was fetched
        super().__init__(
            {
                "i": In(stream.Signature(WrittenLineLayout(params))),
                "writes": Out(stream.Signature(LineLayout(params.smem))),
                "staged": Out(stream.Signature(StagedLineLayout(params))),
                "fetches": Out(stream.Signature(unsigned(params.smem.row_width))),
                "line": In(8 * LINE_BYTES),
            }
        )

    def elaborate(self, platform):
        m = Module()
        i, line = self.i.payload, self.i.payload.line
        m.submodules.lane = lane = ReduceLane()
        # What was fetched. Its chunks leave at the low end for the lane, and combined ones come in at the high end.
        held = Signal(8 * LINE_BYTES)
        combined = Signal()  # all of ``held`` is what is to be written
        step = Signal(range(_STEPS))
        chunks = Array(line.data.word_select(bank, CHUNK_BITS) for bank in range(BANKS))

        passing = (i.reduction == Reduction.NONE) & ~i.stage
        m.d.comb += [
            self.writes.valid.eq(self.i.valid & (passing | combined)),
            self.writes.payload.eq(line),
            self.staged.valid.eq(self.i.valid & i.stage),
            self.staged.payload.data.eq(line.data),
            self.staged.payload.error.eq(i.error),
            self.staged.payload.address.eq(i.address),
            self.i.ready.eq(Mux(i.stage, self.staged.ready, (passing | combined) & self.writes.ready)),
            self.fetches.payload.eq(line.row),
            lane.old.eq(held[:CHUNK_BITS]),
            lane.source.eq(chunks[step[:3]]),
            lane.reduction.eq(i.reduction),
            lane.element.eq(i.element),
        ]
        with m.If(combined):
            m.d.comb += self.writes.payload.data.eq(held)

        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += self.fetches.valid.eq(self.i.valid & ~i.stage & (i.reduction != Reduction.NONE))
                with m.If(self.fetches.valid & self.fetches.ready):
                    m.next = "HOLD"
            with m.State("HOLD"):
                m.d.sync += [held.eq(self.line), step.eq(0)]
                m.next = "COMBINE"
            with m.State("COMBINE"):
                m.d.comb += lane.enable.eq(1)
                m.d.sync += [held.eq(Cat(held[CHUNK_BITS:], lane.o)), step.eq(step + 1)]
                with m.If(step == _STEPS - 1):
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += combined.eq(1)
                with m.If(self.writes.ready):
                    m.next = "IDLE"
        m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
        return m
