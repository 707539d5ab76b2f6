"""The word placer: writes words and fill to shared memory."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import CHUNK_BYTES, LINE_BYTES

from ...smem.layouts import LineLayout, LineWordsLayout, chunk_flips
from ..layouts import CompletionLayout, StagedWordLayout, delivery_members
from .fill import below, bytes_below, round_tf32
from .layouts import AlignedLayout

__all__ = ["WordPlacer"]

_CHUNK_BITS = 8 * CHUNK_BYTES
_CHUNK_LOG2 = CHUNK_BYTES.bit_length() - 1
_FLIPS = (LINE_BYTES // CHUNK_BYTES).bit_length() - 1


class WordPlacer(wiring.Component):
    """Writes pieces to shared memory, or sends them to the store path, and completes transfers.

    A *segment* is an aligned part of a line, as wide as a bus word. Byte p of a word belongs to byte p of a segment, so
    the word goes to all segments of the line, and each byte of the line is either that byte or fill. A swizzle has
    permuted the chunks of the word, and permutes the masks. If the previous word has bytes of this line, either because
    it reached past its own line or because of a ``joint``, they replace bytes of the word in the *first word*, which
    goes to the first segment of the line. The previous word is swizzled like its own line, which is this line or the
    line before. That leaves three permutations of its chunks, so each byte of the first word is a multiplexer of four.

    Pieces with ``stage`` are combined in the same way, segment by segment. A segment is sent when it or the transfer is
    complete. If the last piece reaches into another segment, that takes one more cycle.

    The completion of a transfer that is not quiet is valid from the cycle after its last write was accepted; the last
    write of the next such transfer waits for it.

    Latency: one cycle. Throughput: one piece a cycle.
    """

    def __init__(self, params):
        self._params = params
        self.word = Signal(params.bus_width)  # of the current write; the previous word for the next piece
        self.first_word = Signal(params.bus_width)  # of the first segment of the line
        self.rest = Signal(7)  # bytes of the next line that remain to be written
        self.rest_flips = Signal(_FLIPS)  # permutation of the chunks of that line
        self.rest_data = Signal(params.bus_log2)  # remaining bytes of the line, with stage of the segment, in ``word``
        self.flips = Signal(params.bus_log2 - _CHUNK_LOG2)  # permutation of the chunks of ``word``
        self.ending = Signal()  # the write completes a transfer that is not quiet
        self.ended = Signal(CompletionLayout(params))  # that completion; the staged word has the same error and address
        self.turn = Signal(2)  # in a cluster: of the transfer at the input
        self.flushing = Signal()  # the last segment of the last piece is being sent
        super().__init__(
            {
                # ``ready`` depends combinationally on ``rows.ready`` and ``staged.ready``. Pieces with ``stage`` start
                # at shared address 0 and have no fill, swizzle or rounding.
                "i": In(stream.Signature(AlignedLayout(params))),
                # Row of the next write. ``ready`` is high from the end of the previous write until a row is accepted.
                "rows": Out(stream.Signature(unsigned(params.smem.row_width))),
                "data": Out(LineWordsLayout(params.bus_bytes)),  # Contents of the row that was accepted last.
                "strobe": Out(LINE_BYTES),  # Bytes of the row that are written.
                "staged": Out(stream.Signature(StagedWordLayout(params))),  # Registered.
                "completions": Out(stream.Signature(CompletionLayout(params))),
                # Members of the transfer that the write belongs to, as in LineLayout.
                **({"delivery": Out(self._delivery())} if params.cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        piece, stage = self.i.payload.piece, self.i.payload.context.stage

        passed = Signal()  # the completion and the staged word of the previous piece have left, or leave now
        free = Signal()  # its write is done as well
        load = Signal()  # the piece enters the registers
        m.d.comb += [
            passed.eq(~(self.ending & self.completions.valid) & (~self.staged.valid | self.staged.ready)),
            free.eq(self.rows.ready & passed),
        ]
        flushes = self._stage(m, free, load)
        m.d.comb += [
            self.rows.valid.eq(self.i.valid & ~stage & ((piece.first != piece.end) | self.rest.any()) & passed),
            self.rows.payload.eq(piece.line),
            load.eq(self.i.valid & free),
            self.i.ready.eq(free & ~flushes),
        ]
        self._write(m, free, load)
        self._complete(m, free)
        return m

    def _delivery(self):
        line = LineLayout(self._params.smem, self._params.cores)
        return data.StructLayout({name: line[name].shape for name in ("receivers", "turn", "reduction", "element")})

    def _stage(self, m, free, load):
        """Sends segments to the store path; returns whether the piece at the input needs another cycle."""
        bus_log2 = self._params.bus_log2
        piece = self.i.payload.piece
        stages, over, flushes = Signal(), Signal(), Signal()
        m.d.comb += [
            over.eq(piece.first[bus_log2:] != piece.end[bus_log2:]),
            stages.eq(self.i.payload.context.stage & (over | piece.last)),
            flushes.eq(self.i.payload.remains & ~self.flushing),
            self.staged.payload.data.eq(self.first_word),
            self.staged.payload.error.eq(self.ended.error),
            self.staged.payload.address.eq(self.ended.address),
        ]
        with m.If(self.staged.ready):
            m.d.sync += self.staged.valid.eq(0)
        with m.If(load & stages):
            m.d.sync += [self.staged.valid.eq(1), self.flushing.eq(flushes)]
        return flushes

    def _write(self, m, free, load):
        """The registers of the write: first word, masks and fill."""
        params, context, piece = self._params, self.i.payload.context, self.i.payload.piece
        inner = len(self.flips)  # the lower flips permute chunks of a segment, the others segments
        flips, flips_before = Signal(_FLIPS), self.flips
        m.d.comb += flips.eq(chunk_flips(context.swizzle, piece.line))

        word, first_word = Signal.like(self.word, name="rounded"), Signal.like(self.word, name="joined")
        # If both are set, the rest of the previous piece lies below the ``joint``.
        from_before = below(m, piece.joint, flips[:inner], "from_joint") | below(
            m, self.rest_data, self.rest_flips[:inner], "from_rest"
        )
        lanes = (
            round_tf32(self.i.payload.word.word_select(lane, 32), context.tf32, rounding.nan, rounding.up)
            for lane, rounding in enumerate(self.i.payload.roundings)
        )
        m.d.comb += [
            word.eq(Cat(lanes)),
            first_word.eq(_joined(from_before, self.word, flips[:inner] ^ flips_before, word)),
        ]

        def of_rest(limit, name):
            return below(m, limit, self.rest_flips, name)

        def of_piece(name):
            chunks = self.i.payload.chunks[name]
            return bytes_below(m, chunks.whole, chunks.partly, piece[name], name)

        written = of_rest(self.rest, "rest") | (of_piece("end") & ~of_piece("first"))
        is_data = of_rest(self.rest_data, "rest_data") | (of_piece("data_end") & ~of_piece("data_first"))
        line = self.data
        m.d.comb += [line.word.eq(self.word), line.first_word.eq(self.first_word)]
        if params.cores > 1:
            with m.If(load):
                m.d.sync += [self.delivery[name].eq(context[name]) for name in ("receivers", "reduction", "element")]
                m.d.sync += self.delivery.turn.eq(self.turn)
        with m.If(load):
            m.d.sync += [
                self.word.eq(word),
                flips_before.eq(flips[:inner]),
                self.rest.eq(Mux(piece.end[7], piece.end[:7], 0)),
                self.rest_flips.eq(chunk_flips(context.swizzle, piece.line + 1)),
                self.rest_data.eq(
                    Mux((piece.data_end[7] | context.stage) & ~piece.last, piece.data_end[: params.bus_log2], 0)
                ),
            ]
        # Without a piece there is no write, and these may have any value.
        with m.If(free):
            m.d.sync += [
                self.first_word.eq(first_word),
                line.fill.eq(context.fill),
                line.filled.eq(~is_data),
                line.fills.eq(
                    (self.rest != self.rest_data) | (piece.first != piece.data_first) | (piece.end != piece.data_end)
                ),
                line.first.eq(Cat(place == flips[inner:] for place in range(len(line.first)))),
                self.strobe.eq(written),
            ]

    def _complete(self, m, free):
        """Completes a transfer that is not quiet in the cycle after its last write."""
        context, completions = self.i.payload.context, self.completions
        ended = self.ended
        with m.If(completions.ready):
            m.d.sync += completions.valid.eq(0)
        # Enabled by ``valid`` alone, because the end of a transfer is known too late for the enable of all these bits.
        with m.If(~completions.valid):
            m.d.sync += completions.payload.eq(ended)
        ends = self.i.valid & self.i.ready & self.i.payload.piece.last & ~context.quiet
        if self._params.cores > 1:
            m.d.sync += self.turn.eq(self.turn + ends)
            with m.If(free):
                m.d.sync += ended.turn.eq(self.turn)
        with m.If(free):
            m.d.sync += self.ending.eq(ends)
            names = ("tag", "signal", "barrier", "bytes", *delivery_members(self._params))
            m.d.sync += [ended[name].eq(context[name]) for name in names]
            m.d.sync += [
                ended.error.eq(self.i.payload.error),
                ended.write.eq(0),
                ended.address.eq(self.i.payload.address),
            ]
            with m.If(self.ending):
                m.d.sync += completions.valid.eq(1)


def _joined(mask, before, turns, word):
    """``word`` with the bytes of ``mask`` replaced by ``before``, whose chunk c moves to c XOR ``turns``.

    Consecutive numbers differ in the bits up to the lowest zero, so ``turns`` is 0, 1 or 3.
    """
    chunks = [before.word_select(k, _CHUNK_BITS) for k in range(1 << len(turns))]
    turned = [Cat(chunks[k ^ flips] for k in range(len(chunks))) for flips in (0, 1, 3) if flips < len(chunks)]
    choices = [word, *turned, *[before] * (3 - len(turned))]
    # The code of each byte: bit 0 for an even number of turned bits, bit 1 if the lowest bit is turned.
    even, odd = mask & (~turns.xor()).replicate(len(mask)), mask & turns[:1].any().replicate(len(mask))

    def byte(k):
        chosen = [choice.word_select(k, 8) for choice in choices]
        return Mux(odd[k], Mux(even[k], chosen[3], chosen[2]), Mux(even[k], chosen[1], chosen[0]))

    return Cat(byte(k) for k in range(len(mask)))
