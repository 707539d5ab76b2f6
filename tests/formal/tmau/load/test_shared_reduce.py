"""Shared reducer: nothing is fetched that is still to be written; parts have their places; plain pieces pass."""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from support.formal import Spec
from tilewright.hw.reduce import integer
from tilewright.hw.smem.params import SmemParams
from tilewright.hw.tmau.load import shared_reduce
from tilewright.hw.tmau.load.layouts import BOUNDS
from tilewright.hw.tmau.load.shared_reduce import SharedReducer
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import Reduction
from tilewright.verify.formal import prove

PARAMS = TMAU_PRESETS["unit"].replace(addr_width=16, smem=SmemParams(1024))


class _Silent(wiring.Component):
    """In the place of the arithmetic, which no property here depends on; it takes fewer cycles, for short traces."""

    def elaborate(self, platform):
        return Module()


class SilentSums(_Silent):
    LATENCY = 2

    old: In(128)
    source: In(128)
    element: In(4)
    enable: In(1)
    o: Out(128)


class SilentIntegers(_Silent):
    LATENCY = 1

    old: In(64)
    source: In(64)
    operation: In(integer.OperationLayout())
    enable: In(1)
    o: Out(64)

    def __init__(self, floats):
        super().__init__()


@pytest.fixture(autouse=True)
def _without_arithmetic(monkeypatch):
    monkeypatch.setattr(shared_reduce, "FloatSums", SilentSums)
    for module in (shared_reduce, integer):
        monkeypatch.setattr(module, "IntegerReducer", SilentIntegers)
    monkeypatch.setattr(shared_reduce, "IN_FLIGHT", 4)


