"""The writer: pieces of runs become writes of chunks."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.rotate import rotate_bytes
from ...smem.layouts import CHUNK_BITS, ScatterWriteLayout
from ..layouts import PlanLayout
from .layouts import PieceOfRunLayout, ResultSizes

__all__ = ["Writer"]


class Writer(wiring.Component):
    """Writes pieces of runs at any byte address.

    A window of W bytes goes to W / 16 + 1 chunks that follow each other, which are written by as many lanes. Its bytes
    are turned by the address modulo 16 in each of its own chunks; a chunk of shared memory then takes some from one and
    the others from the one before.

    Latency 1, one piece a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        ``result_log2`` is used.
    i : In(stream of PieceOfRunLayout(params))
    o : Out(stream of ScatterWriteLayout(params.smem))
        Registered. Lanes from W / 16 + 1 on write nothing.
    written : Out(range(ResultSizes(params).piece_bytes + 1))
        Results that are accepted at ``o`` in this cycle.
    """

    def __init__(self, params):
        self._sizes = ResultSizes(params)
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "i": In(stream.Signature(PieceOfRunLayout(params))),
                "o": Out(stream.Signature(ScatterWriteLayout(params.smem))),
                "written": Out(range(self._sizes.piece_bytes + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        i, o = self.i, self.o
        offset, chunk = i.p.origin[:4], i.p.origin[4:]
        slots = self._sizes.piece_bytes // 16
        turned = [rotate_bytes(m, i.p.window[slot], offset, left=True, name=f"turned{slot}_") for slot in range(slots)]
        within = Signal(self._sizes.piece_bytes + 16)  # by byte: whether it is written
        # Constants that are shifted, and no comparisons: of these each would be a carry chain.
        ones, behind = Const((1 << len(within)) - 1, len(within)), Const((1 << len(within)) - 2, len(within))
        m.d.comb += within.eq((ones << i.p.first) & ~(behind << i.p.last))

        count = Signal.like(self.written)
        m.d.comb += [
            i.ready.eq(~o.valid | o.ready),
            self.written.eq(Mux(o.valid & o.ready, count, 0)),
        ]
        with m.If(i.ready):
            m.d.sync += [o.valid.eq(i.valid), count.eq((i.p.bytes >> self.plan.result_log2) + 1)]
            for lane in range(slots + 1):
                own, before = turned[min(lane, slots - 1)], turned[max(lane - 1, 0)]
                merged = Cat(
                    Mux(offset > byte, before.word_select(byte, 8), own.word_select(byte, 8))
                    for byte in range(CHUNK_BITS // 8)
                )
                m.d.sync += [
                    o.p.chunks[lane].eq(chunk + lane),
                    o.p.data[lane].eq(merged),
                    o.p.strobes[lane].eq(within.word_select(lane, 16)),
                ]
        return m
