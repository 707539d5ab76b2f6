"""The writer writes every byte of a piece where it belongs and no other, and loses no piece under back-pressure."""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.conv.result.layouts import ResultSizes
from tilewright.hw.conv.result.writer import Writer
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.formal import StreamRules, prove

#: Windows of one chunk and of two.
PARAMS = {name: ConvUnitParams(CONV_PRESETS[name], SmemParams(1024)) for name in ("unit", "default")}


class WriterSpec(Elaboratable):
    """The writer with the piece that is at its output, and any one byte of the window of that."""

    def __init__(self, params):
        self.dut, self._width = Writer(params), ResultSizes(params).piece_bytes
        self.at = Signal(range(self._width))  # byte of the window

    @property
    def ports(self):
        return [self.dut.i.valid, self.dut.i.payload, self.dut.o.ready, self.dut.plan, self.at]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        m.submodules.o_rules = StreamRules(dut.o)
        # What is right in the first cycle stays so: that is the rule of the stream.
        piece, held, fresh = Signal.like(dut.i.p), Signal(), Signal()
        taken, gone = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        m.d.sync += [held.eq(taken | (held & ~gone)), fresh.eq(taken)]
        with m.If(taken):
            m.d.sync += piece.eq(dut.i.p)
        offset, position, byte = piece.origin[:4], Signal(range(self._width + 16)), Signal(8)
        value, chunk, strobe = Signal(8), Signal(6), Signal()
        m.d.comb += [
            position.eq(offset + self.at),
            byte.eq(piece.window.as_value().word_select(self.at, 8)),
            Assume((dut.i.p.first >= dut.i.p.origin[:4]) & (dut.i.p.first <= dut.i.p.last)),
            Assume(dut.i.p.last < dut.i.p.origin[:4] + self._width),
            Assert(dut.o.valid == held),
            Assert(~(taken & held) | gone),
            Cover(held & ~dut.o.ready & dut.i.valid),
            *(Assert(dut.o.p.strobes[lane] == 0) for lane in range(self._width // 16 + 1, 8)),
        ]
        with m.Switch(position[4:]):
            for lane in range(self._width // 16 + 1):
                with m.Case(lane):
                    m.d.comb += [
                        value.eq(dut.o.p.data[lane].word_select(position[:4], 8)),
                        strobe.eq(dut.o.p.strobes[lane].bit_select(position[:4], 1)),
                        chunk.eq(dut.o.p.chunks[lane]),
                    ]
        written = (position >= piece.first) & (position <= piece.last)
        with m.If(fresh):
            m.d.comb += [
                Assert(strobe == written),
                Assert(Mux(written, value == byte, 1)),
                Assert(chunk == (piece.origin + self.at)[4:10]),
            ]
            # What no byte of the window comes to: below the offset, and behind its end.
            for number in range(16):
                last = self._width // 16
                m.d.comb += [
                    Assert(~dut.o.p.strobes[0][number] | (number >= offset)),
                    Assert(~dut.o.p.strobes[last][number] | (number < offset)),
                ]
        return m


def test_pieces_of_one_chunk():
    spec = WriterSpec(PARAMS["unit"])
    prove(spec, spec.ports, name="writer-unit", depth=2)


def test_pieces_of_two_chunks():
    spec = WriterSpec(PARAMS["default"])
    prove(spec, spec.ports, name="writer-default", depth=2)


@pytest.mark.long
def test_reached():
    spec = WriterSpec(PARAMS["unit"])
    prove(spec, spec.ports, name="writer-cover", mode="cover", depth=4)
