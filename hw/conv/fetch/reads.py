"""Which chunks a gather request reads, and when."""

from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import BANKS

from ...lib.stream import SkidBuffer
from ...smem.layouts import ReadLayout, read_data_layout
from ..layouts import GatherLayout

__all__ = ["AnswerLayout", "GatherPlanner", "GatherReadLayout", "in_pairs"]

#: Pieces whose chunks, two each, are brought by one read.
_HALF = BANKS // 2


def in_pairs(params):
    """Whether one read has lanes for two chunks of every piece: then a request never needs a second read."""
    return 2 * params.lanes <= BANKS


class GatherReadLayout(data.StructLayout):
    """A step of a request: what its read brings, or that there is none."""

    def __init__(self, params, tag):
        piece = {
            "offset": unsigned(4),  # of the piece's first byte in a chunk
            "low": unsigned(5),
            "high": unsigned(5),
            "two": unsigned(1),  # its bytes are in two chunks
        }
        members = {
            "size": unsigned(3),
            "fill": unsigned(16),
            "tag": tag,
            "reads": unsigned(1),  # an answer of shared memory belongs to it
        }
        if not in_pairs(params):
            piece["lane"] = range(BANKS)  # with the chunk of the first byte; the second chunk: the next lane, modulo 8
            members["halves"] = unsigned(2)  # halves of the pieces that this read brings
            members["last"] = unsigned(1)  # last step of its request
        if params.reuses_reads:
            # A step keeps the chunks that it reads for its part, or without a read uses those that were kept.
            members |= {"part": range(params.parts), "keeps": unsigned(1), "reuses": unsigned(1)}
        super().__init__({"pieces": data.ArrayLayout(data.StructLayout(piece), params.lanes), **members})


class AnswerLayout(data.StructLayout):
    """The chunks for a step, and the step."""

    def __init__(self, params, tag):
        super().__init__({"chunks": read_data_layout(), "read": GatherReadLayout(params, tag)})


class _SpannedLayout(data.StructLayout):
    """A request with the chunks of its pieces."""

    def __init__(self, params, tag):
        piece = {
            "chunk": params.smem.addr_width - 4,  # of the first byte that is read
            "reads": 1,
            "two": 1,  # bytes of the next chunk are read too
            "offset": 4,
            "low": 5,
            "high": 5,
        }
        pieces = data.ArrayLayout(data.StructLayout(piece), params.lanes)
        request = GatherLayout(params, tag)
        super().__init__({"pieces": pieces, **{name: field.shape for name, field in request if name != "pieces"}})


