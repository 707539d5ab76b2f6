"""F9: chunks are permuted inside their line, each byte is what its piece says; F6: completions follow their writes."""

import pytest
from amaranth.hdl import Assert, Assume, Const, Cover, Elaboratable, Module, Mux, Signal

from support.formal import Spec, proved_and_covered
from tilewright.hw.smem.layouts import chunk_flips, whole_line
from tilewright.hw.tmau.layouts import CompletionLayout
from tilewright.hw.tmau.load.layouts import BOUNDS
from tilewright.hw.tmau.load.place import WordPlacer
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import CHUNK_BYTES, Swizzle
from tilewright.verify.formal import prove

PARAMS = TMAU_PRESETS["unit"]


class PermutationSpec(Elaboratable):
    """Any two places of any line."""

    def __init__(self):
        self.row, self.swizzle = Signal(PARAMS.smem.row_width), Signal(2)
        self.places = [Signal(3, name="place0"), Signal(3, name="place1")]

    def elaborate(self, platform):
        m = Module()
        flips = chunk_flips(self.swizzle, self.row)
        first, second = ((place ^ flips)[:3] for place in self.places)
        chunks = Mux(self.swizzle == Swizzle.NONE, 1, 1 << self.swizzle)  # 16-byte chunks of the span
        m.d.comb += [
            Assert((first == second) == (self.places[0] == self.places[1])),
            Assert(first == (self.places[0] ^ (self.row & (chunks - 1)))[:3]),
        ]
        return m


def well_formed(piece, bus_bytes):
    """What PieceLayout promises of a piece alone."""
    data = (piece.first <= piece.data_first) & (piece.data_first < piece.data_end) & (piece.data_end <= piece.end)
    joint = (piece.data_first < piece.joint) & (piece.joint < piece.data_end) & (piece.data_end <= bus_bytes)
    reach = piece.data_end <= piece.data_first + bus_bytes
    order = (piece.first <= piece.end) & ((piece.end <= 128) | ~piece.last) & (joint | (piece.joint == 0))
    return order & ((piece.data_end == 0) | (data & reach))


def chunks_fit(payload):
    """What AlignedLayout promises of the chunks of a piece, wherever the swizzle has them."""
    flips, fits = chunk_flips(payload.context.swizzle, payload.piece.line), Const(1)
    for name in BOUNDS:
        bound, chunks = payload.piece[name], payload.chunks[name]
        for place in range(8):
            start = (place ^ flips) * CHUNK_BYTES
            inside = (start < bound) & (bound < start + CHUNK_BYTES)
            free = bound[:4] == 0
            fits &= (chunks.whole[place] == (start + CHUNK_BYTES <= bound)) & (free | (chunks.partly[place] == inside))
    return fits


