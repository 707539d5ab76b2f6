"""Shared reducer: what is in flight is counted and has its place; plain pieces pass; the end waits for all chunks."""

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Reduction
from tilewright.hw.reduce.float_add import FloatAdder
from tilewright.hw.tmau.load import shared_reduce
from tilewright.hw.tmau.load.shared_reduce import IN_FLIGHT, SharedReducer
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import StreamRules, prove

PARAMS = TMAU_PRESETS["unit"]


class SilentLane(wiring.Component):
    """In the place of the arithmetic, which no property here depends on."""

    latency = FloatAdder.LATENCY

    old: In(128)
    source: In(128)
    reduction: In(4)
    element: In(4)
    enable: In(1)
    o: Out(128)

    def __init__(self, floats):
        super().__init__()

    def elaborate(self, platform):
        return Module()


@pytest.fixture(autouse=True)
def _without_arithmetic(monkeypatch):
    monkeypatch.setattr(shared_reduce, "ReduceLane", SilentLane)


class SharedReducerSpec(Elaboratable):
    """Counts chunks in and out, and follows the chunks of the piece at the input."""

    def __init__(self):
        self.dut = SharedReducer(PARAMS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        m.submodules.o_rules = StreamRules(dut.o)
        m.submodules.fetch_rules = StreamRules(dut.fetch.rows)

        i, o = dut.i.payload, dut.o.payload
        came, left, fetched, issued = (
            stream.valid & stream.ready for stream in (dut.i, dut.o, dut.fetch.rows, dut.fetches.i)
        )
        reducing = Signal()
        m.d.comb += reducing.eq(~i.context.stage & (i.context.reduction != Reduction.NONE))
        # Pieces of reductions are whole chunks, one behind the other; all pieces of a transfer have its context.
        begun, before = Signal(), Signal.like(i.context)
        with m.If(came):
            m.d.sync += [begun.eq(~i.piece.last), before.eq(i.context)]
        reduced = ~before.stage & (before.reduction != Reduction.NONE)  # the piece before
        same = Value.cast(i.context) == Value.cast(before)
        whole = (i.piece.first[:4] == 0) & (i.piece.end[:4] == 0) & (i.piece.first <= i.piece.end)
        m.d.comb += Assume(~dut.i.valid | ((~begun | same) & (~reducing | whole)))

        issued_of_piece = Signal(5)  # chunks of the piece at the input that were issued
        m.d.sync += issued_of_piece.eq(issued_of_piece + issued)
        with m.If(came):
            m.d.sync += issued_of_piece.eq(0)
        # Nothing fetched before the transfer began that was not written.
        clean = Signal()
        with m.If(came & i.piece.last):
            m.d.sync += clean.eq(0)
        with m.Elif(dut.i.valid & reducing & dut.written):
            m.d.sync += clean.eq(1)

        total = (i.piece.end - i.piece.first) >> 4
        asked = dut.fetches.o.valid + dut.fetches.skidded  # fetches that wait for their turn
        chunk_leaves = left & dut.results.o.valid
        m.d.comb += [
            Assert(dut.in_flight == sum(dut.moving) + asked + dut.results.level),
            Assert(~dut.fetches.skidded | dut.fetches.o.valid),
            Assert(dut.in_flight == dut.places.level),
            Assert(dut.in_flight <= IN_FLIGHT),
            Assert(~dut.results.i.valid | dut.results.i.ready),
            Assert((dut.in_flight == 0) | (begun | issued_of_piece.any())),
            Assert((dut.in_flight == 0) | ~dut.i.valid | reducing),
            Assert((dut.in_flight == 0) | issued_of_piece.any() | reduced),
            Assert(~begun | dut.i.valid | (issued_of_piece == 0)),
            Assert(dut.i.valid | (issued_of_piece == 0)),
            Assert(dut.begun == clean),
            Assert(dut.started == (issued_of_piece != 0)),
            Assert((issued_of_piece == 0) | reducing & (issued_of_piece <= total)),
            Assert((issued_of_piece == 0) | (dut.following == (i.piece.first >> 4) + issued_of_piece)),
            # Plain pieces pass, in that cycle and unchanged.
            Assert(reducing | ~dut.i.valid | (left == came)),
            Assert(~left | chunk_leaves | dut.i.valid),
            Assert(~dut.i.valid | reducing | ~left | (Value.cast(o) == Value.cast(i))),
            # All chunks of a piece are on their way before it goes, and those of the last one have left.
            Assert(~(came & reducing) | (issued_of_piece + issued == total)),
            Assert(~(came & reducing & i.piece.last) | (left & ~chunk_leaves & (dut.in_flight == 0))),
            Assert(~(issued & ~clean)),
            Cover(came & reducing & i.piece.last & (total == 2)),
            Cover(fetched & chunk_leaves),
        ]
        with m.If(chunk_leaves):
            m.d.comb += Assert((o.piece.end == o.piece.first + 16) & ~o.piece.last)
        return m


def ports(dut):
    return [
        *(dut.i.valid, dut.i.payload, dut.o.ready, dut.fetch.rows.ready, dut.fetch.line, dut.written),
    ]


def test_chunks_are_counted_and_plain_pieces_pass():
    spec = SharedReducerSpec()
    prove(spec, ports(spec.dut), name="shared_reduce", depth=2)


def test_a_reduction_is_made():
    spec = SharedReducerSpec()
    prove(spec, ports(spec.dut), name="shared_reduce_cover", mode="cover", depth=18)
