"""The assembler loses no result under back-pressure: any byte of any transfer comes out with its flush, as it came."""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal

from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.conv.result.assembler import Assembler
from tilewright.sim.formal import StreamRules, prove

#: R = 1 and W = B = 16: a buffer holds up to 16 results of a byte.
PARAMS = ConvUnitParams(CONV_PRESETS["unit"])


class AssemblerSpec(Elaboratable):
    """The assembler with any one transfer followed to the piece that it is in; results are of one byte."""

    def __init__(self):
        self.dut = Assembler(PARAMS)
        self.follow = Signal()  # the transfer that is taken, if none is followed yet

    @property
    def ports(self):
        dut = self.dut
        streams = (dut.i, dut.flush, dut.pieces)
        return [*(each.valid for each in streams), *(each.payload for each in streams), dut.o.ready, self.follow,
                dut.plan.as_value()]  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        for name, port in (("i", dut.i), ("flush", dut.flush), ("pieces", dut.pieces)):
            m.submodules[f"{name}_rules"] = StreamRules(port, assume=True)
        m.submodules.o_rules = StreamRules(dut.o)
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
                m.d.sync += [held.eq(1), place.eq(count), value.eq(dut.i.p.data[0][:8]), flushed.eq(dut.flush.p)]
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
        return m


@pytest.mark.parametrize("depth", [8, pytest.param(9, marks=pytest.mark.long)])
def test_nothing_is_lost(depth):
    spec = AssemblerSpec()
    prove(spec, spec.ports, name="assembler", mode="bmc", depth=depth)


@pytest.mark.long
def test_reached():
    spec = AssemblerSpec()
    prove(spec, spec.ports, name="assembler-cover", mode="cover", depth=12)
