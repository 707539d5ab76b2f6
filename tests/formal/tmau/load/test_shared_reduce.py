"""Shared reducer: lines come out in order, once, with their row and strobes; what waits is held; one fetch each."""

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Cover, Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import Reduction
from tilewright.hw.reduce.lane import ReduceLane
from tilewright.hw.tmau.load import shared_reduce
from tilewright.hw.tmau.load.shared_reduce import SharedReducer
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.formal import StreamRules, prove

PARAMS = TMAU_PRESETS["unit"]


class SilentLane(wiring.Component):
    """In the place of the arithmetic, which no property here depends on."""

    LATENCY = ReduceLane.LATENCY

    old: In(128)
    source: In(128)
    reduction: In(4)
    element: In(4)
    enable: In(1)
    o: Out(128)

    def elaborate(self, platform):
        return Module()


@pytest.fixture(autouse=True)
def _without_arithmetic(monkeypatch):
    monkeypatch.setattr(shared_reduce, "ReduceLane", SilentLane)


class SharedReducerSpec(Elaboratable):
    """A line goes to one output in the cycle in which it is accepted, and to none before."""

    def __init__(self):
        self.dut = SharedReducer(PARAMS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        m.submodules.i_rules = StreamRules(dut.i, assume=True)
        for name, stream in (("writes", dut.writes), ("staged", dut.staged), ("fetch", dut.fetch.rows)):
            m.submodules[f"{name}_rules"] = StreamRules(stream)

        line = dut.i.payload
        accepted, written, staged, fetched = (
            stream.valid & stream.ready for stream in (dut.i, dut.writes, dut.staged, dut.fetch.rows)
        )
        reducing = ~line.stage & (line.reduction != Reduction.NONE)
        has_fetched = Signal()
        with m.If(accepted):
            m.d.sync += has_fetched.eq(0)
        with m.Elif(fetched):
            m.d.sync += has_fetched.eq(1)

        m.d.comb += [
            Assert(accepted == (written | staged)),
            Assert(~(written & staged)),
            Assert(~dut.writes.valid | (dut.i.valid & ~line.stage)),
            Assert(~dut.staged.valid | (dut.i.valid & line.stage)),
            Assert(dut.writes.payload.strobe == line.line.strobe),
            Assert(dut.writes.payload.row == line.line.row),
            Assert(~fetched | (reducing & ~has_fetched & (dut.fetch.rows.payload == line.line.row))),
            Assert(~(written & reducing) | has_fetched),
            # The state of the machine and what was seen of it: for the induction.
            Assert(dut.busy == has_fetched),
            Assert(~has_fetched | (dut.i.valid & reducing)),
        ]
        m.d.comb += Cover(written & reducing)
        return m


def ports(dut):
    return [
        dut.i.valid, dut.i.payload, dut.writes.ready, dut.staged.ready, dut.fetch.rows.ready, dut.fetch.line,
    ]  # fmt: skip


def test_lines_come_out_once():
    spec = SharedReducerSpec()
    prove(spec, ports(spec.dut), name="shared_reduce", depth=2)


def test_a_reduction_is_written():
    spec = SharedReducerSpec()
    prove(spec, ports(spec.dut), name="shared_reduce_cover", mode="cover", depth=20)
