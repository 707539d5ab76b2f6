"""What passes between the parts of the gatherer."""

from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth import unsigned
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import BANKS

from ...lib.stream import SkidBuffer
from ...smem.layouts import ReadLayout, read_data_layout
from ..layouts import GatherLayout

__all__ = ["AnswerLayout", "GatherPlanner", "GatherReadLayout", "in_pairs"]


def in_pairs(params):
    """Whether one read has lanes for two chunks of every piece: then there are no other reads."""
    return 2 * params.lanes <= BANKS


class GatherReadLayout(data.StructLayout):
    """What becomes of one read, and of the request that it belongs to."""

    def __init__(self, params, tag):
        piece = {
            "offset": unsigned(4),  # of the piece's first byte in a chunk
            "low": unsigned(5),
            "high": unsigned(5),
            "two": unsigned(1),  # its bytes lie in two chunks
        }
        members = {
            "size": unsigned(3),
            "fill": unsigned(16),
            "tag": tag,
            "reads": unsigned(1),  # an answer of shared memory belongs to it
        }
        if not in_pairs(params):
            piece["lane"] = range(BANKS)  # that has the chunk of its first byte; the next one, modulo 8, the second
            members["halves"] = unsigned(2)  # of the pieces, that this read brings
            members["last"] = unsigned(1)  # of its request
        if params.keeps_reads:
            # Without a read it has the chunks that were kept as those of a part; or with one it keeps them.
            members |= {"part": range(params.parts), "keeps": unsigned(1), "repeats": unsigned(1)}
        super().__init__({"pieces": data.ArrayLayout(data.StructLayout(piece), params.lanes), **members})


class AnswerLayout(data.StructLayout):
    """The answer to a read, and what becomes of it."""

    def __init__(self, params, tag):
        super().__init__({"chunks": read_data_layout(), "read": GatherReadLayout(params, tag)})


#: Pieces whose chunks, two each, one read brings.
_HALF = BANKS // 2


class _SpannedLayout(data.StructLayout):
    """A request whose pieces know their chunks."""

    def __init__(self, params, tag):
        piece = {
            "chunk": params.smem.addr_width - 4,  # of the first byte that is read
            "reads": 1,
            "two": 1,  # bytes are read of the next chunk too
            "offset": 4,
            "low": 5,
            "high": 5,
        }
        pieces = data.ArrayLayout(data.StructLayout(piece), params.lanes)
        request = GatherLayout(params, tag)
        super().__init__({"pieces": pieces, **{name: field.shape for name, field in request if name != "pieces"}})


