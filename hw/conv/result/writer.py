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
    the others from the one before. With pairs (:class:`ResultSizes`) each half of the window may be a piece of its own,
    of W / 2 bytes at most, and is turned by its address; one more lane has the first chunk of the second.

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
        Registered. Lanes from W / 16 + 1 on write nothing, or with pairs from W / 16 + 2 on.
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
        slots, half = self._sizes.piece_bytes // 16, self._sizes.piece_bytes // 32
        pairs, pair, count = self._sizes.pairs, Const(0, 1), Signal.like(self.written)
        origins = [i.p.origin] * slots  # where what is in front of each slot of the window goes
        within = _strobes(m, i.p.first, i.p.last, self._sizes.piece_bytes + 16, "within")
        if pairs:
            second, pair = i.p.second, i.p.second.there
            origins[half:] = [second.origin] * (slots - half)
            apart = _strobes(m, second.first, second.last, self._sizes.piece_bytes // 2 + 16, "apart")
            apart &= pair.replicate(len(apart))
        turned = [
            rotate_bytes(m, i.p.window[slot], origin[:4], left=True, name=f"turned{slot}_")
            for slot, origin in enumerate(origins)
        ]
        results = (i.p.bytes >> self.plan.result_log2) + 1
        m.d.comb += [
            i.ready.eq(~o.valid | o.ready),
            self.written.eq(Mux(o.valid & o.ready, count, 0)),
        ]
        with m.If(i.ready):
            m.d.sync += [o.valid.eq(i.valid), count.eq(results << pair)]
            for lane in range(slots + 1):
                own, before = turned[min(lane, slots - 1)], turned[max(lane - 1, 0)]
                offset = origins[max(lane - 1, 0)][:4]
                merged = Cat(
                    Mux(offset > byte, before.word_select(byte, 8), own.word_select(byte, 8))
                    for byte in range(CHUNK_BITS // 8)
                )
                strobes, chunk = within.word_select(lane, 16), i.p.origin[4:] + lane
                if pairs and lane > half:
                    strobes, chunk = strobes | apart.word_select(lane - half, 16), second.origin[4:] + (lane - half)
                m.d.sync += [o.p.chunks[lane].eq(chunk), o.p.data[lane].eq(merged), o.p.strobes[lane].eq(strobes)]
            if pairs:
                m.d.sync += [
                    o.p.chunks[slots + 1].eq(second.origin[4:]),
                    o.p.data[slots + 1].eq(turned[half]),
                    o.p.strobes[slots + 1].eq(apart[:16]),
                ]
        return m


def _strobes(m, first, last, count, name):
    """One bit for each of ``count`` bytes, ones from ``first`` to ``last``."""
    strobes = Signal(count, name=name)
    # Constants that are shifted, and no comparisons: of these each would be a carry chain.
    ones, behind = Const((1 << count) - 1, count), Const((1 << count) - 2, count)
    m.d.comb += strobes.eq((ones << first) & ~(behind << last))
    return strobes
