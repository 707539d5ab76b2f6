"""Line assembler: rounds, fills and gathers the pieces of a line."""

from amaranth import unsigned
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..smem.layouts import LineLayout
from ..smem.params import LINE_BYTES
from .layouts import CompletionLayout
from .realign import AlignedLayout

__all__ = ["AssembledLayout", "LineAssembler", "round_tf32"]


class AssembledLayout(data.StructLayout):
    """A line of a transfer that is complete."""

    def __init__(self, params):
        super().__init__(
            {
                "line": LineLayout(params.smem),  # not swizzled yet
                "swizzle": unsigned(2),
                "last": unsigned(1),  # of the transfer
                "completion": CompletionLayout(params),  # meaningful with the last line
            }
        )


def round_tf32(value):
    """A 32-bit float rounded to the ten mantissa bits of TF32 (tmau.md section 2), to nearest even.

    A NaN becomes 0x7FFFE000; what is too large to round down becomes infinity.
    """
    kept, dropped = value[13:], value[:13]
    up = dropped[12] & (dropped[:12].any() | kept[0])
    nan = value[23:31].all() & value[:23].any()
    return Mux(nan, 0x7FFFE000, Cat(Const(0, 13), (kept + up)[: len(kept)]))


def _below(limit):
    """Strobe of the bytes 0 … ``limit`` - 1 of a line."""
    return ~(Const(-1, LINE_BYTES) << limit)[:LINE_BYTES]


def _select(strobe, chosen, other):
    """Byte by byte: ``chosen`` where ``strobe`` is set, and ``other`` elsewhere."""
    mask = Cat(bit.replicate(len(chosen) // len(strobe)) for bit in strobe)
    return (chosen & mask) | (other & ~mask)


class LineAssembler(wiring.Component):
    """Merges data, rounded where the transfer says so, and fill to lines.

    Bytes wait in the line register until a piece with ``emit`` completes their line. What that piece has of the next line
    starts the register over.

    Latency: one cycle from the piece that completes a line. Throughput: one piece a cycle.

    Members
    -------
    aligned : In(stream of AlignedLayout)
    lines : Out(stream of AssembledLayout)
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "aligned": In(stream.Signature(AlignedLayout(params))),
                "lines": Out(stream.Signature(AssembledLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bus_bytes = self._params.bus_bytes
        aligned, lines = self.aligned.payload, self.lines.payload
        piece = aligned.piece

        lanes = [aligned.word.word_select(lane, 32) for lane in range(bus_bytes // 4)]
        word = Signal(aligned.word.shape())
        m.d.comb += word.eq(Cat(Mux(aligned.tf32, round_tf32(lane), lane) for lane in lanes))
        word_line = word.replicate(LINE_BYTES // bus_bytes)
        fill_line = aligned.fill.replicate(LINE_BYTES // 4)

        # Bytes of this line and, with an end of more than 128, of the next. In both a byte has the same place in the word.
        written, from_word, next_written, next_from_word = (
            Signal(LINE_BYTES, name=name) for name in ("written", "from_word", "next_written", "next_from_word")
        )
        reaches = piece.end[7].replicate(LINE_BYTES)
        data_reach = piece.data_end[7].replicate(LINE_BYTES)
        m.d.comb += [
            written.eq(~_below(piece.first) & (_below(piece.end[:7]) | reaches)),
            from_word.eq(~_below(piece.data_first) & (_below(piece.data_end[:7]) | data_reach)),
            next_written.eq(_below(piece.end[:7]) & reaches),
            next_from_word.eq(_below(piece.data_end[:7]) & data_reach),
        ]

        held_data = Signal(8 * LINE_BYTES)
        held_strobe = Signal(LINE_BYTES)
        # One choice between word and fill for each register: a byte of both lines is kept for the next only.
        here = _select(from_word, word_line, fill_line)
        kept = _select(_select(next_written, next_from_word, from_word), word_line, fill_line)

        m.d.comb += self.aligned.ready.eq(~self.lines.valid | self.lines.ready)
        with m.If(self.aligned.ready):
            m.d.sync += self.lines.valid.eq(self.aligned.valid & piece.emit)
        with m.If(self.aligned.valid & self.aligned.ready):
            m.d.sync += [
                lines.line.row.eq(piece.line),
                lines.line.data.eq(_select(written, here, held_data)),
                lines.line.strobe.eq(held_strobe | written),
                lines.swizzle.eq(aligned.swizzle),
                lines.last.eq(piece.last),
                lines.completion.eq(aligned.completion),
                held_data.eq(_select(written | next_written, kept, held_data)),
                held_strobe.eq(Mux(piece.emit, next_written, held_strobe | written)),
            ]
        return m
