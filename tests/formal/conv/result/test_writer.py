"""The writer writes every byte of a piece, or of two, where it belongs and no other, and loses none if it waits."""

import pytest
from amaranth.hdl import Assert, Assume, Const, Cover, Elaboratable, Module, Mux, Signal

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.conv.result.layouts import ResultSizes
from tilewright.hw.conv.result.writer import Writer
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.formal import StreamRules, prove

#: Windows of one chunk, and of two, which may be pieces of their own.
PARAMS = {name: ConvUnitParams(CONV_PRESETS[name], SmemParams(1024)) for name in ("unit", "default")}


class WriterSpec(Elaboratable):
    """The writer with the piece that is at its output, and any one byte of the window of that."""

    def __init__(self, params):
        self.dut, self._sizes = Writer(params), ResultSizes(params)
        self._width = self._sizes.piece_bytes
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
        lanes, half = self._width // 16 + 1, self._width // 2
        m.d.comb += [
            position.eq(offset + self.at),
            byte.eq(piece.window.as_value().word_select(self.at, 8)),
            Assume((dut.i.p.first >= dut.i.p.origin[:4]) & (dut.i.p.first <= dut.i.p.last)),
            Assume(dut.i.p.last < dut.i.p.origin[:4] + Mux(_pair(dut.i.p), half, self._width)),
            Assert(dut.o.valid == held),
            Assert(~(taken & held) | gone),
            Cover(held & ~dut.o.ready & dut.i.valid),
            *(Assert(dut.o.p.strobes[lane] == 0) for lane in range(lanes + self._sizes.pairs, 8)),
        ]
        apart = Signal()  # the byte belongs to a second piece
        first, last, origin, number = piece.first, piece.last, piece.origin + self.at, position[4:]
        if self._sizes.pairs:
            second, i = piece.second, dut.i.p.second
            m.d.comb += [
                apart.eq(second.there & (self.at >= half)),
                Assume(i.there | (i.origin == (dut.i.p.origin + half)[: len(i.origin)])),
                Assume(~i.there | ((i.first >= i.origin[:4]) & (i.first <= i.last))),
                Assume(~i.there | (i.last < i.origin[:4] + half)),
            ]
            first, last = Mux(apart, second.first, first), Mux(apart, second.last, last)
            origin = Mux(apart, second.origin + self.at - half, origin)
            with m.If(apart):
                m.d.comb += position.eq(second.origin[:4] + self.at - half)
            # The first chunk of a second piece has a lane behind all others.
            number = Mux(apart, Mux(position[4:] == 0, lanes, position[4:] + half // 16), position[4:])
        with m.Switch(number):
            for lane in range(lanes + self._sizes.pairs):
                with m.Case(lane):
                    m.d.comb += [
                        value.eq(dut.o.p.data[lane].word_select(position[:4], 8)),
                        strobe.eq(dut.o.p.strobes[lane].bit_select(position[:4], 1)),
                        chunk.eq(dut.o.p.chunks[lane]),
                    ]
        written = (position >= first) & (position <= last)
        with m.If(fresh):
            m.d.comb += [
                Assert(strobe == written),
                Assert(Mux(written, value == byte, 1)),
                Assert(chunk == origin[4:10]),
            ]
            # What no byte of the window comes to: below the offset, and behind its end.
            behind = piece.second.origin[:4] if self._sizes.pairs else offset
            for number in range(16):
                m.d.comb += [
                    Assert(~dut.o.p.strobes[0][number] | (number >= offset)),
                    Assert(~dut.o.p.strobes[lanes - 1][number] | (number < behind)),
                ]
                if self._sizes.pairs:
                    m.d.comb += [
                        Assert(~dut.o.p.strobes[lanes][number] | (_pair(piece) & (number >= behind))),
                        Assert(~dut.o.p.strobes[half // 16][number] | ~_pair(piece) | (number < offset)),
                        Cover(_pair(piece) & dut.o.p.strobes[half // 16].any() & dut.o.p.strobes[lanes].any()),
                    ]
        return m


def _pair(piece):
    """Whether there are two pieces."""
    return piece.second.there if "second" in dict(iter(piece.shape())) else Const(0, 1)


def test_pieces_of_one_chunk():
    spec = WriterSpec(PARAMS["unit"])
    prove(spec, spec.ports, name="writer-unit", depth=2)


def test_pieces_of_two_chunks():
    spec = WriterSpec(PARAMS["default"])
    prove(spec, spec.ports, name="writer-default", depth=2)


@pytest.mark.long
@pytest.mark.parametrize("name", PARAMS)
def test_reached(name):
    spec = WriterSpec(PARAMS[name])
    prove(spec, spec.ports, name=f"writer-cover-{name}", mode="cover", depth=4)
