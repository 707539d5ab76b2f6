"""The assembler and the writer: transfers of results become pieces of runs, and these become writes of chunks."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.logic import mux_tree, rotate_bytes
from ...lib.stream import ShallowQueue
from ...smem.layouts import CHUNK_BITS, ScatterWriteLayout
from ..layouts import PlanLayout
from .layouts import PieceOfRunLayout, ResultSizes, RunPieceLayout

__all__ = ["Assembler", "Writer"]

#: Complete buffers that can wait; the memory costs the same for 2 and for 16.
_FULL = 4


class Assembler(wiring.Component):
    """Collects the bytes of results, and cuts them into pieces of runs.

    A buffer has B = P · W bytes. In a convolution place p of a group has the W bytes from p · W on, and each transfer
    brings R / P of its results, until W bytes of each place are collected or the group is complete. In lane-private
    mode results are contiguous. A complete buffer, a *flush*, is queued, and its pieces are cut as ``pieces`` says, one
    a cycle, while the next one is collected.

    Latency 1 from the last transfer of a flush to its first piece. Throughput: a transfer a cycle, and a piece a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._params, self._sizes = params, ResultSizes(params)
        self.full = ShallowQueue(8 * self._sizes.buffer_bytes, _FULL)
        self.collected = Signal(8 * self._sizes.buffer_bytes)
        #: Transfers of the flush that have been collected.
        self.count = Signal(range(self._sizes.piece_bytes * self._sizes.together // params.conv.results))
        super().__init__(
            {
                "plan": In(PlanLayout(params)),  # constant while anything is under way
                "i": In(stream.Signature(data.ArrayLayout(32, params.conv.results))),  # ``ready`` depends on ``flush``
                "flush": In(stream.Signature(1)),  # for each transfer: it completes a flush
                "pieces": In(stream.Signature(RunPieceLayout(params))),
                "o": Out(stream.Signature(PieceOfRunLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.full = full = self.full
        i, flush = self.i, self.flush
        accepted, buffer = Signal(), Signal.like(self.collected)
        m.d.comb += [
            i.ready.eq(flush.valid & (~flush.payload | full.i.ready)),
            accepted.eq(i.valid & i.ready),
            flush.ready.eq(accepted),
            buffer.eq(Cat(self._byte(number) for number in range(self._sizes.buffer_bytes))),
            full.i.valid.eq(accepted & flush.payload),
            full.i.payload.eq(buffer),
        ]
        with m.If(accepted):
            m.d.sync += [self.count.eq(Mux(flush.payload, 0, self.count + 1)), self.collected.eq(buffer)]
        self._cut(m)
        return m

    def _byte(self, number):
        """A byte of the buffer with the current transfer: from the transfer, or its previous value."""
        results, sizes = self._params.conv.results, self._sizes
        place_results = results // sizes.together
        place, in_place = divmod(number, sizes.piece_bytes)
        code = Cat(self.plan.result_log2, self.plan.lanes)
        transfers, values = {}, {}
        for lanes, size in self._kinds:
            offset, count, base = (number, results, 0) if lanes else (in_place, place_results, place * place_results)
            result, byte = divmod(offset, 1 << size)
            transfer, lane = divmod(result, count)
            transfers[lanes << 2 | size] = self.count == transfer
            values[lanes << 2 | size] = self.i.payload[base + lane].word_select(byte, 8)
        return Mux(mux_tree(code, transfers), mux_tree(code, values), self.collected.word_select(number, 8))

    @property
    def _kinds(self):
        """Modes with log2 of the bytes of a result; 2 bytes for elements, and for sums of floats that are rounded."""
        half = [(1, 1)] if self._params.wide else []
        return [(0, 0), (0, 2), (1, 0), (1, 2), *half, *([(0, 1)] if self._params.floats else [])]

    def _cut(self, m):
        """Offers the pieces of the oldest flush with their windows."""
        o, pieces, full = self.o, self.pieces, self.full
        leaves = Signal()
        m.d.comb += [
            o.valid.eq(pieces.valid & full.o.valid),
            leaves.eq(o.valid & o.ready),
            pieces.ready.eq(leaves),
            full.o.ready.eq(leaves & pieces.payload.flush_last),
            *(o.payload[name].eq(pieces.payload[name]) for name, _ in o.payload.shape() if name != "window"),
        ]
        slots, width = self._sizes.buffer_bytes // 16, self._sizes.piece_bytes // 16
        for slot in range(width):
            begin, offset = pieces.payload.slot, slot
            if self._sizes.pairs and slot >= width // 2:
                begin, offset = pieces.payload.second.slot, slot - width // 2
            # A piece that begins in slot n has at most as many slots as the largest power of two that divides n.
            by_begin = {
                n: full.o.payload.word_select(n + offset, 128) for n in range(slots) if not n or n & -n > offset
            }
            m.d.comb += o.payload.window[slot].eq(mux_tree(begin, by_begin) if slots > 1 else by_begin[0])
        return m


class Writer(wiring.Component):
    """Writes pieces of runs at any byte address.

    A window of W bytes is written to W / 16 + 1 consecutive chunks, each by a lane. The bytes of each slot of the
    window are rotated by the address modulo 16; a chunk of shared memory then gets some bytes from one slot and the
    others from the previous slot. With pairs (:class:`ResultSizes`) each half of the window may be a piece of its own,
    of at most W / 2 bytes, and is rotated by its own address; one more lane writes the first chunk of the second piece.

    Latency 1, one piece a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    """

    def __init__(self, params):
        self._sizes = ResultSizes(params)
        super().__init__(
            {
                "plan": In(PlanLayout(params)),
                "i": In(stream.Signature(PieceOfRunLayout(params))),
                "o": Out(stream.Signature(ScatterWriteLayout(params.smem))),  # registered
                "written": Out(range(self._sizes.piece_bytes + 1)),  # results that are accepted at ``o`` in this cycle
            }
        )

    def elaborate(self, platform):
        m = Module()
        i, o, piece, write = self.i, self.o, self.i.payload, self.o.payload
        slots, half = self._sizes.piece_bytes // 16, self._sizes.piece_bytes // 32
        pairs, pair, count = self._sizes.pairs, Const(0, 1), Signal.like(self.written)
        origins = [piece.origin] * slots  # for each slot; the low 4 bits are the rotation
        within = _strobes(m, piece.first, piece.last, self._sizes.piece_bytes + 16, "within")
        if pairs:
            second, pair = piece.second, piece.second.there
            origins[half:] = [second.origin] * (slots - half)
            apart = _strobes(m, second.first, second.last, self._sizes.piece_bytes // 2 + 16, "apart")
            apart &= pair.replicate(len(apart))
        rotated = [
            rotate_bytes(m, piece.window[slot], origin[:4], left=True, name=f"rotated{slot}_")
            for slot, origin in enumerate(origins)
        ]
        results = (piece.bytes >> self.plan.result_log2) + 1
        m.d.comb += [i.ready.eq(~o.valid | o.ready), self.written.eq(Mux(o.valid & o.ready, count, 0))]
        with m.If(i.ready):
            m.d.sync += [o.valid.eq(i.valid), count.eq(results << pair)]
            for lane in range(slots + 1):
                own, previous = rotated[min(lane, slots - 1)], rotated[max(lane - 1, 0)]
                offset = origins[max(lane - 1, 0)][:4]
                merged = Cat(
                    Mux(offset > byte, previous.word_select(byte, 8), own.word_select(byte, 8))
                    for byte in range(CHUNK_BITS // 8)
                )
                strobes, chunk = within.word_select(lane, 16), piece.origin[4:] + lane
                if pairs and lane > half:
                    strobes, chunk = strobes | apart.word_select(lane - half, 16), second.origin[4:] + (lane - half)
                m.d.sync += [write.chunks[lane].eq(chunk), write.data[lane].eq(merged), write.strobes[lane].eq(strobes)]
            if pairs:
                m.d.sync += [
                    write.chunks[slots + 1].eq(second.origin[4:]),
                    write.data[slots + 1].eq(rotated[half]),
                    write.strobes[slots + 1].eq(apart[:16]),
                ]
        return m


def _strobes(m, first, last, count, name):
    """One bit for each of ``count`` bytes, ones from ``first`` to ``last``."""
    strobes = Signal(count, name=name)
    # Shifted constants: each comparison would be a carry chain of its own.
    ones, after = Const((1 << count) - 1, count), Const((1 << count) - 2, count)
    m.d.comb += strobes.eq((ones << first) & ~(after << last))
    return strobes