class GatherPlanner(wiring.Component):
    """Turns requests for pieces into reads of shared memory, and describes for each what it brings.

    The bytes of a piece are in one chunk or in two. With up to four lanes, one read brings two chunks of every piece.
    With eight lanes, the first way that is possible is taken:

    ======= ===== =====================================================================
    way     reads possible when
    ======= ===== =====================================================================
    window  1     eight consecutive chunks, from the first piece's on, have all bytes
    single  1     no piece has bytes in two chunks
    pairs   2     always: two chunks of each piece of one half, then of the other half
    ======= ===== =====================================================================

    With pairs, a half without bytes costs no read. A request without bytes gives a step without a read, and so does one
    with ``again`` whose bytes are in the window that was last read for its part. With pairs and single reads, chunks in
    the same bank cost cycles at the consumer port.

    Latency: from a request to ``steps`` 1 cycle, with eight lanes 3; ``reads`` is a cycle later. Throughput: a request,
    or a read, a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    tag : shape-like
    """

    def __init__(self, params, tag):
        self._params = params
        self._tag = tag
        self.valid = [Signal(name=f"valid{n + 1}") for n in range(1 if in_pairs(params) else 3)]  # of each stage
        self.second = Signal()  # the first of two reads has left
        super().__init__(
            {
                "i": In(stream.Signature(GatherLayout(params, tag))),  # ``ready`` depends on ``steps.ready``
                # Registered. One for each step with ``reads``, in order, never before its step.
                "reads": Out(stream.Signature(ReadLayout(params.smem))),
                "steps": Out(stream.Signature(GatherReadLayout(params, tag))),  # does not depend on ``reads.ready``
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.skid = skid = SkidBuffer(ReadLayout(self._params.smem))
        connect(m, skid.o, flipped(self.reads))

        move = Signal()  # all stages advance
        step = self.steps.payload
        spanned = _SpannedLayout(self._params, self._tag)
        stages = [Signal(spanned, name=f"spanned{n + 1}") for n in range(len(self.valid))]
        valid, request = self.valid[-1], stages[-1]
        with m.If(move):
            m.d.sync += Cat(self.valid).eq(Cat(self.i.valid, self.valid[:-1]))
            self._span(m, stages[0])
            m.d.sync += [following.eq(stage) for stage, following in pairwise(stages)]

        m.d.comb += [step[name].eq(request[name]) for name in ("size", "fill", "tag")]
        for step_piece, piece in zip(step.pieces, request.pieces, strict=True):
            m.d.comb += [step_piece[name].eq(piece[name]) for name in ("offset", "low", "high", "two")]
        if in_pairs(self._params):
            last = Const(1)
            m.d.comb += step.reads.eq(Cat(piece.reads for piece in request.pieces).any())
            _read_pairs(m, skid.i.payload, request.pieces)
        else:
            last = self._choose_way(m, move, stages, step, skid.i.payload)

        # Each side waits for room on the other side, but not for its own.
        m.d.comb += [
            self.steps.valid.eq(valid & (skid.i.ready | ~step.reads)),
            skid.i.valid.eq(valid & step.reads & self.steps.ready),
            move.eq(~valid | (self.steps.valid & self.steps.ready & last)),
            self.i.ready.eq(move),
        ]
        return m

    def _span(self, m, spanned):
        """The first stage: where each piece's bytes begin, and whether they reach the next chunk."""
        request = self.i.payload
        m.d.sync += [spanned[name].eq(request[name]) for name, _ in request.shape() if name != "pieces"]
        for spanned_piece, piece in zip(spanned.pieces, request.pieces, strict=True):
            offset = piece.address[:4]
            m.d.sync += [
                spanned_piece.chunk.eq((piece.address + piece.low)[4:]),
                spanned_piece.reads.eq(piece.low < piece.high),
                spanned_piece.two.eq((offset + piece.low < 16) & (offset + piece.high > 16)),
                spanned_piece.offset.eq(offset),
                spanned_piece.low.eq(piece.low),
                spanned_piece.high.eq(piece.high),
            ]

    def _choose_way(self, m, move, stages, step, read):
        """With eight lanes: chooses the way of a request, and makes its step and read. Returns whether the step is its
        last."""
        chunk = self._params.smem.addr_width - 4
        base, last_base = Signal(chunk), Signal(chunk)  # the first chunk that is read, in the second and third stage
        window, pairs, reuses, keeps = Signal(), Signal(), Signal(), Signal()
        with m.If(move):
            m.d.sync += [base.eq(_first_chunk(stages[0].pieces)), last_base.eq(base)]
            outside, two, ends = [], [], []
            for piece in stages[1].pieces:
                distance = (piece.chunk - base)[:chunk]
                outside.append(piece.reads & (distance[3:].any() | (piece.two & distance[:3].all())))
                two.append(piece.reads & piece.two)
                ends.append(Mux(piece.reads, distance[:3] + piece.two, 0))
            in_window = ~Cat(outside).any()
            hit = self._reuse(m, stages[1], base, in_window, ends)
            m.d.sync += [
                window.eq(in_window),
                pairs.eq(Cat(two).any() & ~in_window),
                reuses.eq(hit),
                keeps.eq(stages[1].reuse.keep & in_window & ~hit),
            ]

        pieces = stages[2].pieces
        reads = Cat(piece.reads for piece in pieces)
        first, second = reads[:_HALF].any(), reads[_HALF:].any()
        half = Signal()  # the half that is read, with pairs
        last = ~pairs | ~(first & second) | self.second
        m.d.comb += [
            half.eq(self.second | ~first),
            step.reads.eq((first | second) & ~reuses),
            step.halves.eq(Mux(pairs, Cat(~half, half), 3)),
            step.last.eq(last),
            step.part.eq(stages[2].reuse.part),
            step.keeps.eq(keeps),
            step.reuses.eq(reuses),
        ]
        with m.If(self.steps.valid & self.steps.ready):
            m.d.sync += self.second.eq(~last)

        lanes = [*zip(pieces, step.pieces, strict=True)]
        with m.If(pairs):
            half_pieces = Signal(data.ArrayLayout(pieces[0].shape(), _HALF))
            m.d.comb += [half_pieces[n].eq(Mux(half, pieces[n + _HALF], pieces[n])) for n in range(_HALF)]
            _read_pairs(m, read, half_pieces)
            m.d.comb += [step_piece.lane.eq(2 * n % BANKS) for n, (_, step_piece) in enumerate(lanes)]
        with m.Elif(window):
            # Each lane reads the bank of its number, in the row of the base or in the next row.
            m.d.comb += read.lanes.eq(-1)
            next_row = (last_base[3:] + 1)[: chunk - 3]
            for lane in range(BANKS):
                row = Mux(last_base[:3] > lane, next_row, last_base[3:])
                m.d.comb += read.chunks[lane].eq(Cat(Const(lane, 3), row))
            m.d.comb += [step_piece.lane.eq(piece.chunk[:3]) for piece, step_piece in lanes]
        with m.Else():
            m.d.comb += read.lanes.eq(reads)
            for lane, (piece, step_piece) in enumerate(lanes):
                m.d.comb += [read.chunks[lane].eq(piece.chunk), step_piece.lane.eq(lane)]
        return last

    def _reuse(self, m, request, base, in_window, ends):
        """Whether the window that was last read for the part of a request in the second stage has all of its bytes.

        ``ends`` are the last chunks of its pieces, counted from ``base``.
        """
        reuse, parts = request.reuse, self._params.parts
        bases, known = Signal(data.ArrayLayout(len(base), parts)), Signal(parts)
        distance, hit = Signal.like(base), Signal()
        beyond = Cat(Cat(end + shift >= BANKS for end in ends).any() for shift in range(BANKS))
        within = ~distance[3:].any() & ~beyond.bit_select(distance[:3], 1)
        m.d.comb += [
            distance.eq(base - bases[reuse.part]),
            hit.eq(reuse.again & known.bit_select(reuse.part, 1) & in_window & within),
        ]
        with m.If(self.valid[1] & reuse.keep & ~hit):
            reads = Cat(piece.reads for piece in request.pieces).any()
            m.d.sync += [bases[reuse.part].eq(base), known.bit_select(reuse.part, 1).eq(in_window & reads)]
        return hit


def _first_chunk(pieces):
    """The chunk of the first piece that reads; AND-OR instead of a chain of multiplexers."""
    reads = Cat(piece.reads for piece in pieces)
    return reduce(or_, (Mux(piece.reads & ~reads[:n].any(), piece.chunk, 0) for n, piece in enumerate(pieces)))


def _read_pairs(m, read, pieces):
    """Two lanes for each piece: its chunk and the next one."""
    for n, piece in enumerate(pieces):
        m.d.comb += [
            read.lanes[2 * n].eq(piece.reads),
            read.lanes[2 * n + 1].eq(piece.reads & piece.two),
            read.chunks[2 * n].eq(piece.chunk),
            read.chunks[2 * n + 1].eq(piece.chunk + 1),
        ]