class SharedReducerSpec(Spec):
    """Follows one row: parts of it that were taken and are not written. Behind the reducer two pieces may wait."""

    given, made = "i", "o fetch.rows"

    def __init__(self, bus_bytes, floats=True):
        features = [name for name in PARAMS.features if floats or name != "reductions_float"]
        self.params = PARAMS.replace(bus_bytes=bus_bytes, features=features)
        self.dut = SharedReducer(self.params)
        self.row = Signal(PARAMS.smem.row_width)  # the same in all cycles
        self.pop = Signal()  # the oldest piece behind the reducer is written

    def specify(self, m, dut):

        i, o = dut.i.payload, dut.o.payload
        came, left, issued = (stream.valid & stream.ready for stream in (dut.i, dut.o, dut.fetches.i))
        reducing, part_leaves = Signal(), Signal()
        m.d.comb += [
            reducing.eq(~i.context.stage & (i.context.reduction != Reduction.NONE)),
            part_leaves.eq(left & dut.places.o.valid),
        ]
        # Pieces of reductions are whole chunks, one behind the other; all pieces of a transfer have its context.
        begun, before, cursor = Signal(), Signal.like(i.context), Signal(PARAMS.smem.addr_width + 2)
        begin, end = (Signal.like(cursor, name=name) for name in ("begin", "end"))
        m.d.comb += [begin.eq((i.piece.line << 7) + i.piece.first), end.eq((i.piece.line << 7) + i.piece.end)]
        with m.If(came):
            m.d.sync += [begun.eq(~i.piece.last), before.eq(i.context), cursor.eq(end)]
        same = Value.cast(i.context) == Value.cast(before)
        adjoins = (~begun | (begin == cursor)) & (end <= PARAMS.smem.size_bytes)
        whole = (i.piece.first[:4] == 0) & (i.piece.end[:4] == 0) & (i.piece.first <= i.piece.end)
        short = i.piece.end - i.piece.first <= self.params.bus_bytes
        m.d.comb += Assume(~dut.i.valid | ((~begun | same) & (~reducing | (whole & short & adjoins))))

        unwritten = self.behind(m, left)
        self.follow(m, issued, came & i.piece.last & reducing, unwritten, left & ~dut.places.o.valid)

        places, results = dut.places, dut.results
        part = places.o.payload.first != places.o.payload.end
        in_lanes = sum([*dut.moving, *dut.adding]) + dut.fetches.o.valid + dut.fetches.skidded
        parts = Signal(range(16))
        m.d.sync += parts.eq(parts + issued - (part_leaves & part))
        m.d.comb += [
            Assert(parts == in_lanes + results.level),
            Assert(parts <= places.level),
            Assert(~results.i.valid | results.i.ready),
            Assert(~issued | dut.sources.i.ready),
            Assert(~dut.moving[0] | dut.sources.o.valid),
            # Plain pieces pass, in that cycle and unchanged, when all reductions have left.
            Assert(reducing | ~dut.i.valid | (places.level != 0) | (left == came)),
            Assert(~(came & ~reducing) | ((places.level == 0) & left & (Value.cast(o) == Value.cast(i)))),
            Assert(~left | dut.places.o.valid | (dut.i.valid & ~reducing)),
            # A part lies in one line.
            Assert(~part_leaves | ((o.piece.end <= 128) & (o.piece.first <= o.piece.end))),
            *(Assert(~part_leaves | (o.chunks[name].whole == (1 << (o.piece[name] >> 4)) - 1)) for name in BOUNDS),
        ]
        chunks = Signal(5)  # of the piece at the input, that were taken
        taken = Mux(issued, dut.places.i.payload.end - dut.places.i.payload.first, 0)
        m.d.sync += chunks.eq(Mux(came, 0, chunks + taken))
        m.d.comb += Assert(~(came & reducing) | (chunks + taken == (i.piece.end - i.piece.first) >> 4))

        ends = Signal(2)  # of reductions that were taken and have not left
        m.d.sync += ends.eq(ends + (came & reducing & i.piece.last) - (part_leaves & o.piece.last))
        m.d.comb += [
            Assert(ends <= 1),
            Assert(dut.ending == ends),
            Cover(issued & dut.older & dut.ending),
            Cover(part_leaves & o.piece.last & part),
        ]

    def behind(self, m, left):
        """At most two pieces that have left are not written; whether one of the row is written now."""
        dut, o, waiting = self.dut, self.dut.o.payload, Signal(range(3))
        row = Signal.like(self.row)
        m.d.sync += row.eq(self.row)
        started = Signal()
        m.d.sync += started.eq(1)
        m.d.comb += Assume(~started | (row == self.row))
        m.d.sync += waiting.eq(waiting + left - self.pop)
        m.d.comb += [
            Assume(~self.pop | (waiting != 0)),
            Assume(~dut.o.ready | (waiting != 2) | self.pop),
            Assume(dut.written == (waiting == 0)),
        ]
        # An end without a part writes nothing.
        part = (o.piece.line == self.row) & (o.piece.first != o.piece.end)
        hits = Mux(dut.places.o.valid, part, (o.piece.line == self.row) | self.reaches(o))
        first, second = Signal(), Signal()  # whether they are of the row, the oldest first
        with m.If(self.pop):
            m.d.sync += first.eq(second)
        with m.If(left):
            with m.If(waiting - self.pop == 0):
                m.d.sync += first.eq(hits)
            with m.Else():
                m.d.sync += second.eq(hits)
        return self.pop & first

    def follow(self, m, issued, ends, popped, plain):
        """Nothing of the row is fetched while what an earlier transfer has of it is not written."""
        dut, o = self.dut, self.dut.o.payload
        total, own = Signal(range(16)), Signal(range(64))
        here = dut.places.i.payload.row == self.row
        m.d.sync += [
            total.eq(total + (issued & here) + (plain & ((o.piece.line == self.row) | self.reaches(o))) - popped),
            own.eq(Mux(ends, 0, own + (issued & here))),
        ]
        m.d.comb += Assert(~(issued & here) | (total <= own))

    def reaches(self, o):
        """A plain piece may go on in the row behind its own."""
        return (o.piece.line + 1)[: len(self.row)] == self.row


@pytest.mark.parametrize(
    ("bus_bytes", "depth", "floats"),
    [
        (16, 6, True),
        (32, 6, False),
        *(pytest.param(*case, marks=pytest.mark.long) for case in ((16, 9, True), (32, 7, True), (16, 9, False))),
    ],
)
def test_parts_are_counted_and_nothing_is_fetched_too_early(bus_bytes, depth, floats):
    """A narrow bus for a longer time; words that lie in two lines on a wide one."""
    name = f"shared_reduce_{bus_bytes}" + ("" if floats else "_integers")
    prove(SharedReducerSpec(bus_bytes, floats), name=name, mode="bmc", depth=depth)


@pytest.mark.long
def test_transfers_overlap():
    prove(SharedReducerSpec(32), name="shared_reduce_cover", mode="cover", depth=10)
