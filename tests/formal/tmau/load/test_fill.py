"""Columns of the line register: each byte of each line is what the pieces of the line wrote there last."""

import pytest
from amaranth import Module, Mux, Signal
from amaranth.hdl import Assert, Assume, Cover, Elaboratable

from tilewright.hw.tmau.load.fill import LineAssembler
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import StreamRules, prove

PARAMS = TMAU_PRESETS["unit"]


class ColumnSpec(Elaboratable):
    """Follows the byte at ``column`` of this line and of the next. Rounding is left to simulation."""

    def __init__(self, column):
        self.dut = LineAssembler(PARAMS)
        self.column = column

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.lines_rules = StreamRules(dut.lines)
        aligned, column = dut.aligned.payload, self.column
        piece = aligned.piece
        m.d.comb += Assume(~aligned.context.tf32)
        m.d.comb += Assume((piece.end <= 128) | piece.emit)

        def byte_at(place):
            """Whether the piece writes the byte, and what."""
            is_data = (place >= piece.data_first) & (place < piece.data_end)
            data = aligned.word.word_select(column % PARAMS.bus_bytes, 8)
            return (place >= piece.first) & (place < piece.end), Mux(
                is_data, data, aligned.context.fill.word_select(column % 4, 8)
            )

        written, value = byte_at(column)
        next_written, next_value = byte_at(128 + column)
        held, held_value = Signal(), Signal(8)
        out, out_value, waiting = Signal(), Signal(8), Signal()
        with m.If(dut.lines.ready):
            m.d.sync += waiting.eq(0)
        with m.If(dut.aligned.valid & dut.aligned.ready):
            m.d.sync += [waiting.eq(piece.emit), out.eq(held | written), out_value.eq(Mux(written, value, held_value))]
            with m.If(piece.emit):
                m.d.sync += [held.eq(next_written), held_value.eq(next_value)]
            with m.Elif(written):
                m.d.sync += [held.eq(1), held_value.eq(value)]

        line = dut.lines.payload.line
        m.d.comb += [
            Assert(dut.lines.valid == waiting),
            Assert(dut.held_strobe[column] == held),
            Assert(~held | (dut.held_data.word_select(column, 8) == held_value)),
        ]
        with m.If(waiting):
            m.d.comb += Assert(line.strobe[column] == out)
            m.d.comb += Assert(~out | (line.data.word_select(column, 8) == out_value))
        m.d.comb += Cover(waiting & out & held)
        return m


def ports(dut):
    return [dut.aligned.valid, dut.aligned.payload, dut.lines.ready]


@pytest.mark.parametrize("column", [pytest.param(0, marks=pytest.mark.long), 127])
def test_column(column):
    spec = ColumnSpec(column)
    prove(spec, ports(spec.dut), name=f"fill_{column}", depth=2)


def test_column_spec_reaches_a_byte_in_both_lines():
    spec = ColumnSpec(0)
    prove(spec, ports(spec.dut), name="fill_cover", mode="cover", depth=6)
