"""The assembler: transfers of results become pieces of runs."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.logic import chosen, rotate_bytes
from ...lib.stream import ShallowQueue
from ...smem.layouts import CHUNK_BITS, ScatterWriteLayout
from ..layouts import PlanLayout, ResultsLayout
from .layouts import PieceOfRunLayout, ResultSizes, RunPieceLayout

__all__ = ["Assembler", "Writer"]

#: Buffers that wait until their pieces have left: a memory, which costs the same for 2 and for 16.
_FULL = 4


class Assembler(wiring.Component):
    """Collects the bytes of results, and cuts them to pieces of runs.

    A buffer has B = P · W bytes. In a convolution place p of a group has W of them from p · W on, and each transfer
    brings R / P of its results; W bytes of each place are collected, or what there is. In lane-private mode results lie
    one after the other. A buffer that is complete, a *flush*, is put behind others; its pieces are cut as ``pieces``
    says, one a cycle. Meanwhile the next one is collected.

    Latency 1 from the last transfer of a flush to its first piece. Throughput: a transfer a cycle, and a piece a cycle.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    plan : In(PlanLayout(params))
        ``lanes`` and ``result_log2`` are used. Must hold while anything is under way.
    i : In(stream of ResultsLayout(params.conv))
        Masks are not looked at. ``ready`` depends on registers and on ``flush``.
    flush : In(stream of 1)
        For each transfer: it completes a flush.
    pieces : In(stream of RunPieceLayout(params))
    o : Out(stream of PieceOfRunLayout(params))
        From a memory that is read combinationally.
    """

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        self.full = ShallowQueue(8 * self._sizes.buffer_bytes, _FULL)
        self.collected = Signal(8 * self._sizes.buffer_bytes)
        #: Transfers of the flush that have been collected.
        self.count = Signal(range(self._sizes.piece_bytes * self._sizes.together // params.conv.results))
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "i": In(stream.Signature(ResultsLayout(params.conv))),
                "flush": In(stream.Signature(1)),
                "pieces": In(stream.Signature(RunPieceLayout(params))),
                "o": Out(stream.Signature(PieceOfRunLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.full = full = self.full
        i, flush = self.i, self.flush
        taken, buffer = Signal(), Signal.like(self.collected)
        m.d.comb += [
            i.ready.eq(flush.valid & (~flush.p | full.i.ready)),
            taken.eq(i.valid & i.ready),
            flush.ready.eq(taken),
            buffer.eq(Cat(self._byte(number) for number in range(self._sizes.buffer_bytes))),
            full.i.valid.eq(taken & flush.p),
            full.i.p.eq(buffer),
        ]
        with m.If(taken):
            m.d.sync += [self.count.eq(Mux(flush.p, 0, self.count + 1)), self.collected.eq(buffer)]
        self._cut(m)
        return m

    def _byte(self, number):
        """A byte of the buffer with this transfer: from there, or as it was."""
        results, sizes = self._params.conv.results, self._sizes
        ours, in_place = results // sizes.together, number % sizes.piece_bytes
        place = number // sizes.piece_bytes
        code = Cat(self.plan.result_log2, self.plan.lanes)
        transfers, values = {}, {}
        for lanes, size in self._kinds:
            at, many, base = (number, results, 0) if lanes else (in_place, ours, place * ours)
            result, byte = divmod(at, 1 << size)
            transfer, lane = divmod(result, many)
            transfers[lanes << 2 | size] = self.count == transfer
            values[lanes << 2 | size] = self.i.p.data[base + lane].word_select(byte, 8)
        return Mux(chosen(code, transfers), chosen(code, values), self.collected.word_select(number, 8))

    @property
    def _kinds(self):
        """Modes with log2 of the bytes of a result: 16 bits have elements, and halves of sums of floats."""
        half = [(1, 1)] if self._params.wide else []
        return [(0, 0), (0, 2), (1, 0), (1, 2), *half, *([(0, 1)] if self._params.floats else [])]

    def _cut(self, m):
        """Gives the pieces of the oldest flush their windows."""
        o, pieces, full = self.o, self.pieces, self.full
        leaves = Signal()
        m.d.comb += [
            o.valid.eq(pieces.valid & full.o.valid),
            leaves.eq(o.valid & o.ready),
            pieces.ready.eq(leaves),
            full.o.ready.eq(leaves & pieces.p.flush_last),
            *(getattr(o.p, name).eq(getattr(pieces.p, name)) for name, _ in o.p.shape() if name != "window"),
        ]
        slots, width = self._sizes.buffer_bytes // 16, self._sizes.piece_bytes // 16
        for slot in range(width):
            begin = pieces.p.slot
            if self._sizes.pairs and slot >= width // 2:
                begin, slot_of = pieces.p.second.slot, slot - width // 2
            else:
                slot_of = slot
            # What begins in slot n is no longer than what n is a multiple of.
            known = {n: full.o.p.word_select(n + slot_of, 128) for n in range(slots) if not n or n & -n > slot_of}
            m.d.comb += o.p.window[slot].eq(chosen(begin, known) if slots > 1 else known[0])
        return m


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