class ColumnSpec(Spec):
    """Follows the byte at ``column`` of this line and of the next. Rounding is left to simulation, and staging."""

    given, made = "i", "rows"

    def __init__(self, column, bus_bytes):
        self.params = PARAMS.replace(bus_bytes=bus_bytes)
        self.dut = WordPlacer(self.params)
        self.column = column

    def specify(self, m, dut):
        payload, column, bus_bytes = dut.i.payload, self.column, self.params.bus_bytes
        piece, context = payload.piece, payload.context
        fill_byte = context.fill.word_select(column % 4, 8)
        m.d.comb += Assume(payload.roundings.as_value() == 0)
        m.d.comb += Assume(~context.tf32 & ~context.stage & ~payload.remains & well_formed(piece, bus_bytes))
        m.d.comb += Assume(chunks_fit(payload))

        before, begun = Signal.like(payload), Signal()

        def byte_at(place):
            """Whether the piece writes the byte, and what."""
            is_data = (place >= piece.data_first) & (place < piece.data_end)
            data = Mux(place < piece.joint, own_byte(before), own_byte(payload))
            return (place >= piece.first) & (place < piece.end), Mux(is_data, data, fill_byte)

        def own_byte(payload):
            """The byte of the column, of a word that lies as the line of its piece is swizzled."""
            chunk = chunk_of(payload.context.swizzle, payload.piece.line, bus_bytes // CHUNK_BYTES)
            return payload.word.word_select(chunk * CHUNK_BYTES + column % CHUNK_BYTES, 8)

        def chunk_of(swizzle, line, chunks):
            """Where the chunk of the column lies among so many."""
            return (column // CHUNK_BYTES ^ chunk_flips(swizzle, line)) & (chunks - 1)

        written, value = byte_at(column)
        next_written, next_value = byte_at(128 + column)
        held, held_value = Signal(), Signal(8)
        rest = Signal(7)  # bytes of the next line that were written
        out, out_value, waiting = Signal(), Signal(8), Signal()
        taken = dut.i.valid & dut.i.ready
        writes = (piece.first != piece.end) | (rest != 0)
        # What goes on in the next line is of the same transfer.
        follows = (piece.line == (before.piece.line + 1)[: len(piece.line)]) & (piece.first >= rest)
        same = (context.fill == before.context.fill) & (context.swizzle == before.context.swizzle)
        m.d.comb += Assume((rest == 0) | ~dut.i.valid | (follows & same))
        near = (piece.line == before.piece.line) | (piece.line == (before.piece.line + 1)[: len(piece.line)])
        m.d.comb += Assume((piece.joint == 0) | (begun & near & (context.swizzle == before.context.swizzle)))
        with m.If(dut.rows.ready):
            m.d.sync += waiting.eq(0)
        with m.If(taken):
            m.d.sync += [
                waiting.eq(writes),
                out.eq(held | written),
                out_value.eq(Mux(written, value, held_value)),
                held.eq(next_written),
                held_value.eq(next_value),
                rest.eq(Mux(piece.end > 128, piece.end - 128, 0)),
                before.eq(payload),
                begun.eq(1),
            ]

        chunks = bus_bytes // CHUNK_BYTES
        flips_before = chunk_flips(before.context.swizzle, before.piece.line)[: len(dut.flips)]
        own = chunk_of(before.context.swizzle, before.piece.line, chunks) * CHUNK_BYTES + column % CHUNK_BYTES
        m.d.comb += [
            Assert(dut.rest == rest),
            Assert(held == (column < rest)),
            Assert(dut.rest_data <= rest),
            Assert(~begun | (dut.flips == flips_before)),
            Assert(~begun | (dut.rest_flips == chunk_flips(before.context.swizzle, before.piece.line + 1))),
            Assert(begun | (rest == 0)),
            Assert(~begun | (dut.word.word_select(own, 8) == own_byte(before))),
            Assert((dut.rows.valid & dut.rows.ready) == (taken & writes)),
            Assert(~dut.rows.valid | (dut.rows.payload == piece.line)),
        ]
        with m.If(held):
            expected = before.context.fill.word_select(column % 4, 8)
            if column < bus_bytes:
                expected = Mux(column < dut.rest_data, dut.word.word_select(own, 8), expected)
            m.d.comb += Assert(held_value == expected)
        with m.If(waiting):
            place = chunk_of(before.context.swizzle, before.piece.line, 8) * CHUNK_BYTES + column % CHUNK_BYTES
            m.d.comb += Assert(dut.strobe.bit_select(place, 1) == out)
            m.d.comb += Assert(~out | (whole_line(dut.data).word_select(place, 8) == out_value))
            m.d.comb += Assert(~out | dut.data.fills | ~dut.data.filled.bit_select(place, 1))
        m.d.comb += Cover(waiting & out & held)
        m.d.comb += Cover(taken & (piece.joint > column % bus_bytes) & (rest != 0))


class CompletionSpec(Spec):
    """A transfer that is not quiet completes once, in order, when its last write is done or its last word is staged."""

    given, made = "i", "completions staged"

    def specify(self, m, dut):
        payload, context = dut.i.payload, dut.i.payload.context
        taken, row_taken = dut.i.valid & dut.i.ready, dut.rows.valid & dut.rows.ready
        # The guard is ready until it takes a row, and again when that is written.
        idle = Signal(init=1)
        with m.If(row_taken):
            m.d.sync += idle.eq(0)
        with m.Elif(dut.rows.ready):
            m.d.sync += idle.eq(1)
        m.d.comb += Assume(~idle | dut.rows.ready)

        ended, offered = Signal(CompletionLayout(PARAMS)), Signal(CompletionLayout(PARAMS))
        ending, offering = Signal(), Signal()
        # A staged word is offered in the cycle after its piece was at the input.
        staging, stage_full = Signal(), Signal()
        bus_log2, piece = PARAMS.bus_log2, payload.piece
        m.d.comb += stage_full.eq(piece.last | (piece.first[bus_log2:] != piece.end[bus_log2:]))
        begun_there = piece.end[:bus_log2].any() & (piece.first[bus_log2:] != piece.end[bus_log2:])
        m.d.comb += Assume(payload.remains == (context.stage & piece.last & begun_there))
        passed = dut.rows.ready & (~staging | dut.staged.ready)
        with m.If(dut.staged.ready):
            m.d.sync += staging.eq(0)
        with m.If(dut.i.valid & context.stage & stage_full & passed & ~(ending & offering)):
            m.d.sync += staging.eq(1)
        done = ending & passed & ~offering
        with m.If(dut.completions.valid & dut.completions.ready):
            m.d.sync += offering.eq(0)
        with m.If(done):
            m.d.sync += [ending.eq(0), offering.eq(1), offered.eq(ended)]
        with m.If(taken):
            m.d.comb += Assert(~ending | done, "nothing comes before the last write is done")
            m.d.sync += ending.eq(payload.piece.last & ~context.quiet)
            m.d.sync += [ended[name].eq(context[name]) for name in ("tag", "signal", "barrier", "bytes")]
            m.d.sync += [ended.error.eq(payload.error), ended.address.eq(payload.address), ended.write.eq(0)]
        m.d.comb += [
            Assert(dut.ending == ending),
            Assert(dut.completions.valid == offering),
            Assert(~offering | (dut.completions.payload.as_value() == offered.as_value())),
            Assert(~ending | (dut.ended.as_value() == ended.as_value())),
            Assert(dut.staged.valid == staging),
            Assert(~dut.rows.valid | ~context.stage),
            Cover(offering & ending & ~dut.rows.ready),
        ]


def test_swizzle_is_a_permutation():
    spec = PermutationSpec()
    prove(spec, [spec.row, spec.swizzle, *spec.places], name="swizzle_permutation", depth=1, proves="F9")


@pytest.mark.parametrize(
    ("column", "bus_bytes"),
    [(0, 16), *(pytest.param(*case, marks=pytest.mark.long) for case in ((127, 16), (20, 32), (38, 64)))],
)
def test_column(column, bus_bytes):
    prove(ColumnSpec(column, bus_bytes), name=f"place_{column}_{bus_bytes}", depth=2, proves="F9")


@pytest.mark.long
def test_column_spec_reaches_a_byte_in_both_lines():
    prove(ColumnSpec(0, 16), name="place_cover", mode="cover", depth=6)


@proved_and_covered(2, 8)
def test_completions(mode, depth):
    prove(CompletionSpec(WordPlacer(PARAMS)), name=f"placer_completions-{mode}", mode=mode, depth=depth, proves="F6")
