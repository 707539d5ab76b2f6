"""Chunks become pieces, and pieces are packed."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from tilewright.golden.spec import CHUNK_BYTES

from ...lib.delay import delay
from ...lib.rotate import rotate_bytes
from ..layouts import GatheredLayout
from .layouts import AnswerLayout, in_pairs

__all__ = ["PiecePacker"]

_PLACES = range(CHUNK_BYTES)
#: The largest size, of 16 bytes.
_SIZES = ceil_log2(CHUNK_BYTES)


class PiecePacker(wiring.Component):
    """Takes the bytes of each piece out of the chunks of a request's answers, and puts the pieces side by side.

    A register behind each of: the answer as it comes; the 16 bytes of each piece, where they lie in its one or two
    chunks; those turned by up to three bytes; by fours, and filled; the pieces packed. Answers are collected in the
    second one.

    Latency: ``LATENCY`` cycles from a request's last answer. Throughput: one answer a cycle; nothing stalls.

    Parameters
    ----------
    params : ConvUnitParams
    tag : shape-like

    Members
    -------
    i : In(stream of AnswerLayout(params, tag), always ready)
    o : Out(stream of GatheredLayout(params, tag), always ready)
        Registered. One for each answer with ``last``; with up to four lanes, for each.
    """

    LATENCY = 5

    def __init__(self, params, tag):
        self._params = params
        self._tag = tag
        self.valid = [Signal(name=f"valid{n + 1}") for n in range(self.LATENCY)]  # of each register
        super().__init__(
            {
                "i": In(stream.Signature(AnswerLayout(params, tag), always_ready=True)),
                "o": Out(stream.Signature(GatheredLayout(params, tag), always_ready=True)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        answer = Signal(AnswerLayout(self._params, self._tag), reset_less=True)
        complete = self.valid[0] if in_pairs(self._params) else self.valid[0] & answer.read.last
        m.d.sync += [
            Cat(self.valid).eq(Cat(self.i.valid, complete, self.valid[1:-1])),
            answer.eq(self.i.payload),
        ]
        # What belongs to the bytes in the next registers.
        reads = [answer.read]
        for name in ("chosen", "turned"):
            reads.append(Signal.like(answer.read, name=f"{name}_read", reset_less=True))
            m.d.sync += reads[-1].eq(reads[-2])

        pieces = []
        for n in range(self._params.lanes):
            chosen = self._choose(m, answer, n)
            # By up to three bytes, then by fours: a register between makes two choices of four out of one of sixteen.
            piece = reads[1].pieces[n]
            turned = rotate_bytes(m, chosen, piece.offset[:2], left=False, name=f"near{n}_")
            turned = delay(m, turned, 1, name=f"turned{n}")
            inside = delay(m, Cat((piece.low <= i) & (piece.high > i) for i in _PLACES), 1, name=f"inside{n}")
            by_fours = Cat(Const(0, 2), reads[2].pieces[n].offset[2:])
            turned = rotate_bytes(m, turned, by_fours, left=False, name=f"far{n}_")
            filled = (Mux(inside[i], turned.word_select(i, 8), reads[2].fill.word_select(i & 1, 8)) for i in _PLACES)
            pieces.append(delay(m, Cat(filled), 1, name=f"piece{n}"))

        size, tag = delay(m, reads[2].size, 1, name="size"), delay(m, reads[2].tag, 1, name="tag")
        for slot in range(len(pieces)):
            m.d.sync += self.o.payload.data[slot].eq(_packed(m, pieces, size, slot))
        m.d.sync += Value.cast(self.o.payload.tag).eq(tag)
        m.d.comb += self.o.valid.eq(self.valid[-1])
        return m

    def _choose(self, m, answer, n):
        """The 16 bytes of piece n's chunks, each where it lies in its chunk: those before the piece's offset are of the
        second chunk, if there are two."""
        piece = self.i.payload.read.pieces[n]
        if in_pairs(self._params):
            chunks, lane, takes = [answer.chunks[2 * n], answer.chunks[2 * n + 1]], 0, 1
        else:
            chunks, lane = answer.chunks, piece.lane
            takes = self.valid[0] & answer.read.halves[2 * n // self._params.lanes]
        chosen = Signal(8 * CHUNK_BYTES, name=f"chosen{n}", reset_less=True)
        for place in _PLACES:
            # Where it comes from is found while the answer is registered: behind that it would be the longest path.
            choice = Signal(ceil_log2(len(chunks)), name=f"choice{n}_{place}", reset_less=True)
            m.d.sync += choice.eq(lane + (piece.two & (piece.offset > place)))
            with m.If(takes):
                bytes_ = Cat(chunk.word_select(place, 8) for chunk in chunks)
                m.d.sync += chosen.word_select(place, 8).eq(bytes_.word_select(choice, 8))
        return chosen


def _packed(m, pieces, size, slot):
    """The 16 bytes of one slot. Where a size has no piece for a byte, it is that of the largest size."""
    packed = Signal(8 * CHUNK_BYTES, name=f"packed{slot}")
    with m.Switch(size):
        for log2 in range(_SIZES):
            bytes_ = []
            for byte in range(CHUNK_BYTES * slot, CHUNK_BYTES * (slot + 1)):
                piece, place = byte >> log2, byte & (1 << log2) - 1
                if piece >= len(pieces):
                    piece, place = slot, byte % CHUNK_BYTES
                bytes_.append(pieces[piece].word_select(place, 8))
            with m.Case(log2):
                m.d.comb += packed.eq(Cat(bytes_))
        with m.Default():
            m.d.comb += packed.eq(pieces[slot])
    return packed
