"""The assembler loses no result under back-pressure: any byte of any transfer comes out with its flush, as it came."""

import pytest
from amaranth.hdl import Assert, Assume, Const, Cover, Mux, Signal

from support.formal import Spec
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.conv.result.layouts import ResultSizes
from tilewright.hw.conv.result.writer import Assembler, Writer
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS
from tilewright.verify.formal import prove

#: R = 1 and W = B = 16: a buffer holds up to 16 results of a byte.
PARAMS = ConvUnitParams(CONV_PRESETS["unit"])


class AssemblerSpec(Spec):
    """The assembler with any one transfer followed to the piece that it is in; results are of one byte."""

    given, made = "i flush pieces", "o"

    def __init__(self):
        self.dut = Assembler(PARAMS)
        self.follow = Signal()  # the transfer that is taken, if none is followed yet

    def specify(self, m, dut):
        m.d.comb += Assume((dut.plan.result_log2 == 0) & (dut.pieces.p.slot == 0))

        taken, pushed = dut.i.valid & dut.i.ready, dut.full.i.valid & dut.full.i.ready
        popped = dut.full.o.valid & dut.full.o.ready
        held, flushed, place, value, ahead = Signal(), Signal(), Signal(4), Signal(8), Signal(3)
        count = Signal(5)  # transfers of the flush
        m.d.comb += [
            Assert(taken == (dut.flush.valid & dut.flush.ready)),
            Assert(~dut.full.i.valid | dut.full.i.ready),
            Assert((taken & dut.flush.p) == pushed),
            Assert(dut.count == count),
            # More than a buffer holds never come.
            Assume(~(taken & (count == 15)) | dut.flush.p),
            Cover(flushed & (ahead == 2) & (place == 1)),
        ]
        with m.If(taken):
            m.d.sync += count.eq(Mux(dut.flush.p, 0, count + 1))
            with m.If(self.follow & ~held):
                m.d.sync += [held.eq(1), place.eq(count), value.eq(dut.i.p[0][:8]), flushed.eq(dut.flush.p)]
        with m.If(held & ~flushed):
            m.d.comb += [Assert(place < count), Assert(dut.collected.word_select(place, 8) == value)]
        with m.If(pushed & ~flushed):
            m.d.sync += [flushed.eq(held | (self.follow & taken)), ahead.eq(dut.full.level - popped)]
        with m.If(held & flushed):
            m.d.comb += [Assert(dut.full.o.valid), Assert(ahead < dut.full.level)]
            with m.If(popped):
                m.d.sync += ahead.eq(ahead - 1)
                with m.If(ahead == 0):
                    m.d.sync += [held.eq(0), flushed.eq(0)]
            with m.If(dut.o.valid & (ahead == 0)):
                m.d.comb += Assert(dut.o.p.window.as_value().word_select(place, 8) == value)


@pytest.mark.parametrize("depth", [8, pytest.param(9, marks=pytest.mark.long)])
def test_nothing_is_lost(depth):
    prove(AssemblerSpec(), name="assembler", mode="bmc", depth=depth)


@pytest.mark.long
def test_reached():
    prove(AssemblerSpec(), name="assembler-cover", mode="cover", depth=12)


#: Windows of one chunk, and of two, which may be pieces of their own.
WRITER_PARAMS = {name: ConvUnitParams(CONV_PRESETS[name], SmemParams(1024)) for name in ("unit", "default")}


class WriterSpec(Spec):
    """The writer with the piece that is at its output, and any one byte of the window of that."""

    given, made = "i", "o"

    def __init__(self, params):
        self.dut, self._sizes = Writer(params), ResultSizes(params)
        self._width = self._sizes.piece_bytes
        self.at = Signal(range(self._width))  # byte of the window

    def specify(self, m, dut):
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


def _pair(piece):
    """Whether there are two pieces."""
    return piece.second.there if "second" in dict(iter(piece.shape())) else Const(0, 1)


def test_pieces_of_one_chunk():
    prove(WriterSpec(WRITER_PARAMS["unit"]), name="writer-unit", depth=2)


def test_pieces_of_two_chunks():
    prove(WriterSpec(WRITER_PARAMS["default"]), name="writer-default", depth=2)


@pytest.mark.long
@pytest.mark.parametrize("name", WRITER_PARAMS)
def test_writer_reached(name):
    prove(WriterSpec(WRITER_PARAMS[name]), name=f"writer-cover-{name}", mode="cover", depth=4)