class GatherPlanner(wiring.Component):
    """Makes the reads of shared memory out of requests for pieces, and says of each what it brings.

    Bytes of a piece lie in one chunk or in two. With up to four lanes, one read brings two chunks of every piece. With
    eight, the first that fits of:

    ======= ===== =====================================================================
    way     reads when
    ======= ===== =====================================================================
    window  1     eight consecutive chunks, from the first piece's on, have all bytes
    single  1     no piece has bytes in two chunks
    pairs   2     always: two chunks of each piece of one half, then of the other half
    ======= ===== =====================================================================

    Of pairs, a half that reads nothing costs no read. A request that reads nothing gives a step without a read, and so
    does one ``again`` whose bytes lie in the window that was read last for its part. Chunks of one bank cost cycles at
    the consumer port, in pairs and in single reads.

    Latency: from a request to ``steps`` 1 cycle, with eight lanes 3; ``reads`` is a cycle later. Throughput: a request,
    or a read, a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    tag : shape-like

    Members
    -------
    i : In(stream of GatherLayout(params, tag))
        ``ready`` depends on registers, and on ``steps.ready``.
    reads : Out(stream of ReadLayout(params.smem))
        Registered. One for each step with ``reads``, in order, never before its step.
    steps : Out(stream of GatherReadLayout(params, tag))
        Never waits for ``reads.ready`` of the same cycle.
    """

    def __init__(self, params, tag):
        self._params = params
        self._tag = tag
        self.valid = [Signal(name=f"valid{n + 1}") for n in range(1 if in_pairs(params) else 3)]  # of each stage
        self.second = Signal()  # the first of two reads is done
        super().__init__(
            {
                "i": In(stream.Signature(GatherLayout(params, tag))),
                "reads": Out(stream.Signature(ReadLayout(params.smem))),
                "steps": Out(stream.Signature(GatherReadLayout(params, tag))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.skid = skid = SkidBuffer(ReadLayout(self._params.smem))
        connect(m, skid=skid.o, reads=flipped(self.reads))

        move = Signal()  # all stages
        step = self.steps.payload
        spanned = _SpannedLayout(self._params, self._tag)
        stages = [Signal(spanned, name=f"spanned{n + 1}") for n in range(len(self.valid))]
        valid, request = self.valid[-1], stages[-1]
        with m.If(move):
            m.d.sync += Cat(self.valid).eq(Cat(self.i.valid, self.valid[:-1]))
            self._span(m, stages[0])
            m.d.sync += [after.eq(before) for before, after in pairwise(stages)]

        for name in ("size", "fill", "tag"):
            m.d.comb += step[name].eq(request[name])
        for of_step, piece in zip(step.pieces, request.pieces, strict=True):
            m.d.comb += [of_step[name].eq(piece[name]) for name in ("offset", "low", "high", "two")]
        if in_pairs(self._params):
            last = Const(1)
            m.d.comb += step.reads.eq(Cat(piece.reads for piece in request.pieces).any())
            _pairs(m, skid.i.payload, request.pieces)
        else:
            last = self._ways(m, move, stages, step, skid.i.payload)

        # Each waits for the room of the other one, and neither for its own.
        m.d.comb += [
            self.steps.valid.eq(valid & (skid.i.ready | ~step.reads)),
            skid.i.valid.eq(valid & step.reads & self.steps.ready),
            move.eq(~valid | (self.steps.valid & self.steps.ready & last)),
            self.i.ready.eq(move),
        ]
        return m

    def _span(self, m, spanned):
        """The first stage: where each piece's bytes begin and whether they reach the next chunk."""
        request = self.i.payload
        m.d.sync += [spanned[name].eq(request[name]) for name, _ in request.shape() if name != "pieces"]
        for piece, asked in zip(spanned.pieces, request.pieces, strict=True):
            offset = asked.address[:4]
            m.d.sync += [
                piece.chunk.eq((asked.address + asked.low)[4:]),
                piece.reads.eq(asked.low < asked.high),
                piece.two.eq((offset + asked.low < 16) & (offset + asked.high > 16)),
                piece.offset.eq(offset),
                piece.low.eq(asked.low),
                piece.high.eq(asked.high),
            ]

    def _ways(self, m, move, stages, step, read):
        """With eight lanes: which way a request goes, its step, and the read of that; whether the step is its last."""
        chunk = self._params.smem.addr_width - 4
        base, base_after = Signal(chunk), Signal(chunk)  # the first chunk that is read, in the second and third stage
        window, pairs = Signal(), Signal()
        repeats, keeps = Signal(), Signal()
        with m.If(move):
            m.d.sync += [base.eq(_first(stages[0].pieces)), base_after.eq(base)]
            outside, two, ends = [], [], []
            for piece in stages[1].pieces:
                distance = (piece.chunk - base)[:chunk]
                outside.append(piece.reads & (distance[3:].any() | (piece.two & distance[:3].all())))
                two.append(piece.reads & piece.two)
                ends.append(Mux(piece.reads, distance[:3] + piece.two, 0))
            near = ~Cat(outside).any()
            fits = self._fits(m, stages[1], base, near, ends)
            m.d.sync += [
                window.eq(near),
                pairs.eq(Cat(two).any() & ~near),
                repeats.eq(fits),
                keeps.eq(stages[1].kept.keep & near & ~fits),
            ]

        pieces = stages[2].pieces
        reads = Cat(piece.reads for piece in pieces)
        first, second = reads[:_HALF].any(), reads[_HALF:].any()
        half = Signal()  # which one is read, of pairs
        last = ~pairs | ~(first & second) | self.second
        m.d.comb += [
            half.eq(self.second | ~first),
            step.reads.eq((first | second) & ~repeats),
            step.halves.eq(Mux(pairs, Cat(~half, half), 3)),
            step.last.eq(last),
            step.part.eq(stages[2].kept.part),
            step.keeps.eq(keeps),
            step.repeats.eq(repeats),
        ]
        with m.If(self.steps.valid & self.steps.ready):
            m.d.sync += self.second.eq(~last)

        lanes = [*zip(pieces, step.pieces, strict=True)]
        with m.If(pairs):
            chosen = Signal(data.ArrayLayout(pieces[0].shape(), _HALF))
            for lane, one in enumerate(chosen):
                m.d.comb += one.eq(Mux(half, pieces[lane + _HALF], pieces[lane]))
            _pairs(m, read, chosen)
            m.d.comb += [of_step.lane.eq(2 * n % BANKS) for n, (_, of_step) in enumerate(lanes)]
        with m.Elif(window):
            # Each lane reads the bank of its number: of the row of the base, or of the next one.
            m.d.comb += read.lanes.eq(-1)
            after = (base_after[3:] + 1)[: chunk - 3]
            for lane in range(BANKS):
                row = Mux(base_after[:3] > lane, after, base_after[3:])
                m.d.comb += read.chunks[lane].eq(Cat(Const(lane, 3), row))
            m.d.comb += [of_step.lane.eq(piece.chunk[:3]) for piece, of_step in lanes]
        with m.Else():
            m.d.comb += read.lanes.eq(reads)
            for lane, (piece, of_step) in enumerate(lanes):
                m.d.comb += [read.chunks[lane].eq(piece.chunk), of_step.lane.eq(lane)]
        return last

    def _fits(self, m, request, base, near, ends):
        """Whether the window that was read last for the part of a request in the second stage has all of its bytes.

        ``ends`` are the last chunks of its pieces, from ``base`` on.
        """
        kept, parts = request.kept, self._params.parts
        bases, known = Signal(data.ArrayLayout(len(base), parts)), Signal(parts)
        ahead, fits = Signal.like(base), Signal()
        beyond = Cat(Cat(end + by >= BANKS for end in ends).any() for by in range(BANKS))
        within = ~ahead[3:].any() & ~beyond.bit_select(ahead[:3], 1)
        m.d.comb += [
            ahead.eq(base - bases[kept.part]),
            fits.eq(kept.again & known.bit_select(kept.part, 1) & near & within),
        ]
        with m.If(self.valid[1] & kept.keep & ~fits):
            reads = Cat(piece.reads for piece in request.pieces).any()
            m.d.sync += [bases[kept.part].eq(base), known.bit_select(kept.part, 1).eq(near & reads)]
        return fits


def _first(pieces):
    """The chunk of the first piece that reads; AND-OR and not a chain of multiplexers."""
    reads = Cat(piece.reads for piece in pieces)
    return reduce(or_, (Mux(piece.reads & ~reads[:n].any(), piece.chunk, 0) for n, piece in enumerate(pieces)))


def _pairs(m, read, pieces):
    """Two lanes for each piece, its chunk and the next one."""
    for n, piece in enumerate(pieces):
        m.d.comb += [
            read.lanes[2 * n].eq(piece.reads),
            read.lanes[2 * n + 1].eq(piece.reads & piece.two),
            read.chunks[2 * n].eq(piece.chunk),
            read.chunks[2 * n + 1].eq(piece.chunk + 1),
        ]
