"""Word placer: rounds and fills, and writes each word to its place in shared memory."""

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
    """Writes pieces to shared memory, or hands them to the store path, and completes transfers.

    A *segment* is as many aligned bytes of shared memory as a bus word has. Byte p of an aligned word belongs to byte p
    of every segment. So the word is put into all segments of the line, and each byte of the line is chosen from it or
    from the fill; a swizzle has permuted the chunks of the word, and permutes the choices. What a word has of the next
    line waits: the word before is still in its register, and the bytes that it has of this line make the *first word*,
    which takes the place of the word in the first segment of the line. So does a piece with a ``joint``. The word
    before lies as its own line is swizzled. That is this line or the one before it, which leaves three ways to permute
    its chunks: with the word itself four choices for each byte.

    Pieces with ``stage`` are joined in the same way, but segment by segment: a segment is staged when it is complete,
    or the transfer is, and one that remains takes a cycle more.

    The completion of a transfer that is not quiet is valid from the cycle after its last write is accepted; the last
    write of the next such transfer waits for it.

    Latency: one cycle. Throughput: one piece a cycle.
    """

    def __init__(self, params):
        self._params = params
        self.word = Signal(params.bus_width)  # of the write, and the one before of the next
        self.first_word = Signal(params.bus_width)  # in its place in the first segment of a line
        self.rest = Signal(7)  # bytes of the next line that are still to be written, which lies
        self.rest_flips = Signal(_FLIPS)  # so
        self.rest_data = Signal(params.bus_log2)  # bytes of the line, with stage of the segment, that are in ``word``
        self.flips = Signal(params.bus_log2 - _CHUNK_LOG2)  # how the chunks of ``word`` are permuted
        self.ending = Signal()  # the write completes a transfer that is not quiet
        self.ended = Signal(CompletionLayout(params))  # that completion; error and address are the staged word's too
        self.turn = Signal(2)  # of the transfer at the input, in a cluster
        self.flushing = Signal()  # the rest of the last piece is being staged
        super().__init__(
            {
                # ``ready`` depends combinationally on ``rows.ready`` and ``staged.ready``. Pieces with ``stage`` have
                # data only, from shared address 0 on, and no swizzle or rounding.
                "i": In(stream.Signature(AlignedLayout(params))),
                # The row of the next write. ``ready`` is high when the write before it is done, and until a row is
                # taken.
                "rows": Out(stream.Signature(unsigned(params.smem.row_width))),
                # What is written to the row that was taken last.
                "data": Out(LineWordsLayout(params.bus_bytes)),
                # Which bytes of it.
                "strobe": Out(LINE_BYTES),
                # Registered.
                "staged": Out(stream.Signature(StagedWordLayout(params))),
                "completions": Out(stream.Signature(CompletionLayout(params))),
                # Of the transfer that the write belongs to, as in LineLayout.
                **({"delivery": Out(self._delivery())} if params.cores > 1 else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        piece, stage = self.i.payload.piece, self.i.payload.context.stage

        passed = Signal()  # the completion of the write before is on its way, or the staged word
        free = Signal()  # the write before is done too
        load = Signal()  # the piece goes into the registers
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
        """Segments for the store path; whether another one remains of the piece at the input."""
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
        """The registers of the write, and the line made of them."""
        params, context, piece = self._params, self.i.payload.context, self.i.payload.piece
        inner = len(self.flips)  # flips inside a segment; the others are of segments
        flips, flips_before = Signal(_FLIPS), self.flips
        m.d.comb += flips.eq(chunk_flips(context.swizzle, piece.line))

        word, first_word = Signal.like(self.word, name="rounded"), Signal.like(self.word, name="joined")
        # What is left of the piece before lies below a ``joint``: so either of both tells.
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
        # Without a piece there is no write, and this may be anything.
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
        """A transfer that is not quiet completes in the cycle after its last write."""
        context, completions = self.i.payload.context, self.completions
        ended = self.ended
        with m.If(completions.ready):
            m.d.sync += completions.valid.eq(0)
        # As long as none waits there: what completes is known too late for so many enables.
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
    """Byte by byte ``word``, or where ``mask`` is set ``before``, each chunk at its place XOR ``turns``.

    A number and the next one differ in their lowest bits, up to the lowest zero: so ``turns`` are 0, 1 or 3.
    """
    chunks = [before.word_select(k, _CHUNK_BITS) for k in range(1 << len(turns))]
    turned = [Cat(chunks[k ^ flips] for k in range(len(chunks))) for flips in (0, 1, 3) if flips < len(chunks)]
    choices = [word, *turned, *[before] * (3 - len(turned))]
    # A number for each byte: 1 and 3 are an even number of turned bits, 2 and 3 turn the lowest.
    even, odd = mask & (~turns.xor()).replicate(len(mask)), mask & turns[:1].any().replicate(len(mask))

    def byte(k):
        chosen = [choice.word_select(k, 8) for choice in choices]
        return Mux(odd[k], Mux(even[k], chosen[3], chosen[2]), Mux(even[k], chosen[1], chosen[0]))

    return Cat(byte(k) for k in range(len(mask)))
