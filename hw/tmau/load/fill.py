"""Line assembler: rounds, fills and gathers the pieces of a line."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import LINE_BYTES

from .layouts import AlignedLayout, AssembledLayout

__all__ = ["LineAssembler", "round_tf32"]

_LINE_BITS = 8 * LINE_BYTES


def round_tf32(value):
    """A 32-bit float rounded to the ten mantissa bits of TF32 (docs/tmau.md, "Fill and rounding"), to nearest even.

    A NaN becomes 0x7FFFE000; what is too large to round down becomes infinity.
    """
    kept, dropped = value[13:], value[:13]
    up = dropped[12] & (dropped[:12].any() | kept[0])
    nan = value[23:31].all() & value[:23].any()
    return Mux(nan, 0x7FFFE000, Cat(Const(0, 13), (kept + up)[: len(kept)]))


def _below(limit):
    """Mask of the first ``limit`` bytes of a line."""
    return ~(Const(-1, _LINE_BITS) << Cat(Const(0, 3), limit))[:_LINE_BITS]


def _select(mask, chosen, other):
    """Bit by bit: ``chosen`` where ``mask`` is set, and ``other`` elsewhere."""
    return (chosen & mask) | (other & ~mask)


class LineAssembler(wiring.Component):
    """Merges data, rounded where the transfer says so, and fill to lines.

    Bytes wait in the line register until a piece with ``emit`` completes their line. What that piece has of the next
    line starts the register over.

    Latency: one cycle from the piece that completes a line. Throughput: one piece a cycle.

    Members
    -------
    aligned : In(stream of AlignedLayout)
    lines : Out(stream of AssembledLayout)
    """

    def __init__(self, params):
        self._params = params
        # The line register.
        self.held_data = Signal(_LINE_BITS)
        self.held_strobe = Signal(LINE_BYTES)
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

        # A byte of this line and the one below it in the next have the same place in the word, and in the fill.
        lanes = [aligned.word.word_select(lane, 32) for lane in range(bus_bytes // 4)]
        word = Signal(aligned.word.shape())
        word_line = Signal(_LINE_BITS)
        fill_line = Signal(_LINE_BITS)
        m.d.comb += [
            word.eq(Cat(Mux(aligned.context.tf32, round_tf32(lane), lane) for lane in lanes)),
            word_line.eq(word.replicate(LINE_BYTES // bus_bytes)),
            fill_line.eq(aligned.context.fill.replicate(LINE_BYTES // 4)),
        ]

        # Masks of this line and, for an end of more than 128, of the next.
        below_end, below_data_end, written, from_word, next_written, next_from_word = (
            Signal(_LINE_BITS, name=name)
            for name in ("below_end", "below_data_end", "written", "from_word", "next_written", "next_from_word")
        )
        m.d.comb += [
            below_end.eq(_below(piece.end[:7])),
            below_data_end.eq(_below(piece.data_end[:7])),
            written.eq(~_below(piece.first) & Mux(piece.end[7], ~0, below_end)),
            from_word.eq(~_below(piece.data_first) & Mux(piece.data_end[7], ~0, below_data_end)),
            next_written.eq(Mux(piece.end[7], below_end, 0)),
            next_from_word.eq(Mux(piece.data_end[7], below_data_end, 0)),
        ]

        held_data, held_strobe = self.held_data, self.held_strobe
        strobe = held_strobe | written[::8]
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
                lines.line.strobe.eq(strobe),
                lines.last.eq(piece.last),
                lines.context.eq(aligned.context),
                lines.error.eq(aligned.error),
                lines.address.eq(aligned.address),
                held_data.eq(_select(written | next_written, kept, held_data)),
                held_strobe.eq(Mux(piece.emit, next_written[::8], strobe)),
            ]
        return m
